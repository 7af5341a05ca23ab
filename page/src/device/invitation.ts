/** What an invitation's link says. It stands behind the #, so that no server's log ever has it. */

export interface Invitation {
  readonly code: string;
  /** digest of the task that it is to; empty where it names none */
  readonly task: string;
}

/** The invitation in the address bar, which loses it; null where there is none. */
export function takeInvitation(): Invitation | null {
  const said = new URLSearchParams(location.hash.slice(1));
  const code = said.get("code");
  if (!code) return null;
  history.replaceState(null, "", location.pathname);
  return { code, task: said.get("task")?.toLowerCase() ?? "" };
}

/** The server that this page is of: its own origin, or the one that its files name; null on a page of no server. */
export function serverOf(page: HTMLElement): string | null {
  const named = page.dataset["server"];
  return named === undefined ? null : named || location.origin;
}
