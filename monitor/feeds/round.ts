/** One tick of a feed as its parts see it: the items that are due, and what came of each. */

import { booleanSetting, integerSetting } from '#common/config/index.ts';
import type { Capabilities } from '#contracts/admin-api/contract.ts';
import type { OperationsClient } from '#monitor/operations-client/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** One item: what a cursor belongs to. */
export interface FeedItem {
  /** Names the item for good. A new owner of an id is another item. */
  readonly key: string;
  /** Where its delivery stands; null before its first visit. */
  readonly position: Position | null;
}

/** Figures and texts that say where the delivery of an item stands; only its feed reads them. */
export type Position = Readonly<Record<string, number | string>>;

/** What came of an item in one run. */
export interface Visit {
  readonly key: string;
  /** One of the declaration's outcomes. */
  readonly outcome: string;
  readonly position: Position | null;
  /** Parts that were not sent or not taken. */
  readonly setAside?: readonly SetAside[];
  /** Added to the run's counts. */
  readonly counts?: Readonly<Record<string, number>>;
  /** The newest observation that was acknowledged, seconds since 1970. */
  readonly acknowledged?: number | null;
}

/** A part of an item that is not sent again as it is; after an hour it is tried once more. */
export interface SetAside {
  /** Which part, as the feed numbers them: a minute is its start in seconds since 1970. */
  readonly part: number;
  readonly reason: string;
  /** Of the part's content: another content is another part. */
  readonly fingerprint: string;
}

/** One tick, as a feed sees it. */
export interface Round {
  readonly client: OperationsClient;
  /** What the receiver advertises. */
  readonly capabilities: Capabilities;
  /** Of the connection: another one is another operations, or another project of it. */
  readonly connectionRevision: number;
  /** The largest number of items of `due`. */
  readonly limit: number;
  /** Items visited since then are not due; null: all are. */
  readonly notVisitedSince: Date | null;
  /** Adds to a declared count of the run: what belongs to no item. */
  count(name: string, added: number): void;
  /** Renews the lease during long preparations; ends the tick when it was lost. */
  renew(): Promise<void>;
  /** Runs a transaction that commits only while the lease is held. */
  write(work: (trx: Queryable) => Promise<void>): Promise<void>;
  /** Of these candidates those that waited longest, at most `limit`, with their positions. */
  pickDue<T extends { key: string }>(candidates: readonly T[]): Promise<(T & FeedItem)[]>;
  /** By key: parts of these items that are set aside now. */
  listSetAside(keys: readonly string[]): Promise<ReadonlyMap<string, readonly SetAside[]>>;
}

/** Clusters that one request may name, by the contract. */
const clustersMax = 100;

/** The clusters that a request about this one names: those of its site; of more than a request may name, the hundred with it. */
export function clustersOfRequest(
  ofSite: readonly { clusterId: number }[],
  clusterId: number | undefined,
): number[] {
  const ids = ofSite.map((one) => one.clusterId).sort((a, b) => a - b);
  const at = clusterId === undefined ? 0 : Math.max(0, ids.indexOf(clusterId));
  return ids.slice(at - (at % clustersMax)).slice(0, clustersMax);
}

// When attacks and minute traffic are delivered: the settings of one loop in the eyes of an operator (NET-4.6).

export const opsDdosCadence = {
  isOn: booleanSetting(
    'SVC_OPS_DDOS_SYNC',
    true,
    'Whether serve also delivers incidents and minutes to operations; 0 leaves that to "./svc monitor sync_ops_ddos --loop".',
  ),
  seconds: integerSetting(
    'SVC_OPS_DDOS_SYNC_SECONDS',
    30,
    { min: 5, max: 3600, unit: 's' },
    'Pause between two deliveries of incidents and minutes to operations. A changed incident is delivered at once.',
  ),
} as const;
