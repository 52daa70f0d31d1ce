/** The two engines of a move, with what it does to each. */
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type Engine, hasClickhouseFacts, readStoreId, writeStoreId } from '../clickhouse/engine-store.ts';
import { hasPostgresFacts, type SiteDay } from '../control/engine-use-store.ts';
import type { KeptBounds } from '../control/move-store.ts';
import { readVerdictEpoch } from '../control/verdict-span-store.ts';
import { createPartitionMaker } from '../postgres/partition-store.ts';
import { rollUp } from '../postgres/roll-up.ts';
import type { DaySums, SumBounds } from './clickhouse-day-store.ts';
import * as clickhouse from './clickhouse-day-store.ts';
import * as postgres from './postgres-day-store.ts';
import { copyToClickhouse } from './to-clickhouse-store.ts';
import { copyToPostgres } from './to-postgres-store.ts';

export interface MoveEnds {
  from: 'postgres' | 'clickhouse';
  /** The number of the target's tables; null: it is PostgreSQL, or has none. */
  readTargetId(): Promise<string | null>;
  writeTargetId(id: string): Promise<void>;
  targetHasFacts(): Promise<boolean>;
  listDays(fromMinute: number): Promise<clickhouse.MeasuredDay[]>;
  /** Copies a day anew; with `isAgain` something of it may be there. */
  copyDay(
    of: SiteDay & { kept: KeptBounds; peersFrom: number; isAgain: boolean },
    onRows: (rows: number) => Promise<void>,
  ): Promise<void>;
  sumDay(of: SiteDay, bounds: SumBounds): Promise<{ source: DaySums; target: DaySums }>;
}

/** From PostgreSQL to ClickHouse. */
export function toClickhouseEnds(db: () => Queryable, engine: Engine): MoveEnds {
  return {
    from: 'postgres',
    readTargetId: () => readStoreId(engine),
    writeTargetId: (id) => writeStoreId(engine, id),
    targetHasFacts: () => hasClickhouseFacts(engine),
    listDays: (fromMinute) => postgres.listDays(db(), fromMinute),
    async copyDay({ siteId, day, kept, peersFrom, isAgain }, onRows) {
      if (isAgain) await clickhouse.clearDay(engine, { siteId, day });
      const verdictEpoch = await readVerdictEpoch(db());
      const { factsFrom: fromMinute, pairsFrom } = kept;
      const of = { siteId, day, fromMinute, pairsFrom, peersFrom, verdictEpoch };
      await copyToClickhouse({ db: db(), engine }, of, onRows);
    },
    async sumDay({ siteId }, bounds) {
      const source = await postgres.sumDay(db(), siteId, bounds, 'source');
      return { source, target: await clickhouse.sumDay(engine, db(), siteId, bounds) };
    },
  };
}

/** From ClickHouse to PostgreSQL. */
export function toPostgresEnds(db: () => Queryable, engine: Engine): MoveEnds {
  const partitions = createPartitionMaker();
  return {
    from: 'clickhouse',
    readTargetId: async () => null,
    writeTargetId: async () => {},
    targetHasFacts: () => hasPostgresFacts(db()),
    listDays: (fromMinute) => clickhouse.listDays(engine, fromMinute),
    async copyDay({ siteId, day, kept, isAgain }, onRows) {
      const hours = Array.from({ length: 24 }, (_, i) => day + i * 3600);
      await partitions.ensureMinutes(db(), hours);
      for (const hour of hours) await partitions.ensureRollUps(db(), hour, false);
      const { factsFrom: fromMinute, pairsFrom } = kept;
      await db()
        .transaction()
        .execute(async (trx) => {
          if (isAgain) await postgres.clearDay(trx, { siteId, day });
          await copyToPostgres({ trx, engine }, { siteId, day, fromMinute, pairsFrom }, onRows);
          await postgres.markDay(trx, { siteId, day });
        });
      // Reads need sites' sums by minute; all others are made after the switch.
      await rollUp(db(), partitions, 'none');
    },
    async sumDay({ siteId }, { toMinute, ...bounds }) {
      // Networks of peers are copied as they are.
      const all = { ...bounds, toMinute, peersFrom: toMinute };
      const source = await clickhouse.sumDay(engine, db(), siteId, all);
      return { source, target: await postgres.sumDay(db(), siteId, all, 'target') };
    },
  };
}
