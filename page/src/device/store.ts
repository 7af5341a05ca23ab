/** The ratings of a browser that is a device, what it sent so far, and how all of it goes. */
import { IndexedDbStore } from "../store/indexed_db";
import type { SentSoFar, Store } from "../store/store";
import { t } from "../view/texts";
import type { BrowserDevice } from "./device";

/** What the panel of messages needs of a device. */
export function sentBy({ keeping }: BrowserDevice, onSent: (listener: () => void) => void): NonNullable<Store["device"]> {
  return {
    sent: async (): Promise<SentSoFar> => {
      const lines = (await keeping.sent()).reverse();
      const latest = lines.map((line) => ({
        when: new Date(line.at).toISOString(), bytes: line.bytes,
        what: t("device.line", { what: t("device.stage", { stage: line.stage }), round: line.round + 1 }),
      }));
      return { paused: false, messages: lines.length, bytes: lines.reduce((total, { bytes }) => total + bytes, 0), latest };
    },
    onSent,
  };
}

/** The browser's own store of ratings, with which the device goes, too. */
export class OwnStore extends IndexedDbStore {
  /** called when everything is to go */
  forgetting: () => Promise<void> = async () => undefined;

  override async clear(): Promise<void> {
    await this.forgetting();
    await super.clear();
  }
}
