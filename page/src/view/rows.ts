/** Lists whose rows keep their nodes, and with them the focus, while their order changes. */

const MOVED = { duration: 260, easing: "cubic-bezier(.2,.7,.2,1)" };

export interface Row<T> {
  readonly node: HTMLElement;
  update(value: T, place: number): void;
}

export class Rows<T> {
  private readonly rows = new Map<number, Row<T>>();

  constructor(
    readonly node: HTMLElement,
    private readonly make: (key: number) => Row<T>,
  ) {}

  /** Show these rows in this order; rows that were there already glide to their new place. */
  show(wanted: readonly (readonly [number, T])[]): void {
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const before = new Map(still ? [] : [...this.rows].map(([key, row]) => [key, row.node.offsetTop] as const));
    const focused = this.placeOfFocus();
    const kept = new Set(wanted.map(([key]) => key));
    for (const [key, row] of this.rows) {
      if (kept.has(key)) continue;
      row.node.remove();
      this.rows.delete(key);
    }
    wanted.forEach(([key, value], place) => {
      const row = this.rows.get(key) ?? this.make(key);
      this.rows.set(key, row);
      row.update(value, place);
      const there = this.node.children[place];
      if (there !== row.node) this.node.insertBefore(row.node, there ?? null);
    });
    if (!still) this.glide(before);
    this.restoreFocus(focused, wanted.length);
  }

  private glide(before: ReadonlyMap<number, number>): void {
    for (const [key, row] of this.rows) {
      const old = before.get(key);
      const now = row.node.offsetTop;
      if (old === undefined) row.node.animate([{ opacity: 0 }, { opacity: 1 }], MOVED);
      else if (Math.abs(old - now) > 1) row.node.animate([{ transform: `translateY(${old - now}px)` }, { transform: "none" }], MOVED);
    }
  }

  private placeOfFocus(): { place: number; control: string } | null {
    const active = document.activeElement;
    const place = Array.from(this.node.children).findIndex((row) => row.contains(active));
    return place < 0 ? null : { place, control: controlOf(active) };
  }

  /** Where the focused row went away, the row that took its place has the focus, on the same control. */
  private restoreFocus(focused: { place: number; control: string } | null, count: number): void {
    if (!focused || this.node.contains(document.activeElement) || count === 0) return;
    const row = this.node.children[Math.min(focused.place, count - 1)]!;
    const same = row.querySelector<HTMLElement>(focused.control) ?? row.querySelector<HTMLElement>("button");
    same?.focus();
  }
}

function controlOf(active: Element | null): string {
  const name = active?.getAttribute("data-control");
  return name ? `[data-control="${name}"]` : '.star[tabindex="0"]';
}
