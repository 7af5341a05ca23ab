/** The panel "What leaves": one round's upload under every preset, and what the server reads from it. */
import { leakOf, newSecret } from "../engine.js";
import type { LeavesFacts, Preset } from "../attack/leaves";
import type { InTheClear, Leak, Rated } from "../attack/leak";
import type { Context } from "../context";
import { standardise } from "../engine/recommender";
import { element, icon } from "./dom";
import { maskedPicture } from "./masked";
import { has, t } from "./texts";
import { uploadPicture } from "./upload";

/** What the panel shows until somebody rates: the best known titles, with made-up ratings. */
const EXAMPLE = [5, 4, 2, 5, 3, 4];

export function leavesPanel(context: Context, facts: LeavesFacts, bytes: ArrayBuffer): HTMLElement {
  const secret = newSecret();
  const chosen = facts.presets.find((preset) => preset.own) ?? facts.presets[0]!;
  const tabs = new Map(facts.presets.map((preset) => [preset.name, tab(preset, () => choose(preset))]));
  const list = element("div", { class: "presets", role: "tablist", "aria-label": t("leaves.presets") }, ...[...tabs.values()].map((each) => each.node));
  const about = element("p", { class: "quiet example" });
  const picture = element("div", { class: "picture", role: "tabpanel", id: "picture", tabindex: "0" });
  const leaks = new Map<string, Leak>();
  let current = chosen;
  let turn = 0;

  const choose = (preset: Preset): void => {
    current = preset;
    tabs.forEach((each, name) => each.select(name === preset.name));
    const { node } = tabs.get(preset.name)!; // in a narrow window the tabs scroll
    list.scrollTo({ left: node.offsetLeft - list.offsetLeft - (list.clientWidth - node.offsetWidth) / 2 });
    const leak = leaks.get(preset.name);
    if (leak) picture.replaceChildren(...draw(context, preset, leak));
    picture.setAttribute("aria-labelledby", tabs.get(preset.name)!.node.id);
  };

  /** One preset after the other, the chosen one first, so that the page never stands still for all of them. */
  const compute = (): void => {
    const mine = ++turn;
    const person = ratedOf(context);
    about.textContent = context.state.ratings.size ? "" : t("leaves.example");
    about.hidden = !about.textContent;
    const waiting = [current, ...facts.presets.filter((preset) => preset !== current)];
    const next = (): void => {
      const preset = waiting.shift();
      if (!preset || mine !== turn) return;
      const leak = leakOf(preset, person, secret, facts, bytes, context.model);
      leaks.set(preset.name, leak);
      tabs.get(preset.name)!.show(leak);
      if (preset === current) choose(current);
      setTimeout(next);
    };
    next();
    performance.mark("leaves");
  };

  list.addEventListener("keydown", (event) => {
    const names = facts.presets.map((preset) => preset.name);
    const at = names.indexOf(current.name);
    const moves: Record<string, number> = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 };
    const to = moves[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const preset = facts.presets[(to + names.length) % names.length]!;
    choose(preset);
    tabs.get(preset.name)!.node.focus();
  });

  const visible = (): boolean => document.body.dataset["view"] === "leaves";
  let stale = true;
  const update = (): void => {
    if (stale && visible()) {
      stale = false;
      compute();
    }
  };
  context.state.onChange(() => {
    stale = true;
    update();
  });
  window.addEventListener("hashchange", () => setTimeout(update));
  setTimeout(update);
  choose(current);

  return element(
    "section",
    { class: "panel leaves", id: "leaves", "aria-labelledby": "leaves-title" },
    element("h2", { id: "leaves-title", tabindex: "-1" }, t("leaves.title")),
    element("p", { class: "quiet" }, t("leaves.about")),
    about,
    list,
    picture,
  );
}

/** The person's ratings in standard units, or the example's. */
function ratedOf(context: Context): Rated {
  const { state, model } = context;
  const ratings = new Map(state.ratings);
  if (!ratings.size) {
    const popular = Array.from(model.known.popularity.keys()).sort((a, b) => model.known.popularity[b]! - model.known.popularity[a]! || a - b);
    const { low, high, step } = context.scale;
    EXAMPLE.forEach((stars, place) => {
      const level = Math.round((((stars - 1) / 4) * (high - low)) / step);
      if (place < popular.length) ratings.set(popular[place]!, low + step * level);
    });
  }
  const items = Int32Array.from(ratings.keys()).sort();
  return { items, ratings: Float64Array.from(items, (item) => standardise(context.scale, ratings.get(item)!)) };
}

interface Tab {
  readonly node: HTMLElement;
  select(chosen: boolean): void;
  show(leak: Leak): void;
}

