/** One run of a feed: what it works with, under which lease, and what it has done so far. */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Connection } from '#monitor/operations-client/index.ts';
import type { Lease } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Feed, FeedWork } from './feed.ts';
import type { FeedItem } from './round.ts';

export interface RunDeps {
  db: () => Queryable;
  connection: Connection;
  clock: Clock;
  reporter: Reporter;
  feed: Feed;
  work: FeedWork<FeedItem, unknown, unknown>;
  intervalSeconds: number;
}

/** The lease under which a run works. */
export interface Turn {
  lease: Lease;
  /** False when the lease was lost. */
  renew(): Promise<boolean>;
  signal: AbortSignal;
}

/** What a tick does, and one after it in the same pass adds to. */
export interface Run {
  counts: Record<string, number>;
  error: string | null;
  acknowledged: number | null;
  /** A fault ended the run that the next call would meet too. */
  isHalted: boolean;
  isLast: boolean;
  /** Null: all items are due. */
  notVisitedSince: Date | null;
}
