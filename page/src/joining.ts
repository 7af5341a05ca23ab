/** The page of a server, on which the browser is a device: from the server's offer to the panels. */
import type { BrowserDevice } from "./device/device";
import { serverOf, takeInvitation } from "./device/invitation";
import { OwnStore, sentBy } from "./device/store";
import type { LeavesFacts } from "./attack/leaves";
import { Context } from "./context";
import { Items } from "./items";
import { State } from "./state";
import type { Request } from "./wire/request";
import { devicePanel } from "./view/device";
import { leavesPanel } from "./view/leaves";
import { takePartPanel } from "./view/take_part";
import { t } from "./view/texts";

export interface Joining {
  readonly context: Context;
  readonly panels: readonly HTMLElement[];
}

/** The server that this page is of; null on any other page. */
export const server = serverOf(document.documentElement);

/** All that a page of a server shows beside rating and list. */
export async function join(at: string, fail: (error: unknown) => void): Promise<Joining> {
  const invitation = takeInvitation();
  const code = await import("./device.js");
  const store = new OwnStore(`fedrecplus:${at}`);
  const listeners: ((event: { problem?: string; answered?: unknown }) => void)[] = [];
  const device: BrowserDevice = new code.BrowserDevice(at, async () => (await store.load()).ratings, (event) => listeners.forEach((tell) => tell(event)));
  store.forgetting = () => device.forget();
  const offer = code.requestOf(await device.offer(), true);
  const catalogue = offer.attached;
  if (!catalogue) throw new Error(t("part.no-offer"));
  const model = code.sharedModel(offer.config, code.matrixOf(offer.tables["V"]!), catalogue, offer.round, at);
  const items = new Items({ ids: catalogue.ids, titles: catalogue.titles, genre_names: [], genres: [] }, model.known.years, (id) => t("untitled", { id }));
  const state = new State(store, items.facts.ids, fail);
  await state.load();
  await device.keeping.setFact("scale", code.scaleText(catalogue));
  const context = new Context(model, items, state);
  listeners.push(() => void renewed(code, device, context, at).catch(fail));
  if (!state.ratings.size && !location.hash) location.hash = "rate";
  const sent = devicePanel(sentBy(device, (tell) => listeners.push(tell)), fail);
  const part = takePartPanel({ device, offer, catalogue, invitation, code, server: at, fail }, (tell) => listeners.push(tell));
  part.append(sent);
  window.addEventListener("pagehide", () => void device.stop());
  window.addEventListener("pageshow", ({ persisted }) => persisted && location.reload()); // back from the browser's memory
  return { context, panels: [leavesPanel(context, leavesOf(code, offer, context), new ArrayBuffer(0)), part] };
}

export type DeviceCode = typeof import("./device");

/** After a round's request: the newest table that this device has seen makes the list. */
async function renewed(code: DeviceCode, device: BrowserDevice, context: Context, at: string): Promise<void> {
  const seen = await code.newestTable(device.keeping);
  if (seen && seen.round > context.model.facts.rounds && seen.V.rows === context.model.V.rows) {
    context.renew(code.sharedModel(seen.config, seen.V, seen.catalogue, seen.round, at));
  }
}

/** What would leave, under the settings of the server alone. */
function leavesOf(code: DeviceCode, { config, round }: Request, context: Context): LeavesFacts {
  const choice = (kind: string) => ({ rule: code.section(config, kind).rule, options: code.optionsOf(code.section(config, kind)) });
  const preset = {
    name: String(config.general.values["algorithm"]), summary: "", own: true, table: { number: 0, from: 0, to: context.model.V.columns },
    trained_by: "", round, columns: context.model.V.columns, view: "sums" as const, weighs_on_client: true, ratio: 0,
    attacker: { popularity: 0, residual: 0, fitted: null, over: null }, hides_rows: false, needs_features: false,
    model: choice("model"), pseudo_items: choice("pseudo_items"), virtual_ratings: choice("virtual_ratings"), encoder: choice("encoder"), channel: choice("channel"),
  };
  return { presets: [preset], arrays: [], step: 1 };
}