function tab(preset: Preset, choose: () => void): Tab {
  const verdict = element("span", { class: "verdict" }, "…");
  const meter = element("span", { class: "meter", "aria-hidden": "true" }, element("i"), element("i"));
  const name = element("span", { class: "preset-name" }, preset.name);
  const node = element("button", { type: "button", role: "tab", class: "preset", "aria-controls": "picture", onclick: choose }, name, meter, verdict);
  node.id = `preset-${preset.name.replace(/\W/g, "_")}`;
  const select = (chosen: boolean): void => {
    node.setAttribute("aria-selected", String(chosen));
    node.tabIndex = chosen ? 0 : -1;
  };
  const show = (leak: Leak): void => {
    node.dataset["kind"] = leak.kind;
    verdict.textContent = shortVerdict(leak);
    const shares = leak.kind === "uploads" ? [leak.named / leak.rated, leak.read / leak.rated] : [0, 0];
    shares.forEach((share, at) => (meter.children[at] as HTMLElement).style.setProperty("--share", String(share)));
  };
  return { node, select, show };
}

function shortVerdict(leak: Leak): string {
  if (leak.kind === "no-model") return t("verdict.short.no-model");
  if (leak.kind === "sums") return t("verdict.short.sums");
  return t("verdict.short.uploads", { named: leak.named, read: leak.read, rated: leak.rated });
}

function draw(context: Context, preset: Preset, leak: Leak): HTMLElement[] {
  const where = preset.own || !preset.table ? "" : t("leaves.table-of", { name: preset.trained_by });
  const summary = element("p", { class: "quiet summary" }, has(`preset.${preset.name}`) ? `${t(`preset.${preset.name}`)} ` : "", preset.own ? t("leaves.own") : where);
  if (leak.kind === "no-model") return [verdictLine("grey", t("verdict.no-model")), summary, element("p", { class: "quiet" }, t("leaves.no-model"))];
  if (leak.kind === "sums") {
    const label = leak.own ? null : element("p", { class: "quiet" }, t("leaves.another-table"));
    return [verdictLine("green", t("verdict.sums")), summary, maskedPicture(context, leak, ratedOf(context)), ...(label ? [label] : []), footnote(t("leaves.sums-note"))];
  }
  return [verdictLine(colourOf(leak), clearVerdict(leak)), summary, figures(leak), uploadPicture(context, leak), ...notes(preset)];
}

function notes(preset: Preset): HTMLElement[] {
  const peer = preset.channel.rule === "denoising" ? [footnote(t("leaves.denoising"))] : [];
  return [...peer, footnote(t("leaves.attack-note"))];
}

function footnote(text: string): HTMLElement {
  return element("p", { class: "quiet footnote" }, text);
}

/** Red where nearly all is read, amber where the attack does better than chance, green where it doesn't. */
function colourOf(leak: InTheClear): "red" | "amber" | "green" {
  const most = (leak.named / leak.rated + leak.read / leak.rated) / 2;
  const chance = (leak.namedByChance + leak.readFromAverages) / 2 / leak.rated;
  return most > 0.85 ? "red" : most > chance + 0.1 ? "amber" : "green";
}

function verdictLine(colour: string, text: string): HTMLElement {
  return element("p", { class: `verdict-line ${colour}` }, icon(colour === "green" ? "lock" : "eye"), text);
}

function clearVerdict(leak: InTheClear): string {
  const values = { named: leak.named, read: leak.read, count: leak.rated, decoys: leak.decoys };
  return leak.decoys ? t("verdict.decoys", values) : t("verdict.clear", values);
}

function figures(leak: InTheClear): HTMLElement {
  const round = (value: number): string => value.toLocaleString(document.documentElement.lang, { maximumFractionDigits: 1 });
  const figure = (name: string, value: number, chance: string): HTMLElement =>
    element(
      "div",
      { class: "figure" },
      element("span", { class: "figure-name" }, t(name)),
      element("span", { class: "figure-value" }, t("figure.of", { value, count: leak.rated })),
      element("span", { class: "figure-chance" }, chance),
    );
  return element(
    "div",
    { class: "figures" },
    figure("figure.titles", leak.named, t("figure.by-chance", { value: round(leak.namedByChance) })),
    figure("figure.ratings", leak.read, t("figure.from-averages", { value: leak.readFromAverages })),
    element(
      "div",
      { class: "figure" },
      element("span", { class: "figure-name" }, t("figure.size")),
      element("span", { class: "figure-value" }, t("figure.kilobytes", { value: round(leak.bytes / 1000) })),
      element("span", { class: "figure-chance" }, t("figure.rows", { rated: leak.rated, decoys: leak.decoys })),
    ),
  );
}
