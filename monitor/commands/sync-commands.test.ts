// Slow: runs commands as processes.
/** The operator's delivery commands as processes of their own, on the database of a monitor. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { LiveRequest } from '#contracts/admin-api/live.ts';
import { encodeLive } from '#contracts/sensor-api/live-codec.ts';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { compose, type Monitor } from '#monitor/composition.ts';
import { readConfig } from '#monitor/config.ts';
import { target } from '#monitor/feeds/testing/feed-world.ts';
import { requireIncidentsAlone } from '#monitor/incidents/index.ts';
import { createIncidentSpool, observation } from '#monitor/incidents/testing/observations.ts';
import {
  allCapabilities,
  type OperationsStub,
  send,
  startOperationsStub,
} from '#monitor/operations-client/testing/operations-stub.ts';
import { systemActor } from '#monitor/operators/index.ts';
import type { EnrolledSensor } from '#monitor/sensors/index.ts';
import { captureMinute } from '#monitor/testing/index.ts';

const program = fileURLToPath(new URL('../../svc.ts', import.meta.url));
const address = '198.51.100.7';

let folder: string;
let operations: OperationsStub;
let monitor: Monitor;
let sensor: EnrolledSensor;
let settings: Record<string, string>;
const posted: LiveRequest[] = [];
/** Operations answers nothing but errors. */
let isFailing = false;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-sync-commands-'));
  operations = await startOperationsStub();
  operations.capabilities = {
    ...allCapabilities,
    ...{ protect_live_ingest: true, protect_live_contract_version: 1 },
  };
  operations.targets = [target(address)];
  operations.intercept = (_request, response, path, body) => {
    if (isFailing) send(response, 500, {});
    if (isFailing || path !== '/protect/live/') return isFailing;
    const request = JSON.parse(body) as LiveRequest;
    posted.push(request);
    send(response, 200, { receipts: request.targets.map(({ id }) => ({ id, receipt: 'accepted' })) });
    return true;
  };
  settings = {
    SVC_DATA_DIR: folder,
    SVC_ALLOW_DOCUMENTATION_ADDRESSES: '1',
    SVC_LOG_LEVEL: 'warn',
  };
  monitor = compose(readConfig(settings));
  await monitor.database.start();
  await monitor.secrets.part.start();
  const site = await monitor.sites.create(systemActor, 'Commands');
  await monitor.sites.mapCluster(systemActor, 7, site.id);
  const { url, token } = operations;
  await monitor.connection.save(systemActor, { baseUrl: url, token, isEnabled: true });
  await monitor.connection.check();
  const { token: enrolment } = await monitor.sensors.createToken(systemActor, site.id);
  const request = { token: enrolment, host_name: 'node-1', node: 'node-1', sensor_version: '0.2.0' };
  sensor = (await monitor.sensors.authenticate((await monitor.sensors.enrol(request))!.credential))!;
});
after(async () => {
  await monitor.database.stop();
  await operations[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function run(command: string): Promise<{ code: number | null; out: string; said: string }> {
  const child = spawn(process.execPath, [program, 'monitor', command], {
    env: { ...process.env, ...settings },
  });
  const [out, said, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return { code, out, said };
}

test('NET-4.5: sync_ops_ddos delivers incidents and traffic in one tick and says the outcome', async () => {
  const startedAtMs = Math.floor(Date.now() / 1000) * 1000 - 30_000;
  const incident = observation({ startedAtMs, target: { kind: 'host', value: address } } as never);
  const body = compressUpload(encodeUpload(createIncidentSpool()(incident)));
  await monitor.inbox.receiveUrgent(sensor, body, 'zstd', requireIncidentsAlone);
  const { code, out, said } = await run('sync_ops_ddos');
  assert.deepEqual([code, said], [0, '']);
  assert.match(out, /^Incidents {5}1 changed or active, 1 sent\nOutcomes {6}1 applied/);
  assert.match(out, /\nAllocations {3}1 known, 0 unsupported/, 'the tick of traffic');
  assert.equal(operations.postedIncidents[0]!.incidents[0]!.target.value, address);
});

test('NET-4.5: a tick that fails says its error once for each feed, and nothing on standard error', async () => {
  isFailing = true;
  const failed = [await run('sync_ops_ddos'), await run('sync_ops_protect_live')];
  isFailing = false;
  const errorsOf = (out: string) => out.match(/Operations reported an internal error/g)?.length;
  assert.deepEqual(
    failed.map(({ code, out, said }) => [code, errorsOf(out), said]),
    [
      [1, 2, ''],
      [1, 1, ''],
    ],
  );
  assert.match(failed[1]!.out, /\nLast error {4}Operations reported/);
});

test('NET-4.5: sync_ops_protect_live delivers one tick of live traffic and says the outcome', async () => {
  const startedAtMs = Math.floor(Date.now() / 10_000) * 10_000 - 20_000;
  const host = { address, rxBytes: 1000, txBytes: 500, packets: 10 };
  const { totals } = captureMinute({ totals: { ipBytes: 1500 } });
  const window = {
    ...{ capture: 'eth0', role: 'uplink' as const, startedAtMs, observedMs: 10_000, totals },
    ...{ hosts: [host], hostsLeftOut: 0 },
  };
  const upload = { runId: randomUUID(), sensorVersion: '0.2.0', windows: [window] };
  await monitor.live.receive(sensor, compressUpload(encodeLive(upload)), 'zstd');
  const { code, out, said } = await run('sync_ops_protect_live');
  assert.deepEqual([code, said], [0, '']);
  assert.match(out, /\nThis tick {5}1 visited: 1 ten-second buckets sent/);
  assert.match(out, /\nReceipts {6}1 accepted/);
  assert.deepEqual(
    posted.flatMap(({ targets }) => targets.map((one) => [one.address, one.series[0]!.inbound_bps])),
    [[address, 800]],
  );
});

test('NET-4.6: SVC_OPS_PROTECT_LIVE_SYNC=0 leaves live traffic to another process; by default it goes every 5 seconds', () => {
  const loopsOf = (environment: NodeJS.ProcessEnv) =>
    compose(readConfig({ SVC_LOG_LEVEL: 'error', ...environment })).loops.map(({ name }) => name);
  assert.ok(loopsOf({}).includes('loop sync_ops_protect_live'));
  assert.ok(!loopsOf({ SVC_OPS_PROTECT_LIVE_SYNC: '0' }).includes('loop sync_ops_protect_live'));
  const live = readConfig({}).feeds.live!;
  assert.deepEqual([live.isOn, live.intervalSeconds], [true, 5]);
});
