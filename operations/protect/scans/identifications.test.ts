import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  type MadeScan,
  makeScan,
  modelOf,
  pairHistories,
} from '#contracts/port-scan/testing/interrupted-scans.ts';
import type { Allocation } from '#operations/addresses/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { createScanMonitor, type ScanMonitor } from '#operations/testing/deliver-scans.ts';
import { ownerOf } from '#operations/testing/scan-of.ts';
import { worldNowMs } from '#operations/testing/world-time.ts';
import { createEarlierDatabase } from '#service-kit/testing/earlier-database.ts';

let world: World;
let monitor: ScanMonitor;
let allocation: Allocation;
let read: () => Promise<Map<string, (string | number | null | undefined)[]>>;
before(async () => {
  world = await createWorld();
  monitor = await createScanMonitor(world);
  const customer = await world.createCustomer('Identified');
  const { serverId } = await world.deploy(customer.tenant, 'web-1');
  await world.backdate(serverId, '10 days');
  allocation = (await world.addresses.listAllocationsOfServers([serverId]))[0]!;
  read = async () => {
    const subject = { serverId, tenantId: customer.tenant.id };
    const { open } = await world.protectScans.read(ownerOf(customer), subject);
    return new Map(
      open.map(({ transport, port, answer, identifiedAt }) => [
        `${transport}/${port}`,
        [answer.version, identifiedAt?.getTime() ?? null],
      ]),
    );
  };
});
after(() => world[Symbol.asyncDispose]());

const deliver = async (scans: readonly MadeScan[]) => {
  await world.database.pool.query('truncate port_scan_series cascade');
  const { id, address, assignedAt } = allocation;
  const about = { request_id: null, allocation_id: id, address, assigned_at: assignedAt };
  for (const scan of scans) await monitor.deliver({ ...scan, ...about });
};

test('NET-2.7.5, NET-2.7.10: what a scan identified stays with its time, wherever another one ends, in any order', async () => {
  for (const { name, scans } of pairHistories(worldNowMs())) {
    await deliver(scans);
    const right = [...modelOf(scans)].map(([port, scan]): [string, unknown[]] => [
      port,
      [scan?.scan_id ?? null, scan && Date.parse(scan.finished_at)],
    ]);
    const held = await read();
    for (const [port, known] of right) assert.deepEqual(held.get(port), known, `${port}: ${name}`);
  }
});

test('NET-2.7.10: an identification expires after seven days, while the port is still seen open', async () => {
  const nowMs = worldNowMs();
  await deliver([
    makeScan('complete', 'common', nowMs - 60_000),
    makeScan('before_identification', 'common', nowMs - 1_000),
  ]);
  assert.notDeepEqual((await read()).get('tcp/22'), [null, null]);
  await world.database.pool.query(
    "update port_observations set identified_at = svc_now() - interval '7 days 1 second'",
  );
  assert.deepEqual((await read()).get('tcp/22'), [null, null]);
});

test('NET-2.7.5: what was identified before an upgrade is an identification after it', async () => {
  await using earlier = await createEarlierDatabase('operations', '0304', '9999');
  const client = await earlier.pool.connect();
  const probed = (product: string) => JSON.stringify({ method: 'probed', service: 'http', product });
  // Without the servers and customers that the rows are about.
  await client.query('set session_replication_role = replica');
  await client.query(
    `insert into port_observations (allocation_id, transport, port, first_observed_at, common_observed_at, common_scan_id,
       common_service, full_observed_at, full_scan_id, full_service)
     values (1, 'tcp', 80, now(), '2026-01-02Z', gen_random_uuid(), '{"method":"table"}', '2026-01-01Z', gen_random_uuid(), $1),
       (1, 'tcp', 81, now(), '2026-01-02Z', gen_random_uuid(), $2, '2026-01-01Z', gen_random_uuid(), $1),
       (1, 'tcp', 82, now(), '2026-01-02Z', gen_random_uuid(), '{"method":"probed","service":"tcpwrapped"}', null, null, null)`,
    [probed('full'), probed('common')],
  );
  client.release(true);
  await earlier.upgrade();
  const { rows } = await earlier.pool.query(
    `select port, identified_at as at, identified_service->>'product' as product from port_observations order by port`,
  );
  assert.deepEqual(rows, [
    { port: 80, at: new Date('2026-01-01Z'), product: 'full' },
    { port: 81, at: new Date('2026-01-02Z'), product: 'common' },
    { port: 82, at: null, product: null },
  ]);
});
