import type { Bounds, Counted, EventId } from './event-log.ts';

export interface StoredEvent {
  /** The limit's name. */
  log: string;
  key: string;
  event: EventId;
}

export interface TakeOrder extends StoredEvent, Bounds {
  /** Earlier events of this process that the store may not know. One that it knows is not counted twice. */
  later: readonly { id: EventId; ageMs: number }[];
}

/** Where several processes count together. */
export interface LimitStore {
  /** Grows when the store may have lost what it held. */
  readonly generation: number;
  /** Records an event if there is room for it; null while the store is not used. Never rejects. */
  take(order: TakeOrder): Promise<Counted | null>;
  /** Forgets an event. Never rejects; without the store the event goes with its window. */
  remove(event: StoredEvent): Promise<void>;
  /** Why it is not used, as a sentence; null while it is. */
  readonly problem: string | null;
  start(): Promise<void>;
  stop(): Promise<void>;
}
