/** What has left the device, when and how much, and the switch that stops it. */
import type { Store } from "../store/store";
import { element } from "./dom";
import { t } from "./texts";

type Device = NonNullable<Store["device"]>;

const EVERY = 15_000;
const SHOWN = 50;

export function devicePanel(device: Device, failed: (error: unknown) => void): HTMLElement {
  const state = element("p", { role: "status", class: "quiet" });
  const total = element("p", {});
  const rows = element("tbody", {});
  const toggle = element("button", { type: "button", role: "switch", id: "pause", "aria-checked": "false" }, t("device.pause"));
  const refresh = async (): Promise<void> => {
    const { paused, messages, bytes, latest } = await device.sent();
    toggle.setAttribute("aria-checked", String(paused));
    state.textContent = t(paused ? "device.paused" : "device.takes-part");
    total.textContent = messages ? t("device.total", { count: messages, size: size(bytes) }) : t("device.nothing");
    rows.replaceChildren(
      ...latest.slice(0, SHOWN).map((message) => {
        const when = element("time", { datetime: message.when }, new Date(message.when).toLocaleString());
        return element("tr", {}, element("td", {}, when), element("td", {}, message.what), element("td", { class: "number" }, size(message.bytes)));
      }),
    );
    table.hidden = !messages;
  };
  toggle.addEventListener("click", () => {
    const paused = toggle.getAttribute("aria-checked") !== "true";
    device.pause!(paused).then(refresh).catch(failed);
  });
  const table = element(
    "table",
    {},
    element("caption", { class: "visually-hidden" }, t("device.title")),
    element("thead", {}, element("tr", {}, ...["when", "what", "size"].map((name) => element("th", { scope: "col" }, t(`device.${name}`))))),
    rows,
  );
  if (!device.pause) toggle.hidden = state.hidden = true;
  device.onSent?.(() => void refresh().catch(failed));
  refresh().catch(failed);
  setInterval(() => void (document.hidden || refresh().catch(() => undefined)), EVERY);
  return element(
    "section",
    { class: "panel device", "aria-labelledby": "device-title" },
    element("h2", { id: "device-title" }, t("device.title")),
    element("div", { class: "buttons" }, toggle),
    state,
    total,
    element("div", { class: "scrolls", tabindex: "0", role: "group", "aria-labelledby": "device-title" }, table),
  );
}

function size(bytes: number): string {
  return t("device.kilobytes", { count: Math.round(bytes / 100) / 10 });
}
