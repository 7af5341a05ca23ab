/** Every text of the page is in `texts.json`; another language is another file. */

export type Texts = Readonly<Record<string, string>>;
type Values = Readonly<Record<string, string | number>>;

let texts: Texts = {};
let plural = new Intl.PluralRules("en");

/** Texts whose names begin with `instead` take the place of those without it. */
export function useTexts(loaded: Texts, instead = ""): void {
  const other = Object.entries(loaded).filter(([name]) => instead && name.startsWith(instead));
  texts = { ...loaded, ...Object.fromEntries(other.map(([name, text]) => [name.slice(instead.length), text])) };
  document.documentElement.lang = loaded["language"] ?? "en";
  plural = new Intl.PluralRules(document.documentElement.lang);
}

/** The text of a name, with {values} filled in; a `count` chooses between name.one and name.other. */
export function t(name: string, values: Values = {}): string {
  const count = values["count"];
  const key = typeof count === "number" && !(name in texts) ? `${name}.${plural.select(count)}` : name;
  const text = texts[key] ?? texts[`${name}.other`];
  if (text === undefined) throw new Error(`texts.json has no "${name}"`);
  return text.replace(/\{(\w+)\}/g, (_, each: string) => shown(values[each] ?? ""));
}

/** Whether there is a text of this name. */
export const has = (name: string): boolean => name in texts;

function shown(value: string | number): string {
  return typeof value === "number" ? value.toLocaleString(document.documentElement.lang) : value;
}
