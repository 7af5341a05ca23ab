/** Rating by mouse, touch and keyboard: arrows move, Enter rates, digits rate at once. */
import type { Context } from "../context";
import type { Scale } from "../engine/format";
import { element, icon } from "./dom";
import { t } from "./texts";

const MOST_BUTTONS = 10;

export interface Rater {
  readonly node: HTMLElement;
  show(rating: number | null): void;
}

/** A rating on the scale, in words. */
export function ratingText(scale: Scale, rating: number): string {
  if (likes(scale)) return t(rating > scale.low ? "rating.like" : "rating.no-like");
  return t("rating.of", { rating: String(rating), high: String(scale.high) });
}

/** Whether a scale has two levels. */
export function likes(scale: Scale): boolean {
  return scale.high - scale.low === scale.step;
}

/** What can be given: of two levels the like first, and alone where nobody can give the other. */
function levelsOf({ scale, model }: Context): number[] {
  const count = Math.round((scale.high - scale.low) / scale.step) + 1;
  const all = Array.from({ length: count }, (_, level) => scale.low + level * scale.step);
  if (!likes(scale)) return all;
  return model.facts.likes_alone ? all.slice(-1) : all.reverse();
}

/** Buttons for a short scale, a slider for a long one. */
export function rater(context: Context, title: string, rate: (rating: number) => void): Rater {
  const { scale } = context;
  const levels = levelsOf(context);
  return levels.length > MOST_BUTTONS ? slider(scale, title, rate) : buttons(scale, levels, title, rate);
}

function buttons(scale: Scale, levels: readonly number[], title: string, rate: (rating: number) => void): Rater {
  let current: number | null = null;
  const half = levels.length > 5 ? " halves" : "";
  const thumbs = levels[0] === scale.high && levels.length > 1;
  const each = levels.map((rating, place) =>
    element(
      "button",
      {
        type: "button",
        class: "star",
        "aria-label": t("rate.star", { title, rating: ratingText(scale, rating) }),
        tabindex: place ? -1 : 0,
        onclick: () => rate(rating),
        onpointerenter: (event: PointerEvent) => event.pointerType === "mouse" && light(place),
      },
      icon(thumbs ? (place ? "dislike" : "like") : "star"),
    ),
  );
  const isLit = (place: number, chosen: number): boolean => (thumbs ? place === chosen : place <= chosen);
  const light = (chosen: number): void => each.forEach((button, place) => button.classList.toggle("lit", isLit(place, chosen)));
  const placeOf = (rating: number | null): number => (rating === null ? -1 : levels.indexOf(rating));
  const focus = (place: number): void => {
    each.forEach((button, at) => (button.tabIndex = at === place ? 0 : -1));
    each[place]!.focus();
  };
  const onkeydown = (event: KeyboardEvent): void => {
    const at = each.indexOf(event.target as HTMLButtonElement);
    const moves: Record<string, number> = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: each.length - 1 };
    const to = moves[event.key];
    if (to !== undefined) {
      event.preventDefault();
      const place = Math.min(Math.max(to, 0), each.length - 1);
      focus(place);
      light(place);
    } else if (!event.ctrlKey && !event.metaKey && !event.altKey && /^[0-9]$/.test(event.key)) {
      const rating = Number(event.key);
      if (levels.includes(rating)) rate(rating);
    }
  };
  const back = (): void => light(placeOf(current));
  const node = element(
    "div",
    { class: `stars${half}`, role: "group", "aria-label": t("rate.group", { title }), onkeydown, onpointerleave: back, onfocusout: back },
    ...each,
  );
  const show = (rating: number | null): void => {
    current = rating;
    const chosen = placeOf(rating);
    each.forEach((button, place) => {
      button.setAttribute("aria-pressed", String(place === chosen));
      button.tabIndex = place === Math.max(chosen, 0) ? 0 : -1;
    });
    light(chosen);
  };
  show(null);
  return { node, show };
}

function slider(scale: Scale, title: string, rate: (rating: number) => void): Rater {
  const value = element("output", { class: "slider-value" });
  const input = element("input", {
    type: "range",
    min: scale.low,
    max: scale.high,
    step: scale.step,
    "aria-label": t("rate.group", { title }),
    oninput: () => (value.textContent = input.value),
    onchange: () => rate(Number(input.value)),
  });
  const show = (rating: number | null): void => {
    input.value = String(rating ?? (scale.low + scale.high) / 2);
    value.textContent = rating === null ? "" : String(rating);
  };
  show(null);
  return { node: element("div", { class: "slider" }, input, value), show };
}
