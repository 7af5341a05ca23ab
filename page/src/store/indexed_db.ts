/** The browser's own store: nothing in it is ever sent. */
import type { Mark, Saved, Store } from "./store";

interface Rated {
  readonly item: string;
  readonly rating: number;
  /** when it was given: ratings are shown in that order */
  readonly at: number;
}

interface Marked {
  readonly item: string;
  readonly mark: Mark;
}

const VERSION = 1;

export class IndexedDbStore implements Store {
  private opened: Promise<IDBDatabase> | null = null;
  /** false where the browser keeps nothing, as some do in private windows: ratings then last as long as the page */
  lasts = true;

  /** One database per data set, so that a model trained anew finds the ratings again. */
  constructor(private readonly name: string) {}

  async load(): Promise<Saved> {
    this.lasts = await this.database().then(
      () => true,
      () => false,
    );
    if (!this.lasts) return { ratings: new Map(), marks: new Map() };
    const rated = await this.all<Rated>("ratings");
    const marked = await this.all<Marked>("marks");
    rated.sort((a, b) => a.at - b.at);
    return {
      ratings: new Map(rated.map((each) => [each.item, each.rating])),
      marks: new Map(marked.map((each) => [each.item, each.mark])),
    };
  }

  async rate(item: string, rating: number): Promise<void> {
    const before = await this.request<Rated | undefined>("ratings", "readonly", (table) => table.get(item));
    await this.request("ratings", "readwrite", (table) => table.put({ item, rating, at: before?.at ?? Date.now() }));
  }

  async forget(item: string): Promise<void> {
    await this.request("ratings", "readwrite", (table) => table.delete(item));
  }

  async mark(item: string, mark: Mark): Promise<void> {
    await this.request("marks", "readwrite", (table) => table.put({ item, mark }));
  }

  async unmark(item: string): Promise<void> {
    await this.request("marks", "readwrite", (table) => table.delete(item));
  }

  /** The database itself goes, not only what is in it. */
  async clear(): Promise<void> {
    if (!this.lasts) return;
    (await this.opened)?.close();
    this.opened = null;
    await settled(indexedDB.deleteDatabase(this.name));
  }

  private async all<T>(name: string): Promise<T[]> {
    return (await this.request<T[]>(name, "readonly", (table) => table.getAll())) ?? [];
  }

  private async request<T>(name: string, mode: IDBTransactionMode, ask: (table: IDBObjectStore) => IDBRequest): Promise<T | undefined> {
    if (!this.lasts) return undefined;
    const database = await this.database();
    const transaction = database.transaction(name, mode);
    const result = settled<T>(ask(transaction.objectStore(name)));
    return new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve(result);
      transaction.onabort = () => reject(transaction.error);
    });
  }

  private database(): Promise<IDBDatabase> {
    return (this.opened ??= this.open());
  }

  private async open(): Promise<IDBDatabase> {
    const request = indexedDB.open(this.name, VERSION);
    request.onupgradeneeded = () => {
      for (const name of ["ratings", "marks"]) request.result.createObjectStore(name, { keyPath: "item" });
    };
    return settled(request);
  }
}

function settled<T>(request: IDBRequest): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result as T);
    request.onerror = () => reject(request.error);
  });
}
