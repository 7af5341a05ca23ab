/** A browser's database (IndexedDB): tables by name, and changes that are all made or none. */

/** One change: a value is put under its key, or what lies there goes. */
export interface Change {
  readonly table: string;
  readonly key: IDBValidKey;
  /** left away: delete */
  readonly value?: unknown;
}

export class Database {
  private opened: Promise<IDBDatabase> | null = null;

  constructor(
    private readonly name: string,
    private readonly tables: readonly string[],
  ) {}

  async get<T>(table: string, key: IDBValidKey): Promise<T | undefined> {
    const database = await this.database();
    return settled<T | undefined>(database.transaction(table).objectStore(table).get(key));
  }

  /** All values of a table, by their keys. */
  async all<T>(table: string): Promise<Map<IDBValidKey, T>> {
    const database = await this.database();
    const store = database.transaction(table).objectStore(table);
    const [keys, values] = await Promise.all([settled<IDBValidKey[]>(store.getAllKeys()), settled<T[]>(store.getAll())]);
    return new Map(keys.map((key, place) => [key, values[place]!]));
  }

  /** The greatest key of a table whose keys are numbers; 0 where it is empty. */
  async lastKey(table: string): Promise<number> {
    const database = await this.database();
    const cursor = await settled<IDBCursor | null>(database.transaction(table).objectStore(table).openKeyCursor(null, "prev"));
    return cursor ? Number(cursor.key) : 0;
  }

  /** Resolves when all changes are on the disk. */
  async write(changes: readonly Change[]): Promise<void> {
    const database = await this.database();
    const names = [...new Set(changes.map(({ table }) => table))];
    const transaction = database.transaction(names, "readwrite", { durability: "strict" });
    for (const change of changes) {
      const store = transaction.objectStore(change.table);
      if ("value" in change) store.put(change.value, change.key);
      else store.delete(change.key);
    }
    return new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error ?? new Error("the browser's storage is full"));
    });
  }

  /** The database itself goes. */
  async remove(): Promise<void> {
    (await this.opened)?.close();
    this.opened = null;
    await settled(indexedDB.deleteDatabase(this.name));
  }

  private database(): Promise<IDBDatabase> {
    return (this.opened ??= this.open());
  }

  private async open(): Promise<IDBDatabase> {
    const request = indexedDB.open(this.name, 1);
    request.onupgradeneeded = () => this.tables.forEach((table) => request.result.createObjectStore(table));
    const database = await settled<IDBDatabase>(request);
    database.onversionchange = () => database.close(); // another tab deletes it
    return database;
  }
}

function settled<T>(request: IDBRequest): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result as T);
    request.onerror = () => reject(request.error);
  });
}
