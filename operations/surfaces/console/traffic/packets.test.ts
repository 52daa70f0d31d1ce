/** Packets as the unit of the explorer: those of addresses, both directions together, and unknown where nothing counted them. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import type { Allocation } from '#operations/addresses/index.ts';
import { createWorld, password, type World } from '#operations/testing/dated-world.ts';
import { deliverMinutes } from '#operations/testing/deliver-minutes.ts';
import { worldMinuteMs } from '#operations/testing/world-time.ts';

const minuteMs = 60_000;
const startedMs = worldMinuteMs;
const ago = (minutes: number) => startedMs - minutes * minuteMs;

let world: World;
const cookies: Record<string, string> = {};
/** The first address of each server, by name. */
const addresses: Record<string, Allocation> = {};

before(async () => {
  world = await createWorld();
  const token = await world.createToken(['protect_telemetry_ingest']);
  await world.accounts.createPerson(systemActor, {
    ...{ email: 'staff@staff.test', name: 'Staff', password, staffRole: 'operator' },
  });
  cookies.staff = await world.signIn('staff@staff.test');
  // Many small packets, few large ones, and a source that counts none.
  for (const [name, bytes, packets] of [
    ['dns', 6_000, 1_200],
    ['web', 60_000, 60],
    ['mute', 900, null],
  ] as const) {
    const { email, tenant } = await world.createCustomer(`Of ${name}`);
    cookies[name] = await world.signIn(email);
    const { serverId } = await world.deploy(tenant, name);
    await world.backdate(serverId, '9 days');
    const [of] = await world.addresses.listAllocationsOfServers([serverId]);
    addresses[name] = of!;
    const pps = packets === null ? null : packets / 60;
    const used = { name: 'a.example', transport: 'udp', server_port: 53 };
    await deliverMinutes(world, token, of!, [
      [ago(80), { in: bytes, out: bytes, pps: pps && pps / 2 }],
      [
        ago(20),
        { in: bytes, out: bytes, pps, applications: [{ ...used, inbound_bytes: 90, outbound_bytes: 10 }] },
      ],
      [ago(10), { in: bytes, out: bytes, pps }],
    ]);
  }
});
after(() => world[Symbol.asyncDispose]());

const get = async (query: string, who = 'staff', path = '/console/traffic/') =>
  (
    await fetch(`${world.url}${path}${query}`, { headers: { cookie: cookies[who]!, accept: 'text/html' } })
  ).text();
const rows = async (query: string, table: string, who?: string, path?: string) =>
  (
    JSON.parse(await get(`?${query}&format=json&table=${table}`, who, path)) as {
      rows: Record<string, unknown>[];
    }
  ).rows;
