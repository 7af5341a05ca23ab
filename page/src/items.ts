/** The catalogue: ids, titles, genres and years, and the search over titles. */

export interface ItemFacts {
  readonly ids: readonly string[];
  /** empty where the data has no titles */
  readonly titles: readonly string[];
  readonly genre_names: readonly string[];
  readonly genres: readonly (readonly number[])[];
}

const ARTICLE = /^(.*), (The|A|An|Les?|La|Der|Die|Das|El|Los|Las|Il|Lo|L'|Un|Une)( \(.*\))?$/;

export class Items {
  readonly titles: readonly string[];
  private readonly words: readonly string[];

  constructor(
    readonly facts: ItemFacts,
    readonly years: Float64Array,
    untitled: (id: string) => string,
  ) {
    this.titles = facts.ids.map((id, item) => readable(facts.titles[item] ?? "") || untitled(id));
    this.words = this.titles.map((title, item) => plain(`${title} ${years[item] || ""}`));
  }

  get count(): number {
    return this.facts.ids.length;
  }

  year(item: number): number {
    return this.years[item] ?? 0;
  }

  genres(item: number): readonly string[] {
    return (this.facts.genres[item] ?? []).map((place) => this.facts.genre_names[place]!);
  }

  hasGenre(item: number, place: number): boolean {
    return (this.facts.genres[item] ?? []).includes(place);
  }

  /** Titles with all these words, those that begin with them first, then the more popular. */
  search(query: string, popularity: Float64Array, most: number): { found: number[]; count: number } {
    const wanted = plain(query).split(" ").filter(Boolean);
    if (!wanted.length) return { found: [], count: 0 };
    const whole = wanted.join(" ");
    const rank = (item: number): number => (this.words[item]!.startsWith(whole) ? 0 : this.words[item]!.includes(` ${whole}`) ? 1 : 2);
    const found: number[] = [];
    for (let item = 0; item < this.count; item++) {
      if (wanted.every((word) => this.words[item]!.includes(word))) found.push(item);
    }
    found.sort((a, b) => rank(a) - rank(b) || popularity[b]! - popularity[a]! || a - b);
    return { found: found.slice(0, most), count: found.length };
  }
}

/** "Godfather, The" as people say it. */
export function readable(title: string): string {
  const found = ARTICLE.exec(title);
  if (!found) return title;
  return `${found[2]}${found[2] === "L'" ? "" : " "}${found[1]}${found[3] ?? ""}`;
}

/** Lower case, without accents and punctuation: what a search compares. */
function plain(text: string): string {
  return text
    .normalize("NFD")
    .replace(/[\u0300-\u036f]/g, "")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim();
}
