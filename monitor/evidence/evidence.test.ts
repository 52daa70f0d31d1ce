// Slow: keeps files in a folder and in a bucket.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { globSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { zstdCompressSync } from 'node:zlib';
import { silentReporter } from '#common/reporter/index.ts';
import { decodeEvidence, encodeEvidence, evidenceBytesMax } from '#contracts/sensor-api/evidence.ts';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { requireIncidentsAlone } from '#monitor/incidents/index.ts';
import { createIncidentSpool, observation } from '#monitor/incidents/testing/observations.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { type MonitorServer, startMonitorServer } from '#monitor/testing/server.ts';
import { type StillClock, stopDatabaseClock } from '#monitor/testing/still-clock.ts';
import { createFolderStore, type ObjectStore, unavailable } from './object-store.ts';
import { evidenceBody, evidencePacket, synFrame } from './testing/captures.ts';
import { startS3Server } from './testing/s3-server.ts';

let server: MonitorServer;
let clock: StillClock;
let own: string;
let other: string;
const start = Date.UTC(2026, 10, 23, 10, 0, 0);
const day = 86_400_000;

const folder = mkdtempSync(join(tmpdir(), 'svc-evidence-'));
/** A folder, which fails when told to. */
const real = createFolderStore(folder);
let fault: string | null = null;
const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
  if (fault !== null) throw unavailable('the test’s store', fault);
  return work();
};
const store: ObjectStore = {
  place: 'the test’s store',
  put: (key, bytes) => guarded(() => real.put(key, bytes)),
  get: (key) => guarded(() => real.get(key)),
  remove: (key) => guarded(() => real.remove(key)),
  check: () => guarded(() => real.check()),
};
/** How many objects there are. */
const objects = () => globSync('*/*', { cwd: folder }).length;
const advance = (ms: number) => clock.set(clock.nowMs() + ms);

before(async () => {
  server = await startMonitorServer({}, { reporter: silentReporter, evidenceObjects: store });
  clock = await stopDatabaseClock(server.database, start);
  own = await enrol('node-1');
  other = await enrol('node-2');
});
after(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

async function enrol(node: string): Promise<string> {
  const { token } = await server.monitor.sensors.createToken(systemActor, server.siteId);
  const request = { token, host_name: node, node, sensor_version: '0.2.0' };
  return (await server.monitor.sensors.enrol(request))!.credential;
}

const post = async (path: string, as: string, body: Uint8Array, headers: Record<string, string> = {}) => {
  const answer = await fetch(`${server.url}/agent/v1${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${as}`,
      'content-type': 'application/vnd.tcpdump.pcap',
      'content-encoding': 'zstd',
      ...headers,
    },
    body: new Uint8Array(body),
  });
  const json = (await answer.json()) as { error?: { code: string; message: string }; receipt?: string };
  return {
    status: answer.status,
    code: json.error?.code,
    message: json.error?.message,
    receipt: json.receipt,
  };
};
const send = (id: string, body: Uint8Array, as = own) => post(`/evidence/${id}`, as, body);

const spools = new Map<string, ReturnType<typeof createIncidentSpool>>();
/** An attack that the sensor observed; returns the sensor's id of it. */
async function observe(target: string, as = own, more: Partial<Parameters<typeof observation>[0]> = {}) {
  const spool = spools.get(as) ?? createIncidentSpool();
  spools.set(as, spool);
  const seen = observation({ startedAtMs: start - 60_000, lastObservedAtMs: start, target, ...more });
  const body = compressUpload(encodeUpload(spool(seen)));
  const { status } = await post('/incidents', as, body, { 'content-type': 'application/x-protobuf' });
  assert.equal(status, 200);
  return seen.id;
}
const rows = async () =>
  (
    await server.database.pool.query(
      'select object_key, packets, stored_at is not null as is_stored from evidence_files order by begun_at, id',
    )
  ).rows as { object_key: string; packets: number; is_stored: boolean }[];
const truncate = async () => {
  await server.database.pool.query('truncate evidence_files');
  rmSync(join(folder, `site-${server.siteId}`), { recursive: true, force: true });
};

