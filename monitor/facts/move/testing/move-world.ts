/** A monitor with facts in PostgreSQL, a ClickHouse beside it, and moves between them. */
import { systemClock } from '#common/clock/index.ts';
import { nameApplication } from '#monitor/applications/index.ts';
import { createClickhouseFacts } from '../../clickhouse/clickhouse-facts.ts';
import { createFactClient, parseFactsUrl } from '../../clickhouse/connect.ts';
import { type HttpEngine, startHttpEngine } from '../../clickhouse/testing/start-http-engine.ts';
import { useClickhouse } from '../../create-facts.ts';
import { cancelMove, type FactUpload, openScope } from '../../index.ts';
import { compareAnswers, type StoreUnderTest, sampleMinutes } from '../../testing/conformance.ts';
import { createMoves, createStandingWorld, middleOfHour, minutesOf } from '../../testing/engines.ts';
import { createMemoryFacts, type MemoryFacts } from '../../testing/memory/memory-facts.ts';
import { randomUpload, sampleAddresses, seededBelow } from '../../testing/random-uploads.ts';
import { deleteFacts, moveBetween } from '../move-between.ts';
import type { MoveStep } from '../move-days.ts';

export type MoveWorld = Awaited<ReturnType<typeof createMoveWorld>>;

export interface MoveChange {
  url?: string;
  signal?: AbortSignal;
  onStep?: (step: MoveStep) => Promise<void>;
  /** In the place of what applies uploads that arrived before the hold. */
  drain?: () => Promise<void>;
}

/** With `shared`, a ClickHouse that another world had, of which nothing is left: starting one takes seconds. */
export async function createMoveWorld(shared: HttpEngine | null = null) {
  const nowSecond = middleOfHour();
  const monitor = await createStandingWorld(nowSecond);
  const engine = shared ?? (await startHttpEngine());
  if (shared) await emptyEngine(shared);
  const db = () => monitor.database.db;
  const random = seededBelow(Number(process.env.SVC_TEST_SEED ?? 5));
  const client = createFactClient(parseFactsUrl(engine.url));
  // A view that takes long is right all the same.
  const clickhouse = createClickhouseFacts({ client, db, nameApplication, exploreMs: 600_000 });
  await clickhouse.migrate();
  const second = await monitor.enrol('node-2');
  const { siteId } = monitor;
  const origins = [monitor.sensor.id, second.id].map((sensorId) => ({ siteId, sensorId }));
  const factsOf = { postgres: monitor.facts, clickhouse };
  /** The engine in use judges again. */
  let used: 'postgres' | 'clickhouse' = 'postgres';
  const moves = await createMoves(monitor, nowSecond, {
    rejudge: (changed, scope) => factsOf[used].rejudge(changed, scope),
  });
  const model = createMemoryFacts({ nameApplication, nowSecond: () => nowSecond, book: moves.book });
  // Pairs of the hour that is about to expire would do so while the test runs.
  const minutes = sampleMinutes(nowSecond).map((minute) =>
    minute < nowSecond - 22 * 3600 && minute > nowSecond - 24.5 * 3600 ? minute + 7200 : minute,
  );
  return {
    ...{ monitor, engine, clickhouse, model, random, minutes },
    /** Uploads at random, with these minutes. */
    uploads: (count: number, from: readonly number[] = minutes) =>
      Array.from({ length: count }, () => randomUpload(random, { origins, minutes: from })),
    /** Appends to an engine, as a process that is set to it. */
    async append(to: 'postgres' | 'clickhouse', uploads: readonly FactUpload[]) {
      const facts = factsOf[to];
      await facts.prepare(minutesOf(uploads));
      await db()
        .transaction()
        .execute((trx) => facts.append(uploads, openScope(trx)));
    },
    /** Where an engine's answers differ from the model's. */
    async compare(
      of: 'postgres' | 'clickhouse',
      other: Pick<StoreUnderTest, 'facts'>['facts'] = model,
    ): Promise<string[]> {
      const facts = factsOf[of];
      await facts.rollUp('settled');
      const store = { facts, origins, append: () => Promise.reject(new Error('not here')) };
      return await compareAnswers(store, {
        ...{ model: other as MemoryFacts, questions: 1, random, minutes, stage: of },
      });
    },
    /** Moves; returns what it said. */
    async move(
      to: 'postgres' | 'clickhouse',
      { url = engine.url, onStep, signal, drain }: MoveChange = {},
    ): Promise<string[]> {
      const said: string[] = [];
      const place = parseFactsUrl(url);
      await moveBetween({
        ...{ db, clock: systemClock, say: (line: string) => void said.push(line) },
        hold: { ...monitor.inbox.hold, drain: drain ?? (() => monitor.inbox.drain()) },
        signal: signal ?? new AbortController().signal,
        ...(to === 'clickhouse' ? { from: null, to: place } : { from: place, to: null }),
        ...(onStep ? { onStep } : {}),
      });
      used = to;
      // As a process that starts now.
      await clickhouse.migrate();
      return said;
    },
    /** Deletes what an engine holds that is not in use. */
    async delete(of: 'postgres' | 'clickhouse') {
      await deleteFacts(db, of === 'postgres' ? null : parseFactsUrl(engine.url));
    },
    /** Networks of peers of everything, of each address. */
    async askPeers(of: 'postgres' | 'clickhouse'): Promise<{ total: number }[]> {
      const range = { siteId, fromMinute: nowSecond - 40 * 86_400, toMinute: nowSecond + 86_400 };
      return await Promise.all(
        sampleAddresses.map((address) => factsOf[of].listPeerNetworks({ ...range, address }, 100)),
      );
    },
    /** A statement of ClickHouse. */
    command: async (query: string): Promise<void> => void (await client.command({ query })),
    /** Gives a move up. */
    cancel: () => cancelMove(db, systemClock),
    /** The engine of an installation that has just been set up. */
    async startOnClickhouse() {
      used = 'clickhouse';
      await useClickhouse(db(), clickhouse.engine, clickhouse.identity);
    },
    /** Moves a server at random. */
    place: () => moves.move(random),
    async [Symbol.asyncDispose]() {
      await client.close();
      if (!shared) await engine[Symbol.asyncDispose]();
      await monitor[Symbol.asyncDispose]();
    },
  };
}

async function emptyEngine({ url }: HttpEngine): Promise<void> {
  const client = createFactClient(parseFactsUrl(url.replace(/facts$/, 'default')));
  try {
    await client.command({ query: 'drop database if exists facts sync' });
    await client.command({ query: 'create database facts' });
  } finally {
    await client.close();
  }
}
