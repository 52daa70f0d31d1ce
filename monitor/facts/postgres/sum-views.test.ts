import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Kysely, type LogEvent, PostgresDialect } from 'kysely';
import { nameApplication } from '#monitor/applications/index.ts';
import { createMonitorWorld, testMinute } from '#monitor/testing/index.ts';
import { withCamelNames } from '#service-kit/postgres/database.ts';
import type {
  ExploredDimension,
  ExploredFilter,
  ExploredReading,
  ExploredView,
} from '../contract/exploration.ts';
import { createFactStore } from '../index.ts';

const day = { fromMinute: testMinute, toMinute: testMinute + 86_400 };
const oneAddress: ExploredFilter = { dimension: 'address', is: true, values: ['192.0.2.10'] };
const oneSensor: ExploredFilter = { dimension: 'sensor', is: true, values: ['1'] };

test('views of the same rows are summed by one statement, but where that would make more sums than fit into memory', async () => {
  await using world = await createMonitorWorld();
  const statements: string[] = [];
  const db = new Kysely({
    dialect: new PostgresDialect({ pool: withCamelNames(world.database.pool) }),
    log: ({ query: { sql } }: LogEvent) => void statements.push(sql),
  });
  const facts = createFactStore({ db: () => db as typeof world.database.db, nameApplication });
  /** Statements that read facts for these views of a day. */
  const countReads = async (
    of: Partial<ExploredReading>,
    stepSeconds: number | null,
    ...bys: ExploredDimension[]
  ) => {
    statements.length = 0;
    await facts.exploreTogether(
      {
        ...{ siteId: world.siteId, ...day, source: 'applications', filters: [], owners: [], networks: [] },
        ...{ measure: 'bytes', ...of },
      },
      bys.map((by): ExploredView => ({ by: [by], stepSeconds, order: 'size', rows: { limit: 10 } })),
    );
    return statements.filter((text) => text.includes('by_raw as materialized')).length;
  };
  const ofAddress = { filters: [oneAddress] };
  assert.equal(await countReads(ofAddress, 3600, 'application', 'port', 'direction'), 1);
  assert.equal(await countReads({}, 3600, 'server', 'customer', 'address'), 1, 'all are made of addresses');
  assert.equal(await countReads({}, null, 'application', 'port'), 1);
  assert.equal(
    await countReads({}, 3600, 'server', 'direction'),
    2,
    'directions are kept in sums of their own',
  );
  const withPackets = { measure: 'packets' } as const;
  assert.equal(
    await countReads(withPackets, 3600, 'server', 'application'),
    2,
    'every name of every address',
  );
  assert.equal(await countReads({ ...withPackets, ...ofAddress }, 3600, 'server', 'application'), 1);
  const ofSensor = { source: 'addresses', filters: [oneSensor] } as const;
  assert.equal(await countReads(ofSensor, 600, 'server', 'customer'), 1, 'no hour holds captures');
  assert.equal(await countReads({ source: 'addresses', ...ofAddress }, 600, 'server', 'customer'), 1);
  // The largest rows, the steps of everything, and those of the rows of both tables, which are found by their addresses.
  assert.equal(await countReads({ source: 'addresses' }, 600, 'server', 'customer'), 3);
  assert.equal(await countReads({ source: 'addresses' }, 600, 'server', 'customer', 'address'), 3);
  assert.equal(
    await countReads({ source: 'addresses' }, 600, 'server', 'device'),
    4,
    'a device is no address',
  );
});
