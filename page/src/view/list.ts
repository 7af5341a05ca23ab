/** The list: what is recommended, why, and the filters. */
import { predictedRatings, reasons, scores, top } from "../engine.js";
import type { By, Reason } from "../engine/recommender";
import type { Context } from "../context";
import { element, icon } from "./dom";
import { nameOf } from "./rate";
import { Rows, type Row } from "./rows";
import { likes, rater, ratingText } from "./stars";
import { t } from "./texts";

const STEP = 12;
const MOST = 60;

interface Filters {
  genre: number;
  from: number;
  to: number;
  by: By;
  length: number;
}

interface Entry {
  readonly rating: number;
  readonly reasons: readonly Reason[] | null;
}

export function listPanel(context: Context): HTMLElement {
  const { model, items, state } = context;
  const filters: Filters = { genre: -1, from: 0, to: 9999, by: "list", length: STEP };
  const rows = new Rows<Entry>(element("ol", { class: "list" }), (item) => entryRow(context, item));
  const note = element("p", { class: "quiet" });
  const status = element("p", { class: "visually-hidden", role: "status" });
  const more = element("button", { type: "button", class: "more", onclick: () => longer() }, t("list.more"));
  const longer = (): void => {
    filters.length = Math.min(filters.length + STEP, MOST);
    show();
  };
  let waiting = 0;
  let turn = 0;

  const wanted = (item: number): boolean => {
    if (state.ratings.has(item) || state.marks.has(item)) return false;
    if (filters.genre >= 0 && !items.hasGenre(item, filters.genre)) return false;
    const year = items.year(item);
    return filters.from === 0 && filters.to === 9999 ? true : year >= filters.from && year <= filters.to;
  };

  const show = (): void => {
    const person = context.person();
    const found = top(scores(person, filters.by), model.known.popularity, filters.length, wanted);
    const predicted = predictedRatings(person, found);
    const entries = (why: Reason[][] | null): (readonly [number, Entry])[] =>
      found.map((item, place) => [item, { rating: predicted[place]!, reasons: why && why[place]! }] as const);
    document.body.toggleAttribute("data-rated", state.ratings.size > 0); // keeps room for reasons to come
    rows.show(entries(null));
    note.textContent = noteFor(context, found.length);
    note.hidden = !note.textContent;
    more.hidden = found.length < filters.length || filters.length >= MOST;
    status.textContent = found.length ? t("list.now", { title: context.title(found[0]!) }) : t("list.empty");
    performance.mark("list");
    // the list first, its reasons when it is on the screen
    cancelAnimationFrame(waiting);
    const mine = ++turn;
    if (!state.ratings.size) return;
    const explain = (): void => {
      if (mine !== turn) return;
      rows.show(entries(reasons(person, found, filters.by)));
      performance.mark("reasons");
    };
    waiting = requestAnimationFrame(() => setTimeout(explain));
  };

  state.onChange(() => show());
  show();
  return element(
    "section",
    { class: "panel recommended", id: "list", "aria-labelledby": "list-title" },
    element("h2", { id: "list-title" }, t("list.title")),
    filterBar(context, filters, () => {
      filters.length = STEP;
      show();
    }),
    status,
    note,
    rows.node,
    more,
  );
}

function noteFor(context: Context, found: number): string {
  if (found === 0) return t("list.empty");
  if (context.state.ratings.size === 0) return t("list.of-everybody");
  return context.model.facts.scores_lists ? "" : t("list.by-rating-alone");
}

function filterBar(context: Context, filters: Filters, changed: () => void): HTMLElement {
  const { items, model } = context;
  const bar = element("div", { class: "filters", role: "group", "aria-label": t("filters.label") });
  const add = (label: string, control: HTMLElement): void => bar.append(element("label", {}, element("span", {}, label), control));
  if (items.facts.genre_names.length) {
    const all = element("option", { value: "-1" }, t("filters.all-genres"));
    const names = items.facts.genre_names.map((name, place) => [name, place] as const).filter(([name]) => name !== "unknown");
    const options = names.sort((a, b) => a[0].localeCompare(b[0])).map(([name, place]) => element("option", { value: place }, name));
    const onchange = (): void => {
      filters.genre = Number(select.value);
      changed();
    };
    const select = element("select", { onchange }, all, ...options);
    add(t("filters.genre"), select);
  }
  const years = Array.from(new Set(items.years)).filter((year) => year > 0).sort((a, b) => a - b);
  if (years.length > 1) {
    const bound = (name: "from" | "to", otherwise: number): HTMLElement => {
      const first = String(years[0]);
      const last = String(years[years.length - 1]);
      const onchange = (): void => {
        filters[name] = input.value ? Number(input.value) : otherwise;
        changed();
      };
      const input = element("input", { type: "number", min: first, max: last, placeholder: name === "from" ? first : last, onchange });
      return input;
    };
    add(t("filters.from"), bound("from", 0));
    add(t("filters.to"), bound("to", 9999));
  }
  if (model.facts.scores_lists && !model.facts.likes_alone) {
    const onchange = (): void => {
      filters.by = select.value as By;
      changed();
    };
    const select = element("select", { onchange }, element("option", { value: "list" }, t("filters.by-list")), element("option", { value: "rating" }, t("filters.by-rating")));
    add(t("filters.by"), select);
  }
  return bar;
}

function entryRow(context: Context, item: number): Row<Entry> {
  const title = context.title(item);
  const place = element("span", { class: "place", "aria-hidden": "true" });
  const rating = element("span", { class: "predicted" });
  const why = element("p", { class: "why" });
  const stars = rater(context, title, (given) => context.rate(item, given));
  const action = (mark: "seen" | "hidden", drawing: "eye" | "hide"): HTMLElement =>
    element(
      "button",
      { type: "button", class: "small text", "data-control": mark, "aria-label": t(`list.${mark}-one`, { title }), onclick: () => context.mark(item, mark) },
      icon(drawing),
      element("span", {}, t(`list.${mark}`)),
    );
  const genres = context.items.genres(item).filter((name) => name !== "unknown");
  const node = element(
    "li",
    { class: "entry" },
    place,
    element(
      "div",
      { class: "about" },
      element("div", { class: "head" }, nameOf(context, item), rating),
      genres.length ? element("p", { class: "genres" }, genres.join(" · ")) : null,
      why,
      element("div", { class: "actions" }, stars.node, action("seen", "eye"), action("hidden", "hide")),
    ),
  );
  const update = (entry: Entry, at: number): void => {
    place.textContent = String(at + 1);
    stars.show(null);
    rating.replaceChildren(...predictedRating(context, entry.rating));
    if (entry.reasons || context.state.ratings.size === 0) why.replaceChildren(...because(context, entry.reasons ?? []));
  };
  return { node, update };
}

function predictedRating(context: Context, rating: number): (Node | string)[] {
  if (context.model.facts.likes_alone || likes(context.scale)) return [];
  const shown = rating.toLocaleString(document.documentElement.lang, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
  return [element("span", { class: "visually-hidden" }, t("list.predicted")), icon("star", "icon gold"), shown];
}

function because(context: Context, why: readonly Reason[]): (Node | string)[] {
  if (!why.length) return [];
  const each = why.map((reason) => {
    const given = context.state.ratings.get(reason.item);
    const rating = given === undefined ? "" : ratingText(context.scale, given);
    return element("span", { class: "reason", title: rating }, context.title(reason.item));
  });
  return [element("span", { class: "because" }, t("list.because")), ...each];
}
