/** Applications of the explorer: by every dimension they say what the minutes say, of what a server sent itself in the last 24 hours. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import type { Allocation } from '#operations/addresses/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { type DeliveredMinute, deliverMinutes } from '#operations/testing/deliver-minutes.ts';
import { worldMinuteMs } from '#operations/testing/world-time.ts';
import { type Filter, sizeOf } from '#service-kit/explorer/index.ts';
import type { RankedDimension } from './exploration.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const startedMs = worldMinuteMs;
const ago = (minutes: number) => startedMs - minutes * minuteMs;
/** Ten minutes to come at least: at its end the first hour of its day would not be shown any more. */
const topMs = Math.ceil((startedMs + 10 * minuteMs) / hourMs) * hourMs;

let world: World;
let token: string;
const tenants: number[] = [];
const servers: { serverId: number; allocations: Allocation[] }[] = [];

before(async () => {
  world = await createWorld();
  token = await world.createToken(['protect_telemetry_ingest']);
  for (const name of ['first', 'second', 'third']) {
    const { tenant } = await world.createCustomer(name);
    const { serverId } = await world.deploy(tenant, `${name}-web`);
    await world.backdate(serverId, '5 days');
    tenants.push(tenant.id);
    servers.push({ serverId, allocations: await world.addresses.listAllocationsOfServers([serverId]) });
  }
  await deliverRandomly();
});
after(() => world[Symbol.asyncDispose]());

type Application = NonNullable<DeliveredMinute['applications']>[number];
const used = (
  name: string,
  transport: string | null,
  server_port: number | null,
  inbound_bytes: number,
  outbound_bytes: number,
): Application => ({ name, transport, server_port, inbound_bytes, outbound_bytes });

/** Of each address minutes of the last 26 hours; some applications never send, some of one address alone, some once. */
async function deliverRandomly(): Promise<void> {
  let state = 5;
  const below = (most: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * most);
  };
  const transports = ['tcp', 'udp', null];
  const ports = [443, 80, null, 53];
  for (const [place, { allocations }] of servers.entries())
    for (const [which, of] of allocations.entries()) {
      const minutes = new Map<number, DeliveredMinute>();
      const put = (at: number, application: Application) => {
        const applications = [...(minutes.get(at)?.applications ?? []), application];
        minutes.set(at, { in: 100_000 + below(9_000), out: 50_000 + below(9_000), pps: 3, applications });
      };
      for (let i = 0; i < 160; i += 1) {
        const n = below(24);
        const at = ago(2 + below(25 * 60));
        // Its minute holds an application once.
        if (minutes.get(at)?.applications?.some(({ name }) => name === `App-${n}.example`)) continue;
        const isSilent = n % 5 === 0 || (n % 5 === 1 && which === 0) || below(3) > 0;
        put(
          at,
          used(
            `App-${n}.example`,
            transports[n % 3]!,
            ports[n % 4]!,
            1 + below(5_000),
            isSilent ? 0 : 1 + below(700),
          ),
        );
      }
      // Sent too long ago, and strangers go on; sent long ago but not too long; sent after what is looked at.
      put(ago(24 * 60 + 9), used('stale.example', 'tcp', 8000 + place, 1, 90));
      put(ago(24 * 60 - 9), used('kept.example', 'tcp', 8100, 1, which === 0 ? 90 : 0));
      for (const at of [400, 800, 1200]) {
        put(ago(at), used('stale.example', 'tcp', 8000 + place, 900, 0));
        put(ago(at), used('kept.example', 'tcp', 8100, 800, 0));
        put(ago(at), used('late.example', 'udp', 8200, 700, 0));
      }
      put(ago(4), used('late.example', 'udp', 8200, 1, 5));
      await deliverMinutes(
        world,
        token,
        of,
        [...minutes].sort(([a], [b]) => a - b),
      );
    }
}

const groups = {
  application: 'name',
  service: 'name, transport, server_port',
  port: 'transport, server_port',
  transport: 'transport',
  server: 'server_id',
  customer: 'tenant_id',
  address: 'server_id, address',
} as const;

interface Expected {
  inbound: number;
  outbound: number;
  previous: number;
  sent: Date;
}

/** Straight from the minutes; `condition` is on an application and its address, `step` in seconds splits the sums. */
const minutesSay = (columns: string, condition: string, step?: number) => `
  with seen as (
    select server_id, tenant_id, address, minute, used.* from protect_minutes join protect_series using (allocation_id),
      jsonb_to_recordset(applications) as used(name text, transport text, server_port integer, inbound_bytes bigint,
        outbound_bytes bigint)),
  sent as (
    select server_id, name, transport, server_port, max(minute) filter (where outbound_bytes > 0) as sent_at
    from seen where ${condition} and minute > svc_now() - interval '24 hours' group by 1, 2, 3, 4),
  counted as (
    select seen.*, sent_at from seen join sent on (seen.server_id, seen.name, seen.transport, seen.server_port)
      is not distinct from (sent.server_id, sent.name, sent.transport, sent.server_port)
    where sent_at is not null)
  select ${step === undefined ? 'null' : `date_bin('${step} seconds', minute, 'epoch')`}::timestamptz as at,
    coalesce(sum(inbound_bytes) filter (where minute >= $1 and minute < $2), 0)::bigint as inbound,
    coalesce(sum(outbound_bytes) filter (where minute >= $1 and minute < $2), 0)::bigint as outbound,
    coalesce(sum(inbound_bytes + outbound_bytes) filter (where minute >= $3 and minute < $1), 0)::bigint as previous,
    max(sent_at) as sent
  from counted where ${condition}
  group by ${columns === '' ? '1' : `1, ${columns}`}
  having coalesce(sum(inbound_bytes + outbound_bytes) filter (where minute >= $1 and minute < $2), 0) > 0`;