interface Drawn {
  unit: string;
  series: { label: string; isPrevious?: boolean; values: (number | null)[] }[];
  lines: { label: string; value: number }[];
}
const draw = async (query: string) => JSON.parse(await get(`chart.json?${query}`)) as Drawn;
const text = (page: string) => page.replace(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');

test('what sent the most packets is first, and packets without a count are unknown, never 0', async () => {
  const found = (await rows('range=1h&by=server&measure=packets', 'server')).map((row) => [
    ...[row.server, row.packets, row.previous_packets, row.inbound_bytes],
    (row.share as number | null)?.toFixed(3),
  ]);
  assert.deepEqual(found, [
    ['dns', 2_400, 600, 12_000, '0.952'],
    ['web', 120, 30, 120_000, '0.048'],
    ['mute', null, null, 1_800, undefined],
  ]);
  const bytes = await rows('range=1h&by=server', 'server');
  assert.deepEqual(
    bytes.map((row) => [row.server, 'packets' in row]),
    [
      ['web', false],
      ['dns', false],
      ['mute', false],
    ],
  );
  const page = text(await get('?range=1h&by=server&measure=packets'));
  assert.match(page, /dns used the most: 2,400 packets, 12\.0 kB in, 12\.0 kB out/);
  assert.match(page, /Packets 2,520 \d+ minutes observed/);
  assert.match(page, /Packets of a part of this range Some observed minutes have no count of packets/);
  assert.match(page, /mute − Open 1\.80 kB 1\.80 kB unknown/);
  assert.match(page, /Previous period unknown/, 'of the hour before a part is not known');
  const mute = text(await get('?range=1h&q=server:mute&measure=packets'));
  assert.match(mute, /No packets known of this range/);
  assert.match(mute, /Packets unknown/);
  assert.doesNotMatch(text(await get('?range=1h&by=server')), /\d packets|Packets,|by packets/);
});

test('the chart is of packets per second by any dimension of addresses, with the rest, the period before and a level', async () => {
  for (const [by, labels] of [
    ['server', ['dns', 'web', 'mute']],
    ['customer', ['Of dns', 'Of web', 'Of mute']],
    ['address', [addresses.dns!.address, addresses.web!.address, addresses.mute!.address]],
  ] as const) {
    const { unit, series } = await draw(`range=1h&by=${by}&measure=packets`);
    assert.equal(unit, 'packets/s');
    assert.deepEqual(
      series.map(({ label, values }) => [label, values]),
      [
        [labels[0], [20, 20]],
        [labels[1], [1, 1]],
        [labels[2], [null, null]],
      ],
      by,
    );
  }
  const whole = await draw('range=1h&by=direction&measure=packets&compare=previous&q=-server:mute');
  assert.deepEqual(
    whole.series.map(({ label, isPrevious = false, values }) => [label, isPrevious, values]),
    [
      ['Packets', false, [21, 21]],
      ['All, previous', true, [10.5, null]],
    ],
  );
  assert.deepEqual(whole.lines, [{ label: '95th percentile', value: 21, role: 'line' }]);
  const csv = await get('?range=1h&by=server&measure=packets&format=csv&table=steps');
  assert.match(csv, /^time,dns_pps,web_pps,mute_pps,minutes_observed,events\r\n[^,]+,20,1,,1,\r\n/);
});

test('NET-2.4.2: packets are known of no direction and no application: the page says so and shows bits', async () => {
  for (const [query, said] of [
    ['by=app', 'They are not known by application, port or transport.'],
    ['q=port:53', 'They are not known by application, port or transport.'],
    ['q=direction:in', 'They are not known by direction: in and out are counted together.'],
  ] as const) {
    const page = text(await get(`?range=1h&measure=packets&${query}`));
    assert.ok(page.includes(`Shown in bits Packets are counted by address. ${said}`), query);
    assert.equal((await draw(`range=1h&measure=packets&${query}`)).unit, 'bit/s', query);
  }
  const page = await get('?range=1h&measure=packets&tables=server,app');
  assert.match(text(page), /Applications by traffic .*a\.example/);
});

test('sums that were written before packets were counted have none: they are unknown, and what is new is shown', async () => {
  const { pool } = world.database;
  for (const table of ['protect_usage_hours', 'protect_usage_tens'])
    await pool.query(
      `insert into ${table} (allocation_id, at, inbound_bytes, outbound_bytes, inbound_minutes, outbound_minutes)
       values ($1, $2, 500, 500, 1, 1)`,
      [addresses.dns!.id, new Date(Math.floor(ago(30 * 60) / 3_600_000) * 3_600_000)],
    );
  const { series } = await draw('range=7d&by=server&measure=packets&q=server:dns');
  const [values] = series.map((one) => one.values);
  assert.equal(values!.filter((value) => value === null).length, 1, JSON.stringify(values));
  assert.ok(values!.some((value) => value !== null && value > 0));
  const page = text(await get('?range=7d&measure=packets&q=server:dns'));
  assert.match(page, /Packets of a part of this range/);
  assert.match(page, /Packets 3,000 \d+ minutes observed/);
});

test('a customer sees the packets of the own servers alone, and saves the unit with a view', async () => {
  const found = await rows('range=1h&measure=packets', 'server', 'web', '/client/traffic/');
  assert.deepEqual(
    found.map((row) => [row.server, row.packets]),
    [['web', 120]],
  );
  const page = await get('?range=1h&measure=packets', 'web', '/client/traffic/');
  assert.match(page, /name="query" value="range=1h&amp;measure=packets"/);
  assert.match(page, /Addresses by packets/);
});
