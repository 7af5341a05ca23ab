/** The panel for rating: search, something to begin with, and what was rated so far. */
import type { Context } from "../context";
import { element, icon } from "./dom";
import { Rows, type Row } from "./rows";
import { rater } from "./stars";
import { t } from "./texts";

const MOST_FOUND = 8;
const TO_BEGIN = 6;
const ENOUGH = 5;

export function ratePanel(context: Context): HTMLElement {
  const { model, items, state } = context;
  const results = new Rows<null>(element("ul", { class: "rows", id: "results" }), (item) => itemRow(context, item));
  const mine = new Rows<null>(element("ul", { class: "rows mine" }), (item) => itemRow(context, item, true));
  const marked = new Rows<null>(element("ul", { class: "rows" }), (item) => markedRow(context, item));
  const heading = element("h3");
  const found = element("p", { class: "visually-hidden", role: "status" });
  const count = element("h3");
  const nothing = element("p", { class: "quiet" }, t("rate.nothing"));
  const away = element("details", { class: "away" }, element("summary"), marked.node);

  const input = element("input", {
    type: "search",
    id: "search",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: t("search.example"),
    "aria-controls": "results",
    oninput: () => showResults(),
    onkeydown: (event: KeyboardEvent) => {
      if (event.key !== "ArrowDown" && event.key !== "Enter") return;
      event.preventDefault();
      results.node.querySelector<HTMLElement>('.star[tabindex="0"], input')?.focus();
    },
  });

  const beginners = popular(context);
  const showResults = (): void => {
    const query = input.value.trim();
    if (query) {
      const hits = items.search(query, model.known.popularity, MOST_FOUND);
      heading.textContent = hits.count ? t("search.found", { count: hits.count }) : t("search.none");
      found.textContent = heading.textContent;
      results.show(hits.found.map((item) => [item, null] as const));
    } else {
      const begin = state.ratings.size < ENOUGH ? beginners().slice(0, TO_BEGIN) : [];
      heading.textContent = begin.length ? t("rate.begin") : "";
      found.textContent = "";
      results.show(begin.map((item) => [item, null] as const));
    }
    heading.hidden = !heading.textContent;
  };

  const show = (): void => {
    showResults();
    count.textContent = state.ratings.size ? t("rate.mine", { count: state.ratings.size }) : t("rate.none");
    nothing.hidden = state.ratings.size > 0;
    mine.show([...state.ratings.keys()].reverse().map((item) => [item, null] as const));
    away.hidden = state.marks.size === 0;
    away.firstElementChild!.textContent = t("marks.title", { count: state.marks.size });
    marked.show([...state.marks.keys()].map((item) => [item, null] as const));
  };
  state.onChange(show);
  show();

  return element(
    "section",
    { class: "panel rate", id: "rate", "aria-labelledby": "rate-title" },
    element("h2", { id: "rate-title" }, t("rate.title")),
    element("div", { class: "search" }, icon("search"), element("label", { for: "search", class: "visually-hidden" }, t("search.label")), input),
    found,
    heading,
    results.node,
    count,
    nothing,
    mine.node,
    away,
  );
}

/** The best known items that are not rated yet. */
function popular(context: Context): () => number[] {
  const { model, state, items } = context;
  const order = Array.from({ length: items.count }, (_, item) => item);
  order.sort((a, b) => model.known.popularity[b]! - model.known.popularity[a]! || a - b);
  const best = order.slice(0, 200);
  return () => best.filter((item) => !state.ratings.has(item) && !state.marks.has(item));
}

export function nameOf(context: Context, item: number): HTMLElement {
  const year = context.items.year(item);
  return element("span", { class: "name" }, element("span", { class: "title" }, context.title(item)), year ? element("span", { class: "year" }, String(year)) : null);
}

function itemRow(context: Context, item: number, mine = false): Row<null> {
  const stars = rater(context, context.title(item), (rating) => context.rate(item, rating));
  const remove = element(
    "button",
    { type: "button", class: "small", "data-control": "remove", "aria-label": t("rate.remove-one", { title: context.title(item) }), onclick: () => context.forget(item) },
    icon("hide"),
  );
  const node = element("li", { class: "row" }, nameOf(context, item), stars.node, mine ? remove : null);
  return { node, update: () => stars.show(context.state.ratings.get(item) ?? null) };
}

function markedRow(context: Context, item: number): Row<null> {
  const kind = element("span", { class: "tag" });
  const back = element("button", { type: "button", class: "small text", "data-control": "back", onclick: () => context.mark(item, null) }, t("marks.back"));
  back.setAttribute("aria-label", t("marks.back-one", { title: context.title(item) }));
  const node = element("li", { class: "row" }, nameOf(context, item), kind, back);
  return { node, update: () => (kind.textContent = t(`marks.${context.state.marks.get(item) ?? "seen"}`)) };
}