const inOrder = <T>(rows: readonly T[]) => rows.map((row) => JSON.stringify(row)).sort();

const filter = (dimension: Filter['dimension'], values: string[], is = true): Filter[] => [
  { dimension, is, values },
];
const filters: [what: string, filters: Filter[], condition: string][] = [
  ['everything', [], 'true'],
  ['a port', filter('port', ['443']), 'server_port = 443'],
  [
    'a port of a transport, or none',
    filter('port', ['tcp/443', 'none']),
    `transport = 'tcp' and server_port = 443 or server_port is null`,
  ],
  ['not a transport', filter('transport', ['udp'], false), `transport is distinct from 'udp'`],
  [
    'names',
    filter('application', ['app-6.example', 'kept.example']),
    `lower(name) in ('app-6.example', 'kept.example')`,
  ],
];

/** The first step begins with the range: of a part of a step no rate of applications is shown. */
const ranges: [what: string, fromMs: number, toMs: number, stepSeconds: number, hasBefore: boolean][] = [
  ['a day of hours', topMs - 24 * hourMs, topMs, 3600, false],
  [
    'an hour and parts of two',
    topMs - 7 * hourMs - 20 * minuteMs,
    topMs - 5 * hourMs - 41 * minuteMs,
    600,
    true,
  ],
  ['hours and a part of one', topMs - 11 * hourMs, topMs - hourMs - 41 * minuteMs, 3600, true],
];

for (const [range, fromMs, toMs, stepSeconds, hasBefore] of ranges)
  test(`NET-2.4.4: ${range}: applications by every dimension are those of the minutes, of what a server sent for in 24 hours`, async () => {
    let compared = 0;
    for (const [what, filters_, condition] of filters)
      for (const [dimension, columns] of Object.entries(groups)) {
        if (what === 'everything' && ['server', 'customer', 'address'].includes(dimension)) continue;
        const which = `${what} by ${dimension}`;
        const explored = await world.protectTraffic.explore(systemActor, {
          ...{ fromMs, toMs, stepSeconds, filters: filters_ },
        });
        const ranking = await explored.rank(dimension as RankedDimension, { limit: 500 });
        const from = new Date(fromMs);
        const { rows } = await world.database.pool.query<Expected>(minutesSay(columns, condition), [
          from,
          new Date(toMs),
          new Date(2 * fromMs - toMs),
        ]);
        compared += rows.length;
        assert.deepEqual(
          inOrder(
            ranking.rows.map(({ amount, previous, details }) => [
              amount.inBytes,
              amount.outBytes,
              hasBefore ? previous && sizeOf(previous, 'bytes') : 0,
              details!.lastSentMs,
            ]),
          ),
          inOrder(
            rows.map((row) => [row.inbound, row.outbound, hasBefore ? row.previous : 0, row.sent.getTime()]),
          ),
          which,
        );
        await checkLines(explored, dimension as RankedDimension, {
          ...{ fromMs, toMs, stepSeconds, which, condition },
        });
      }
    assert.ok(compared > 60, `${compared} rows`);
  });

/** A line's bytes are those of its row, and all lines together those of the minutes, step by step. */
async function checkLines(
  explored: Awaited<ReturnType<World['protectTraffic']['explore']>>,
  dimension: RankedDimension,
  of: { fromMs: number; toMs: number; stepSeconds: number; which: string; condition: string },
): Promise<void> {
  const { which } = of;
  const { answer } = await explored.chart(dimension, { top: 3, read: 3, isCompared: false });
  const { rows: all } = await explored.table(dimension, { limit: 500, hasRates: true });
  const { timesMs, series } = answer;
  const bytesOf = (rates: readonly (number | null)[]) =>
    rates.map((rate, index) => Math.round(((rate ?? 0) * series.minutes[index]! * 60) / 8));
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  assert.deepEqual(
    all.map(({ rates }) => sum(bytesOf(rates))),
    all.map(({ amount }) => sizeOf(amount, 'bytes')),
    `${which}: lines`,
  );
  if (of.condition === 'true') return;
  const { rows } = await world.database.pool.query<Expected & { at: Date }>(
    `${minutesSay('', of.condition, of.stepSeconds)} order by 1`,
    [new Date(of.fromMs), new Date(of.toMs), new Date(0)],
  );
  const expected = new Map(rows.map((row) => [row.at.getTime(), row.inbound + row.outbound]));
  const found = [...answer.rows, answer.rest!].map(({ rates }) => bytesOf(rates));
  assert.deepEqual(
    timesMs.map((_, index) => sum(found.map((bytes) => bytes[index]!))),
    timesMs.map((ms) => expected.get(ms) ?? 0),
    `${which}: the first lines and the rest`,
  );
}
