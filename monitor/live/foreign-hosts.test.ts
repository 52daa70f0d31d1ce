import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { encodeLive, type LiveHost } from '#contracts/sensor-api/live-codec.ts';
import { compressUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { captureMinute } from '#monitor/testing/index.ts';
import { startMonitorServer } from '#monitor/testing/server.ts';

const address = '203.0.113.10';
const unknown = '203.0.113.99';

test('NET-2.5: live rates of a server come from its own node only, even when another sensor reports more', async () => {
  await using server = await startMonitorServer();
  const { monitor, siteId, database } = server;
  await monitor.sites.mapCluster(systemActor, 7, siteId);
  const enrol = async (node: string) => {
    const { token } = await monitor.sensors.createToken(systemActor, siteId);
    const made = await monitor.sensors.enrol({ token, host_name: node, node, sensor_version: '0.1.0' });
    return (await monitor.sensors.authenticate(made!.credential))!;
  };
  const [own, other] = [await enrol('node-1'), await enrol('node-2')];
  const place = (node: string, began: string) =>
    database.pool.query(
      `insert into vm_placements (cluster_id, vm_id, node, mac, segment, address, is_unique, began_at)
      values (7, 42, $1, '02:00:00:00:00:2a', 'br0', $2, true, $3)`,
      [node, address, began],
    );
  const startedAtMs = Math.floor(Date.now() / 10_000) * 10_000 - 20_000;
  const say = async (sensor: typeof own, hosts: LiveHost[]) => {
    const { totals } = captureMinute();
    const window = {
      capture: 'br0',
      role: 'bridge',
      startedAtMs,
      observedMs: 10_000,
      totals,
      hosts,
      hostsLeftOut: 0,
    } as const;
    const body = encodeLive({ runId: randomUUID(), sensorVersion: '0.1.0', windows: [window] });
    return monitor.live.receive(sensor, compressUpload(body), 'zstd');
  };
  const host = (of: string, rxBytes: number): LiveHost => ({
    address: of,
    rxBytes,
    txBytes: 0,
    packets: 1e6,
  });
  const rates = async () => {
    // A site is read once in five seconds; another range avoids the cache.
    asked += 1;
    const read = await monitor.live.readSite(siteId, startedAtMs - asked, Date.now());
    return Object.fromEntries(
      read.addresses.map((one) => [one.address, [one.sensorId, (one.inBps * 10) / 8]]),
    );
  };
  let asked = 0;

  await place('node-1', '-infinity');
  await say(own, [host(address, 1_000)]);
  await say(other, [host(address, 9e9), host(unknown, 500)]);
  assert.deepEqual(await rates(), { [address]: [own.id, 1_000], [unknown]: [other.id, 500] });

  // The server moves: now the other sensor reports it, and the first one does not.
  await database.pool.query('delete from live_windows');
  await database.pool.query('update vm_placements set ended_at = to_timestamp($1)', [
    startedAtMs / 1000 - 120,
  ]);
  await place('node-2', new Date(startedAtMs - 120_000).toISOString());
  await say(own, [host(address, 9e9)]);
  await say(other, [host(address, 2_000)]);
  assert.deepEqual(await rates(), { [address]: [other.id, 2_000] });
});
