/** Where a person's ratings lie. The static site has IndexedDB; the page of a device has that device's own store. */

export type Mark = "seen" | "hidden";

export interface Saved {
  /** item id → rating on the data's scale, in the order in which they were given */
  readonly ratings: ReadonlyMap<string, number>;
  readonly marks: ReadonlyMap<string, Mark>;
}

/** One message that the device sent. */
export interface SentMessage {
  readonly when: string;
  readonly what: string;
  readonly bytes: number;
}

/** Everything that a device has sent, and whether it pauses now. */
export interface SentSoFar {
  readonly paused: boolean;
  readonly messages: number;
  readonly bytes: number;
  /** the last ones, newest first */
  readonly latest: readonly SentMessage[];
}

export interface Store {
  /** false where nothing is kept beyond this page; known after loading */
  readonly lasts?: boolean;
  load(): Promise<Saved>;
  rate(item: string, rating: number): Promise<void>;
  forget(item: string): Promise<void>;
  mark(item: string, mark: Mark): Promise<void>;
  unmark(item: string): Promise<void>;
  /** Remove everything that this store holds of the person. */
  clear(): Promise<void>;
  /** A device that takes part in rounds: what it sent so far, and whether it pauses. Absent in the browser's own. */
  readonly device?: {
    sent(): Promise<SentSoFar>;
    /** absent where leaving takes its place */
    pause?(paused: boolean): Promise<void>;
    /** calls back after a message */
    onSent?(listener: () => void): void;
  };
}