test('the plan asks sensors for capture files, unless a setting says no', async () => {
  const asks = async (of: MonitorServer, as: string) => {
    const answer = await fetch(`${of.url}/agent/v1/plan`, { headers: { authorization: `Bearer ${as}` } });
    return ((await answer.json()) as { detection: { takes_evidence: boolean } }).detection.takes_evidence;
  };
  assert.equal(await asks(server, own), true);
  await using off = await startMonitorServer({ SVC_MONITOR_EVIDENCE: '0' });
  const { token } = await off.monitor.sensors.createToken(systemActor, off.siteId);
  const made = await off.monitor.sensors.enrol({ token, host_name: 'a', node: 'a', sensor_version: '0' });
  assert.equal(await asks(off, made!.credential), false);
});

test('a file is stored and acknowledged once; what comes again is a duplicate and changes nothing', async () => {
  const id = await observe('198.51.100.7');
  const body = evidenceBody(start - 58_000);
  assert.deepEqual([(await send(id, body)).status, (await send(id, body)).receipt], [201, 'duplicate']);
  const [row, ...others] = await rows();
  assert.deepEqual([row!.is_stored, row!.packets, others.length, objects()], [true, 3, 0, 1]);
  assert.deepEqual(Buffer.from((await real.get(row!.object_key))!), Buffer.from(body));
  const another = await send(id, evidenceBody(start - 50_000, 5));
  assert.deepEqual([another.status, another.receipt, objects()], [201, 'duplicate', 1], 'the first stays');
  await truncate();
});

test('an incident that is not known yet is a 409, and its file is taken when it is', async () => {
  const id = randomUUID();
  const body = evidenceBody(start);
  assert.deepEqual([(await send(id, body)).status, (await send(id, body)).code], [409, 'incident_unknown']);
  assert.equal(objects(), 0);
  await observe('198.51.100.8', own, { id });
  assert.equal((await send(id, body)).status, 201);
  await truncate();
});

test('another node’s sensor, a stranger and a sensor that speaks of another node’s server are refused', async () => {
  const id = await observe('198.51.100.9');
  const refused = await send(id, evidenceBody(start), other);
  assert.deepEqual([refused.status, refused.code], [404, 'incident_of_another_sensor']);
  assert.equal((await send(id, evidenceBody(start), 'svcsen_1_nonsense')).status, 401);
  // The sensor of node-2 claims an attack on a server of node-1: its observation makes no incident, and has no file.
  const { pool } = server.database;
  const claimed = await observe('198.51.100.10', other);
  await pool.query(
    'update incident_observations set is_foreign = true, incident_id = null where observation_id = $1',
    [claimed],
  );
  assert.equal((await send(claimed, evidenceBody(start), other)).status, 409);
  assert.deepEqual([await rows(), objects()], [[], 0]);
});

test('what is no capture file of the bounds is refused for good, with what is wrong', async () => {
  const id = await observe('198.51.100.11');
  const file = encodeEvidence({ linkType: 1, packets: [evidencePacket(synFrame(1), start)] });
  const changed = (value: number, at: number) => {
    const copy = Buffer.from(file);
    copy.writeUInt32LE(value, at);
    return zstdCompressSync(copy);
  };
  const long = { seconds: 1, nanoseconds: 0, wireLength: 300, bytes: new Uint8Array(300) };
  const many = Array.from({ length: 2001 }, () => evidencePacket(synFrame(1), start));
  const refused: [string, Uint8Array, number, RegExp][] = [
    ['not compressed', file, 400, /not compressed with Zstandard/],
    ['no capture', zstdCompressSync(Buffer.from('GET / HTTP/1.1, and many more bytes')), 400, /no pcap file/],
    ['empty', zstdCompressSync(file.subarray(0, 24)), 400, /no packets/],
    ['short', zstdCompressSync(file.subarray(0, 10)), 400, /no header/],
    ['cut record', zstdCompressSync(file.subarray(0, 30)), 400, /ends within a record/],
    ['cut packet', zstdCompressSync(file.subarray(0, file.length - 1)), 400, /too long/],
    ['huge length', changed(0xffffffff, 32), 400, /too long/],
    ['long packet', zstdCompressSync(encodeEvidence({ linkType: 1, packets: [long] })), 400, /too long/],
    ['shorter on the wire', changed(1, 36), 400, /can not be/],
    ['nanoseconds', changed(1e9, 28), 400, /can not be/],
    ['many packets', zstdCompressSync(encodeEvidence({ linkType: 1, packets: many })), 400, /more than 2000/],
    ['a bomb', zstdCompressSync(Buffer.alloc(evidenceBytesMax + 1)), 413, /more than 8388608 bytes/],
  ];
  for (const [what, body, status, message] of refused) {
    const answer = await send(id, body);
    assert.deepEqual([what, answer.status], [what, status]);
    assert.match(answer.message!, message, what);
  }
  assert.equal((await send(id, Buffer.alloc(evidenceBytesMax + 1))).status, 413);
  const plain = await post(`/evidence/${id}`, own, file, { 'content-encoding': 'identity' });
  assert.deepEqual([plain.status, plain.code], [400, 'evidence_malformed']);
  assert.equal((await post(`/evidence/${id}`, own, file, { 'content-type': 'text/plain' })).status, 400);
  assert.ok((await send('../../etc/passwd', file)).status >= 400);
  assert.deepEqual([await rows(), objects()], [[], 0]);
});

