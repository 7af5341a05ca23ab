/** An upload in the clear, row by row: the truth on the device, the numbers that leave, what the server reads. */
import type { InTheClear, LeakRow } from "../attack/leak";
import { restore } from "../engine/recommender";
import type { Context } from "../context";
import { element, icon } from "./dom";
import { nameOf } from "./rate";
import { ratingText } from "./stars";
import { t } from "./texts";

const SHOWN = 24;

export function uploadPicture(context: Context, leak: InTheClear): HTMLElement {
  const largest = strongColour(leak.rows);
  const body = element("tbody");
  const add = (rows: readonly LeakRow[]): void => rows.forEach((each) => body.append(tableRow(context, each, largest)));
  add(leak.rows.slice(0, SHOWN));
  const left = leak.rows.slice(SHOWN);
  const all = element(
    "button",
    { type: "button", class: "more", onclick: () => (add(left), all.remove()) },
    t("leaves.more-rows", { count: left.length }),
  );
  const head = (text: string, about: string): HTMLElement =>
    element("th", { scope: "col" }, element("span", { class: "column-title" }, text), element("span", { class: "column-about" }, about));
  return element(
    "div",
    { class: "upload" },
    element(
      "table",
      {},
      element("caption", { class: "visually-hidden" }, t("leaves.table")),
      element(
        "thead",
        {},
        element("tr", {}, head(t("column.device"), t("column.device-about")), head(t("column.upload"), t("column.upload-about")), head(t("column.server"), t("column.server-about"))),
      ),
      body,
    ),
    left.length ? all : null,
  );
}

/** What is shown in full colour: the largest numbers but a few, which would make all others pale. */
function strongColour(rows: readonly LeakRow[]): number {
  const sizes = rows.flatMap((each) => Array.from(each.cells, Math.abs)).sort((a, b) => a - b);
  return Math.max(sizes[Math.floor(0.97 * (sizes.length - 1))] ?? 0, 1e-300);
}

function tableRow(context: Context, each: LeakRow, largest: number): HTMLElement {
  const right = each.taken === each.rated;
  return element(
    "tr",
    { class: each.rated ? "real" : "decoy" },
    element("td", {}, element("div", { class: "truth" }, each.rated ? nameOf(context, each.item) : decoyName(context, each.item), stars(context, each.rating))),
    element("td", { class: "sent" }, strip(each.cells, largest)),
    element(
      "td",
      { class: `guess ${each.rated && right ? "exposed" : right ? "seen-through" : "fooled"}` },
      element("span", { class: "says" }, each.taken ? t("guess.rated") : t("guess.decoy")),
      each.taken ? stars(context, each.read) : null,
      element("span", { class: "mark" }, right ? t("guess.right") : t("guess.wrong")),
    ),
  );
}

function decoyName(context: Context, item: number): HTMLElement {
  const name = nameOf(context, item);
  name.prepend(element("span", { class: "tag" }, t("leaves.decoy")), " ");
  return name;
}

/** A rating for the eye, with its words for those who listen. */
function stars(context: Context, standard: number): HTMLElement {
  const { scale } = context;
  const rating = restore(scale, standard);
  const exact = Math.round(rating * 10) / 10;
  const filled = Math.round(((rating - scale.low) / (scale.high - scale.low)) * 4) + 1;
  const drawn = Array.from({ length: 5 }, (_, place) => icon("star", place < filled ? "icon on" : "icon"));
  return element("span", { class: "given" }, element("span", { class: "visually-hidden" }, ratingText(scale, exact)), ...drawn);
}

/** The row's numbers as coloured cells: one colour for up, another for down, stronger for more. */
function strip(cells: Float64Array, largest: number): HTMLElement {
  const canvas = element("canvas", { class: "cells", role: "img", "aria-label": t("leaves.numbers", { count: cells.length }) });
  canvas.width = cells.length;
  canvas.height = 1;
  const paint = canvas.getContext("2d")!;
  cells.forEach((value, at) => {
    const strength = Math.sqrt(Math.min(Math.abs(value) / largest, 1));
    paint.fillStyle = value > 0 ? `rgb(224 112 32 / ${strength})` : `rgb(38 120 200 / ${strength})`;
    paint.fillRect(at, 0, 1, 1);
  });
  return canvas;
}
