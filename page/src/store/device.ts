/** The store of the device that this page runs on, over its own server on 127.0.0.1. */
import { t } from "../view/texts";
import type { Mark, Saved, SentSoFar, Store } from "./store";

const TOKEN = "X-Device-Token";
const KEPT = "device-token";

interface SavedRows {
  readonly ratings: readonly (readonly [string, number])[];
  readonly marks: Readonly<Record<string, Mark>>;
}

interface SentLine {
  readonly at: string;
  readonly stage: string;
  readonly round: number;
  readonly rows: number;
  readonly bytes: number;
  readonly again: number;
}

interface SentLines extends Omit<SentSoFar, "latest"> {
  readonly sent: readonly SentLine[];
}

export class DeviceStore implements Store {
  private constructor(private readonly token: string) {}

  /** The store of the page's device; null on a static site. The token leaves the address bar, and stays in this tab. */
  static here(): DeviceStore | null {
    if (!("device" in document.documentElement.dataset)) return null;
    const given = new URLSearchParams(location.hash.slice(1)).get("token");
    if (given) {
      sessionStorage.setItem(KEPT, given);
      history.replaceState(null, "", location.pathname);
    }
    return new DeviceStore(sessionStorage.getItem(KEPT) ?? "");
  }

  /** A file or an answer of the device; an error in its own words. */
  async fetch(name: string, change?: object): Promise<Response> {
    const headers: Record<string, string> = { [TOKEN]: this.token };
    if (change) headers["Content-Type"] = "application/json";
    const how: RequestInit = { headers, cache: "no-store" };
    const response = await fetch(name, change ? { ...how, method: "POST", body: JSON.stringify(change) } : how);
    if (!response.ok) throw new Error(await problemOf(response));
    return response;
  }

  async load(): Promise<Saved> {
    const saved = (await (await this.fetch("api/saved")).json()) as SavedRows;
    return { ratings: new Map(saved.ratings), marks: new Map(Object.entries(saved.marks)) };
  }

  async rate(item: string, rating: number): Promise<void> {
    await this.fetch("api/rate", { item, rating });
  }

  async forget(item: string): Promise<void> {
    await this.fetch("api/unrate", { item });
  }

  async mark(item: string, mark: Mark): Promise<void> {
    await this.fetch("api/mark", { item, mark });
  }

  async unmark(item: string): Promise<void> {
    await this.fetch("api/mark", { item, mark: null });
  }

  /** `device forget`: ratings, secret, key and log. The device's server ends with it. */
  async clear(): Promise<void> {
    await this.fetch("api/forget", { sure: true });
    sessionStorage.removeItem(KEPT);
  }

  readonly device = {
    sent: async (): Promise<SentSoFar> => {
      const { sent, ...total } = (await (await this.fetch("api/sent")).json()) as SentLines;
      return { ...total, latest: sent.map((line) => ({ when: line.at, what: inWords(line), bytes: line.bytes })) };
    },
    pause: async (paused: boolean): Promise<void> => {
      await this.fetch("api/pause", { paused });
    },
  };
}

function inWords(line: SentLine): string {
  const what = line.stage === "upload" ? t("device.upload", { count: line.rows }) : t("device.stage", { stage: line.stage });
  return t(line.again ? "device.line-again" : "device.line", { what, round: line.round });
}

async function problemOf(response: Response): Promise<string> {
  const { problem, remedy } = (await response.json().catch(() => ({}))) as { problem?: string; remedy?: string };
  return [problem ?? `${response.status}`, remedy].filter(Boolean).join(": ");
}