test('a store that is away is a 503, said by the health page; the sensor’s next attempt stores the file', async () => {
  const id = await observe('198.51.100.12');
  fault = 'ECONNREFUSED';
  const answer = await send(id, evidenceBody(start));
  assert.deepEqual([answer.status, answer.code], [503, 'evidence_store_unavailable']);
  const { problems } = await server.monitor.health.read();
  assert.deepEqual(
    problems.filter((text) => text.includes('capture files')),
    ['The store of capture files (the test’s store) does not work: ECONNREFUSED.'],
  );
  fault = null;
  assert.equal((await send(id, evidenceBody(start))).status, 201);
  assert.deepEqual((await rows()).length, 1, 'the same row');
  await truncate();
});

/** A monitor of its own process that is killed at this moment of its `put`. */
function killedReceive(
  id: string,
  sensorId: number,
  body: Uint8Array,
  moment: 'before' | 'after',
): string | null {
  const path = fileURLToPath(new URL('./testing/killed-receiver.ts', import.meta.url));
  const args = [path, server.database.url, folder, String(sensorId), id, moment];
  const { signal, stderr } = spawnSync(process.execPath, args, { input: body, encoding: 'utf8' });
  assert.ok(signal !== null, stderr);
  return signal;
}

for (const moment of ['before', 'after'] as const)
  test(`a monitor that is killed ${moment} the object is there loses nothing: the file comes again, or both are removed`, async () => {
    const id = await observe(`198.51.100.${moment === 'before' ? 13 : 23}`);
    const sensorId = await sensorOf(id);
    const body = evidenceBody(start);
    const left = moment === 'before' ? 0 : 1;
    const states = async () => (await rows()).map(({ is_stored }) => is_stored);
    assert.equal(killedReceive(id, sensorId, body, moment), 'SIGKILL');
    assert.deepEqual([await states(), objects()], [[false], left]);
    const views = [{ sensorId, observationId: id }];
    assert.deepEqual(await server.monitor.evidence.list(server.siteId, views), [], 'not shown');
    assert.equal((await send(id, body)).receipt, 'stored');
    assert.deepEqual([await states(), objects()], [[true], 1]);
    await truncate();
    killedReceive(id, sensorId, body, moment);
    assert.equal(objects(), left);
    await advance(7 * day + 1000);
    assert.equal(await server.monitor.evidence.removeExpired(), 1);
    assert.deepEqual([await rows(), objects()], [[], 0], 'no object without a row');
  });

test('NET-8.R4: a file is deleted after seven days, not before; the object before its row', async () => {
  const [id, later] = [await observe('198.51.100.14'), await observe('198.51.100.15')];
  await send(id, evidenceBody(start));
  await advance(60_000);
  await send(later, evidenceBody(start));
  const sensorId = await sensorOf(id);
  const shown = () => server.monitor.evidence.list(server.siteId, [{ sensorId, observationId: id }]);
  const [file] = await shown();
  assert.equal(file!.keptUntilMs - file!.storedAtMs, 7 * day);
  await advance(7 * day - 61_000);
  assert.deepEqual([await server.monitor.evidence.removeExpired(), objects()], [0, 2]);
  assert.equal((await shown()).length, 1);
  await advance(2000);
  assert.equal((await shown()).length, 0, 'not shown any more, also before it is removed');
  fault = 'ETIMEDOUT';
  await assert.rejects(server.monitor.evidence.removeExpired(), /ETIMEDOUT/);
  assert.equal((await rows()).length, 2, 'a store that does not answer leaves both');
  fault = null;
  const counts = await server.monitor.retention.runOnce();
  assert.equal(counts!.evidence_files, 1, 'by the hourly job');
  assert.deepEqual([(await rows()).length, objects()], [1, 1]);
  await truncate();
});

