/** A masked upload: what the server gets is a table of random numbers. */
import type { Masked, Rated } from "../attack/leak";
import { restore } from "../engine/recommender";
import type { Context } from "../context";
import { element, icon } from "./dom";
import { nameOf } from "./rate";
import { t } from "./texts";

const MOST_ROWS = 160;
const SAMPLE = 12;
const MINE = 12;

export function maskedPicture(context: Context, leak: Masked, person: Rated): HTMLElement {
  const mine = Array.from(person.items).slice(0, MINE);
  const more = person.items.length - mine.length;
  const own = mine.map((item, place) => element("li", {}, nameOf(context, item), given(context, person.ratings[place]!)));
  const column = (name: string, ...children: (Node | null)[]): HTMLElement =>
    element(
      "div",
      { class: `side ${name}` },
      element("h3", {}, element("span", { class: "column-title" }, t(`column.${name}`)), element("span", { class: "column-about" }, t(`masked.${name}-about`))),
      ...children,
    );
  return element(
    "div",
    { class: "masked" },
    column("device", element("ul", {}, ...own, more > 0 ? element("li", { class: "quiet" }, t("masked.more", { count: more })) : null)),
    column("upload", noise(leak), element("p", { class: "ring" }, ringNumbers(leak.bits)), size(leak)),
    column(
      "server",
      element("div", { class: "nothing" }, icon("lock", "icon large"), element("p", { class: "nothing-title" }, t("masked.nothing")), element("p", { class: "quiet" }, t("masked.why"))),
    ),
  );
}

function given(context: Context, standard: number): HTMLElement {
  const rating = restore(context.scale, standard);
  return element("span", { class: "given-number" }, icon("star", "icon gold"), String(Math.round(rating * 10) / 10));
}

function size(leak: Masked): HTMLElement {
  const kilobytes = Math.round(leak.bytes / 1000);
  return element("p", { class: "quiet" }, t("masked.size", { rows: leak.items, columns: leak.columns, kilobytes }));
}

/** Ring numbers are uniform whatever is behind them, so these are as good as the real ones: drawn by this browser. */
function noise(leak: Masked): HTMLElement {
  const rows = Math.min(leak.items, MOST_ROWS);
  const canvas = element("canvas", { class: "noise", role: "img", "aria-label": t("masked.picture") });
  canvas.width = leak.columns;
  canvas.height = rows;
  const paint = canvas.getContext("2d")!;
  const image = paint.createImageData(leak.columns, rows);
  const draws = crypto.getRandomValues(new Uint8Array(leak.columns * rows));
  draws.forEach((draw, at) => {
    const signed = draw / 127.5 - 1;
    image.data.set(signed > 0 ? [224, 112, 32] : [38, 120, 200], 4 * at);
    image.data[4 * at + 3] = Math.round(255 * Math.sqrt(Math.abs(signed)));
  });
  paint.putImageData(image, 0, 0);
  return canvas;
}

function ringNumbers(bits: number): string {
  const draws = crypto.getRandomValues(new Uint32Array(SAMPLE));
  return `${Array.from(draws, (draw) => (draw >>> (32 - bits)).toString(16).padStart(bits / 4, "0")).join(" ")} …`;
}
