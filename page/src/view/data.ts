/** The person's own data: export, import, delete everything. */
import type { Context } from "../context";
import type { Change } from "../state";
import type { Mark } from "../store/store";
import { element } from "./dom";
import { t } from "./texts";

const KIND = "fedrecplus-ratings";
const LARGEST = 10_000_000;

interface Exported {
  readonly kind: string;
  readonly dataset: string;
  readonly ratings: readonly { item: string; title?: string; rating: number }[];
  readonly marks: readonly { item: string; title?: string; mark: Mark }[];
}

export function dataPanel(context: Context): HTMLElement {
  const said = element("p", { class: "quiet", role: "status" });
  const file = element("input", { type: "file", accept: "application/json,.json,text/csv,.csv", id: "import", class: "visually-hidden", tabindex: "-1", "aria-label": t("data.import") });
  file.addEventListener("change", () => {
    const chosen = file.files?.[0];
    file.value = "";
    if (chosen) void readFile(context, chosen).then((text) => (said.textContent = text));
  });
  const sure = confirmation(async () => {
    await context.state.clear();
    said.textContent = t("data.deleted");
  });
  return element(
    "section",
    { class: "panel data", "aria-labelledby": "data-title" },
    element("h2", { id: "data-title" }, t("data.title")),
    element("p", {}, t(context.state.lasts ? "data.where" : "data.not-kept")),
    element(
      "div",
      { class: "buttons" },
      element("button", { type: "button", id: "export", onclick: () => download(context) }, t("data.export")),
      element("button", { type: "button", onclick: () => file.click() }, t("data.import")),
      element("button", { type: "button", class: "danger", id: "delete", onclick: () => sure.showModal() }, t("data.delete")),
    ),
    file,
    said,
    aboutModel(context),
    sure,
  );
}

/** Where the model comes from, and what its small numbers cost. */
function aboutModel(context: Context): HTMLElement {
  const { facts } = context.model;
  const { precision, made } = facts;
  const digits = (value: number, most: number): string => value.toLocaleString(document.documentElement.lang, { maximumFractionDigits: most });
  const lines = [t("about.model", { algorithm: facts.algorithm, dataset: facts.dataset, items: context.items.count })];
  if (made["when"]) lines.push(t("about.made", { when: String(made["when"]).slice(0, 10), version: String(made["version"] ?? "") }));
  if (typeof made["rmse"] === "number") lines.push(t("about.error", { rmse: digits(made["rmse"], 3) }));
  const same = precision ? digits(100 * precision.same_top_ten, 0) : "";
  if (precision) lines.push(t("about.precision", { bits: precision.bits, mean: digits(precision.mean_change, 4), largest: digits(precision.largest_change, 3), same }));
  return element("details", { class: "about-model" }, element("summary", {}, t("about.title")), element("ul", {}, ...lines.map((line) => element("li", {}, line))));
}

function confirmation(remove: () => Promise<void>): HTMLDialogElement {
  const cancel = element("button", { type: "button", onclick: () => dialog.close() }, t("data.keep"));
  const sure = element("button", { type: "button", class: "danger", id: "delete-sure" }, t("data.delete-sure"));
  const dialog: HTMLDialogElement = element(
    "dialog",
    { "aria-labelledby": "delete-title" },
    element("h2", { id: "delete-title" }, t("data.delete-title")),
    element("p", {}, t("data.delete-means")),
    element("div", { class: "buttons" }, cancel, sure),
  );
  sure.addEventListener("click", () => {
    dialog.close();
    void remove();
  });
  return dialog;
}

function download(context: Context): void {
  const { state, items, model } = context;
  const of = (item: number) => ({ item: items.facts.ids[item]!, title: items.titles[item]! });
  const content: Exported = {
    kind: KIND,
    dataset: model.facts.dataset,
    ratings: [...state.ratings].map(([item, rating]) => ({ ...of(item), rating })),
    marks: [...state.marks].map(([item, mark]) => ({ ...of(item), mark })),
  };
  const address = URL.createObjectURL(new Blob([JSON.stringify(content, null, 2)], { type: "application/json" }));
  element("a", { href: address, download: "my-ratings.json" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

async function readFile(context: Context, file: File): Promise<string> {
  if (file.size > LARGEST) return t("data.too-large");
  try {
    const content = contentOf(await file.text());
    if (content.wrongLine) return t("data.line", { line: content.wrongLine });
    if (content.kind !== KIND || !Array.isArray(content.ratings)) return t("data.not-ours");
    const { changes, unknown } = read(context, content);
    if (!changes.length) return t("data.nothing");
    context.state.apply(changes, t("data.imported", { count: changes.length }));
    return unknown ? t("data.unknown", { count: unknown }) : t("data.imported", { count: changes.length });
  } catch {
    return t("data.not-ours");
  }
}

/** An export of this page, or lines of item and rating, between commas, semicolons or tabs; a heading may be. */
function contentOf(text: string): Partial<Exported> & { wrongLine?: number } {
  if (text.trimStart().startsWith("{")) return JSON.parse(text) as Partial<Exported>;
  const lines = text.split(/\r?\n/).map((line) => line.split(/[,;\t]/).map((field) => field.trim()));
  const wrong = lines.findIndex((fields) => fields.join("") && fields.length !== 2);
  if (wrong >= 0) return { wrongLine: wrong + 1 };
  const ratings = lines.filter((fields) => fields.join("")).map(([item = "", rating]) => ({ item, rating: rating ? Number(rating) : NaN }));
  return ratings.length ? { kind: KIND, ratings: ratings.slice(Number.isNaN(ratings[0]!.rating) ? 1 : 0), marks: [] } : {};
}

/** Ratings of known items that lie on the scale; everything else is counted and left out. */
function read(context: Context, content: Partial<Exported>): { changes: Change[]; unknown: number } {
  const places = new Map(context.items.facts.ids.map((id, item) => [id, item]));
  const { low, high, step } = context.scale;
  const changes = new Map<number, Change>();
  let unknown = 0;
  for (const each of content.ratings ?? []) {
    const item = places.get(String(each.item));
    const level = (Number(each.rating) - low) / step;
    const onScale = Math.abs(level - Math.round(level)) < 1e-4 && each.rating >= low && each.rating <= high;
    if (item !== undefined && onScale) changes.set(item, { item, rating: low + step * Math.round(level), mark: null });
    else unknown += 1;
  }
  for (const each of content.marks ?? []) {
    const item = places.get(String(each.item));
    const known = each.mark === "seen" || each.mark === "hidden";
    if (item !== undefined && known && !changes.has(item)) changes.set(item, { item, rating: null, mark: each.mark });
    else unknown += 1;
  }
  return { changes: [...changes.values()], unknown };
}
