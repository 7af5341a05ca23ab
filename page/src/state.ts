/** A person's ratings and marks, every change of them, and how to take it back. */
import type { Mark, Saved, Store } from "./store/store";

export interface Change {
  readonly item: number;
  readonly rating: number | null;
  readonly mark: Mark | null;
}

/** What was done, for the line that offers to undo it. */
export interface Step {
  readonly text: string;
  readonly before: readonly Change[];
}

const MOST_STEPS = 100;

export class State {
  readonly ratings = new Map<number, number>();
  readonly marks = new Map<number, Mark>();
  private readonly steps: Step[] = [];
  private readonly listeners: ((step: Step | null) => void)[] = [];
  private writing: Promise<void> = Promise.resolve();

  constructor(
    private readonly store: Store,
    private readonly ids: readonly string[],
    private readonly failed: (error: unknown) => void,
  ) {}

  async load(): Promise<void> {
    const places = new Map(this.ids.map((id, item) => [id, item]));
    const saved: Saved = await this.store.load();
    const known = <T>(from: ReadonlyMap<string, T>, to: Map<number, T>): void =>
      from.forEach((value, id) => {
        const item = places.get(id);
        if (item !== undefined) to.set(item, value);
      });
    known(saved.ratings, this.ratings);
    known(saved.marks, this.marks);
  }

  /** Whether ratings are still there when the page is opened again. */
  get lasts(): boolean {
    return this.store.lasts ?? true;
  }

  /** Call back after every change, with the step that can be undone, or null. */
  onChange(listener: (step: Step | null) => void): void {
    this.listeners.push(listener);
  }

  rate(item: number, rating: number, text: string): void {
    this.apply([{ item, rating, mark: null }], text);
  }

  forget(item: number, text: string): void {
    this.apply([{ item, rating: null, mark: this.marks.get(item) ?? null }], text);
  }

  mark(item: number, mark: Mark | null, text: string): void {
    this.apply([{ item, rating: this.ratings.get(item) ?? null, mark }], text);
  }

  /** Several changes that are undone together. */
  apply(changes: readonly Change[], text: string): void {
    const step = { text, before: changes.map(({ item }) => this.now(item)) };
    this.steps.push(step);
    if (this.steps.length > MOST_STEPS) this.steps.shift();
    changes.forEach((change) => this.set(change));
    this.tell(step);
  }

  /** Take the last step back; null where there is none. */
  undo(): Step | null {
    const step = this.steps.pop() ?? null;
    step?.before.forEach((change) => this.set(change));
    if (step) this.tell(null);
    return step;
  }

  /** Delete everything, for good. */
  async clear(): Promise<void> {
    await this.writing;
    await this.store.clear();
    this.ratings.clear();
    this.marks.clear();
    this.steps.length = 0;
    this.tell(null);
  }

  /** When all changes so far have reached the store. */
  saved(): Promise<void> {
    return this.writing;
  }

  /** Nothing of the person's changed, and what is made of it did. */
  refresh(): void {
    this.tell(null);
  }

  private now(item: number): Change {
    return { item, rating: this.ratings.get(item) ?? null, mark: this.marks.get(item) ?? null };
  }

  private set({ item, rating, mark }: Change): void {
    const id = this.ids[item]!;
    const { store } = this;
    if (rating === null) {
      if (this.ratings.delete(item)) this.write(() => store.forget(id));
    } else if (this.ratings.get(item) !== rating) {
      this.ratings.set(item, rating);
      this.write(() => store.rate(id, rating));
    }
    if (mark === null) {
      if (this.marks.delete(item)) this.write(() => store.unmark(id));
    } else if (this.marks.get(item) !== mark) {
      this.marks.set(item, mark);
      this.write(() => store.mark(id, mark));
    }
  }

  private write(change: () => Promise<void>): void {
    this.writing = this.writing.then(change).catch(this.failed);
  }

  private tell(step: Step | null): void {
    this.listeners.forEach((listener) => listener(step));
  }
}
