// Slow: asks each of 600 routes while the database stands still, and before and after.
/** Callers of every route that leave while the database stands still: no place, connection, lock or listener stays theirs. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type pg from 'pg';
import { systemActor as monitorActor } from '#monitor/operators/index.ts';
import { startMonitorServer } from '#monitor/testing/server.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password } from '#operations/testing/create-world.ts';
import { leaveWhileFrozen, until } from '#service-kit/testing/gone-callers.ts';

interface Served {
  url: string;
  pool: pg.Pool;
  routes: readonly { method: string; url: string }[];
  /** The credential of each kind of caller, as a header, by the beginning of the paths that take it; asked for each route. */
  callers: readonly (readonly [path: string, header: string | (() => Promise<string>)])[];
}

const servers: Record<string, (t: TestContext) => Promise<Served>> = {
  async operations(t) {
    // A call without a body reserves an address: another time it would answer otherwise.
    const world = await createWorld({ addressesMax: 0 });
    t.after(() => world[Symbol.asyncDispose]());
    const email = 'operator@staff.test';
    const staff = { email, name: 'Operator', password, staffRole: 'operator' } as const;
    await world.accounts.createPerson(systemActor, staff);
    const customer = await world.createCustomer('Gone');
    const admin = await world.createToken(['vm_inventory_read', 'protect_telemetry_ingest']);
    return {
      ...{ url: world.url, pool: world.database.pool, routes: world.routes },
      callers: [
        ['/api/admin/', `authorization: Bearer ${admin}`],
        ['/api/', `authorization: Bearer ${await world.createKey(customer)}`],
        ['/client/', `cookie: ${await world.signIn(customer.email, password)}`],
        ['/', `cookie: ${await world.signIn(email, password)}`],
      ],
    };
  },
  async monitor(t) {
    const server = await startMonitorServer();
    t.after(() => server[Symbol.asyncDispose]());
    const { monitor, siteId } = server;
    let enrolled = 0;
    // A sensor may send few unreadable uploads in a minute.
    const enrol = async () => {
      enrolled += 1;
      const { token } = await monitor.sensors.createToken(monitorActor, siteId);
      const names = { host_name: `host-${enrolled}`, node: `hv-${enrolled}`, sensor_version: '0.2.0' };
      return `authorization: Bearer ${(await monitor.sensors.enrol({ token, ...names }))!.credential}`;
    };
    const reader = await monitor.readTokens.create(monitorActor, siteId, { name: 'Grafana', days: '30' });
    return {
      ...{ url: server.url, pool: server.database.pool, routes: server.routes },
      callers: [
        ['/agent/v1/', enrol],
        ['/api/v1/', `authorization: Bearer ${reader.token}`],
        ['/', `cookie: ${(await server.signIn('operator')).cookie}`],
      ],
    };
  },
};

/** One more than the requests that a sensor or a token may have under way. */
const callers = 9;
/** People's routes that are called at once: as many as there are connections beside the one that freezes. */
const together = 5;
const pathOf = (url: string) => url.replaceAll(/:\w+/g, '1').replaceAll('*', 'x');
/** Who a caller is: while the other tables stand still, they get past that. */
const ofIdentity =
  /session|people|person|member|operator|organization|tenant|project|key|token|credential|^sensors$|factor|passkey/;

/** What the database and the process have for callers. */
async function heldBy(pool: pg.Pool) {
  const { rows } = await pool.query(
    `select (select count(*)::int from pg_locks l where l.locktype = 'advisory'
        and l.database = (select oid from pg_database where datname = current_database())) as locks,
      count(*) filter (where state <> 'idle' and pid <> pg_backend_pid())::int as busy,
      count(*) filter (where query like 'listen %')::int as listening
    from pg_stat_activity where datname = current_database() and backend_type = 'client backend'`,
  );
  const signals = process.eventNames().map((name) => [String(name), process.listenerCount(name)]);
  return { ...rows[0], signals, waiting: pool.waitingCount, taken: pool.totalCount - pool.idleCount };
}

for (const [name, start] of Object.entries(servers))
  test(`${name}: on every route, callers that leave while the database stands still hold nothing afterwards`, async (t) => {
    const { url, pool, routes, callers: headers } = await start(t);
    const { rows } = await pool.query<{ name: string }>(
      "select format('%I', tablename) as name from pg_tables where schemaname = 'public'",
    );
    const tables = rows.map((row) => row.name);
    const before = await heldBy(pool);
    const asked = routes.filter(({ method }) => !['HEAD', 'OPTIONS'].includes(method));
    assert.ok(asked.length > 50);
    const frozen = tables.filter((table) => !ofIdentity.test(table));
    for (const [kind, caller] of headers) {
      const own = asked.filter(({ url }) => headers.find(([path]) => url.startsWith(path))![0] === kind);
      // Sensors and tokens have places of their own to lose, so each of their routes is called alone.
      const isLimited = /^\/(agent|api)\//.test(kind);
      const size = isLimited ? 1 : together;
      for (let at = 0; at < own.length; at += size) {
        const some = own.slice(at, at + size);
        await t.test(
          some.map(({ method, url }) => `${method} ${url}`).join(', '),
          { timeout: 60_000 },
          async () => {
            const header = typeof caller === 'string' ? caller : await caller();
            const requests = some.flatMap(({ method, url }) =>
              Array<string>(isLimited ? callers : 1).fill(`${method} ${pathOf(url)} HTTP/1.1\r\n${header}`),
            );
            const [member, value] = header.split(/: (.*)/);
            const ask = () =>
              Promise.all(
                some.map(async ({ method, url: path }) => {
                  const sent = { method, headers: { [member!]: value! }, redirect: 'manual' } as const;
                  const answer = await fetch(url + pathOf(path), {
                    ...sent,
                    signal: AbortSignal.timeout(30_000),
                  });
                  await answer.body?.cancel();
                  return answer.status;
                }),
              );
            const usual = await ask();
            // Who a caller is, is asked in the same way on all routes of its kind.
            if (at / size < (isLimited ? 5 : 1))
              await leaveWhileFrozen({ url, pool, frozen: tables, requests });
            await leaveWhileFrozen({ url, pool, frozen, requests });
            assert.deepEqual(await ask(), usual);
            await until(async () => (await heldBy(pool)).busy === 0);
            assert.deepEqual(await heldBy(pool), before);
          },
        );
      }
    }
  });