const sensorOf = async (observationId: string) =>
  (
    await server.database.pool.query<{ sensor_id: number }>(
      'select sensor_id from incident_observations where observation_id = $1',
      [observationId],
    )
  ).rows[0]!.sensor_id;

test('NET-8.R4: files are removed before the incident that names them; while the store is away both stay', async () => {
  await advance(1000);
  const id = await observe('198.51.100.16');
  await send(id, evidenceBody(start));
  const exists = async () =>
    (
      await server.database.pool.query(
        'select 1 from incidents i join incident_observations o on o.incident_id = i.id where o.observation_id = $1',
        [id],
      )
    ).rows.length;
  await advance(366 * day);
  fault = 'ECONNREFUSED';
  await server.monitor.retention.runOnce().catch(() => {});
  assert.deepEqual([await exists(), (await rows()).length, objects()], [1, 1, 1]);
  assert.match((await server.monitor.retention.state()).lastError!, /capture files.*ECONNREFUSED/);
  fault = null;
  await server.monitor.retention.runOnce();
  assert.deepEqual([await exists(), (await rows()).length, objects()], [0, 0, 0]);
  assert.equal((await server.monitor.retention.state()).lastError, null);
});

test('the writer’s file is what the reader gives back', () => {
  const packets = [1, 2, 3].map((n) => evidencePacket(synFrame(n), start + n));
  const file = encodeEvidence({ linkType: 113, packets });
  const read = decodeEvidence(file);
  assert.equal(read.linkType, 113);
  assert.deepEqual(
    read.packets.map((packet) => ({ ...packet, bytes: [...packet.bytes] })),
    packets.map((packet) => ({ ...packet, bytes: [...packet.bytes] })),
  );
});

test('with a bucket, a file comes from the sensor to an operator, and is removed from the bucket', async () => {
  await using bucket = await startS3Server();
  const { endpoint, accessKeyId, secretAccessKey } = bucket.settings;
  await using own = await startMonitorServer(
    {
      SVC_MONITOR_EVIDENCE_S3_BUCKET: bucket.settings.bucket,
      SVC_MONITOR_EVIDENCE_S3_ENDPOINT: endpoint,
      SVC_MONITOR_EVIDENCE_S3_ACCESS_KEY_ID: accessKeyId,
      SVC_MONITOR_EVIDENCE_S3_SECRET_ACCESS_KEY: secretAccessKey,
    },
    { reporter: silentReporter },
  );
  const still = await stopDatabaseClock(own.database, start);
  const { token } = await own.monitor.sensors.createToken(systemActor, own.siteId);
  const made = await own.monitor.sensors.enrol({ token, host_name: 'a', node: 'a', sensor_version: '0' });
  const sensor = (await own.monitor.sensors.authenticate(made!.credential))!;
  const seen = observation({ startedAtMs: start - 60_000, lastObservedAtMs: start });
  const upload = compressUpload(encodeUpload(createIncidentSpool()(seen)));
  await own.monitor.inbox.receiveUrgent(sensor, upload, 'zstd', requireIncidentsAlone);
  const { evidence } = own.monitor;
  assert.equal(await evidence.receive(sensor, seen.id, evidenceBody(start, 7)), 'stored');
  assert.equal((await bucket.keys()).length, 1);
  const [file] = await evidence.list(own.siteId, [{ sensorId: sensor.id, observationId: seen.id }]);
  assert.equal((await evidence.readPackets(systemActor, file!)).length, 7);
  await still.set(start + 7 * day + 1000);
  await bucket.answerWith(503);
  await assert.rejects(evidence.removeExpired(), /status 503/);
  await bucket.answerWith(0);
  assert.deepEqual([(await bucket.keys()).length, await evidence.removeExpired()], [1, 1]);
  assert.deepEqual(await bucket.keys(), []);
});
