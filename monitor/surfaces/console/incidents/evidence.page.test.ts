import assert from 'node:assert/strict';
import { globSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { zstdCompressSync } from 'node:zlib';
import type { IncidentObservation } from '#contracts/sensor-api/detection.ts';
import { decodeEvidence, encodeEvidence } from '#contracts/sensor-api/evidence.ts';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { evidenceBody, evidencePacket, synFrame } from '#monitor/evidence/testing/captures.ts';
import { requireIncidentsAlone } from '#monitor/incidents/index.ts';
import { createIncidentSpool, observation } from '#monitor/incidents/testing/observations.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { type MonitorServer, startMonitorServer, type Visitor } from '#monitor/testing/server.ts';

const folder = mkdtempSync(join(tmpdir(), 'svc-evidence-'));
let server: MonitorServer;
let operator: Visitor;
let viewer: Visitor;
let page: string;
let sensorId: number;
let receive: (observationId: string, body: Uint8Array) => Promise<unknown>;
let now: number;
let flood: IncidentObservation;
let info: IncidentObservation;

before(async () => {
  now = Math.floor(Date.now() / 1000) * 1000;
  flood = observation({ startedAtMs: now - 60_000, lastObservedAtMs: now, hasEvidence: true });
  info = observation({
    ...{ startedAtMs: now - 60_000, lastObservedAtMs: now, target: '198.51.100.9' },
    ...{ severity: 'info', class: 'high_volume' },
  });
  server = await startMonitorServer({ SVC_MONITOR_EVIDENCE_FOLDER: folder });
  operator = await server.signIn('operator');
  viewer = await server.signIn('viewer');
  const { token } = await server.monitor.sensors.createToken(systemActor, server.siteId);
  const request = { token, host_name: 'host-1', node: 'node-1', sensor_version: '0.2.0' };
  const { credential } = (await server.monitor.sensors.enrol(request))!;
  const sensor = (await server.monitor.sensors.authenticate(credential))!;
  sensorId = sensor.id;
  receive = (id, body) => server.monitor.evidence.receive(sensor, id, body);
  const body = compressUpload(encodeUpload(createIncidentSpool()(flood, info)));
  await server.monitor.inbox.receiveUrgent(sensor, body, 'zstd', requireIncidentsAlone);
  page = await hrefOf('198.51.100.7');
});
after(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

async function hrefOf(target: string): Promise<string> {
  const { rows } = await server.database.pool.query('select id from incidents where target = $1', [target]);
  return `/sites/${server.siteId}/incidents/${rows[0].id}`;
}
const fileHref = (text: string) => /href="([^"]*\/evidence\/[0-9a-f-]{36})"/.exec(text)?.[1];
const downloads = async () =>
  (
    await server.database.pool.query(
      `select actor_name, after from audit_entries where operation = 'incident.download_evidence'`,
    )
  ).rows as { actor_name: string; after: Record<string, unknown> }[];

test('an attack whose file is on its way says so; traffic that need not be an attack has no evidence', async () => {
  assert.match(
    (await viewer.get(page)).text,
    /A sensor recorded packets, and sends them when the attack is over/,
  );
  assert.doesNotMatch((await viewer.get(await hrefOf('198.51.100.9'))).text, /Evidence/);
});

test('the incident lists its files with size, packets, sensor and end; operators read and download them, each download is audited', async () => {
  await receive(flood.id, evidenceBody(now - 58_000, 250));
  const { text } = await operator.get(page);
  assert.match(text, /host-1, eth0/);
  assert.match(text, /250/);
  assert.match(text, /in 6 days|in 7 days/);
  const file = fileHref(text)!;
  const packets = (await operator.get(file)).text;
  assert.match(packets, /203\.0\.113\.1:40001/);
  assert.match(packets, /198\.51\.100\.7:443/);
  assert.match(packets, /SYN/);
  assert.match(packets, /1–100 of 250/);
  const listed = JSON.parse((await operator.get(`${file}?format=json&table=packets`)).text) as {
    rows: { source: string; protocol: string; bytes: number; info: string; at: string }[];
  };
  assert.equal(listed.rows.length, 250);
  assert.deepEqual(
    [listed.rows[1]!.source, listed.rows[1]!.protocol, listed.rows[1]!.bytes, listed.rows[1]!.info],
    ['203.0.113.2:40002', 'tcp', 54, 'SYN'],
  );
  assert.equal(listed.rows[1]!.at, new Date(now - 57_999).toISOString().replace('Z', '001Z'));
  assert.deepEqual(await downloads(), [], 'reading the list is no download');
  const answer = await fetch(`${server.url}${file}/download`, { headers: { cookie: operator.cookie } });
  assert.equal(answer.status, 200);
  assert.match(
    answer.headers.get('content-disposition')!,
    /^attachment; filename="incident-\d{8}T\d{6}Z-eth0\.pcap"$/,
  );
  assert.equal(decodeEvidence(new Uint8Array(await answer.arrayBuffer())).packets.length, 250);
  const [entry, ...others] = await downloads();
  assert.deepEqual(
    [entry!.actor_name, entry!.after.sensor_id, others.length],
    ['operator@monitor.example', sensorId, 0],
  );
});

test('a viewer sees that there is a file, and neither reads nor downloads it', async () => {
  const { text } = await viewer.get(page);
  assert.match(text, /host-1, eth0/);
  assert.equal(fileHref(text), undefined);
  const file = fileHref((await operator.get(page)).text)!;
  const before = await downloads();
  for (const path of [file, `${file}/download`, `${file}?format=json&table=packets`]) {
    const answer = await viewer.get(path);
    assert.equal(answer.status, 403);
    assert.doesNotMatch(answer.text, /203\.0\.113/);
  }
  assert.deepEqual(await downloads(), before);
  assert.equal((await fetch(`${server.url}${file}/download`, { redirect: 'manual' })).status, 303);
});

test('a file is found under its own incident only', async () => {
  const file = fileHref((await operator.get(page)).text)!;
  const elsewhere = `${await hrefOf('198.51.100.9')}/evidence/${file.split('/').at(-1)}`;
  assert.equal((await operator.get(elsewhere)).status, 404);
  assert.equal((await operator.get(`${elsewhere}/download`)).status, 404);
});

test('frames of every kind are listed, and what a packet claims is never believed or shown as markup', async () => {
  const lengths = Uint8Array.of(
    0x4f,
    0,
    0xff,
    0xff,
    0,
    0,
    0x20,
    0,
    64,
    17,
    0,
    0,
    203,
    0,
    113,
    5,
    198,
    51,
    100,
    7,
  );
  const vlan = Buffer.concat([
    Buffer.alloc(12),
    Buffer.from('810000c80800', 'hex'),
    synFrame(9).subarray(14),
  ]);
  const v6 = Buffer.concat([
    Buffer.alloc(12),
    Buffer.from('86dd600000000010', 'hex'),
    Buffer.from('2c40', 'hex'),
    Buffer.from('20010db8000000000000000000000001', 'hex'),
    Buffer.from('20010db8000700000000000000000007', 'hex'),
    Buffer.from('1100000100000001003500350008ffff', 'hex'),
  ]);
  const frames = [
    ...[vlan, v6, Buffer.from('<script>alert(1)</script>'), new Uint8Array(0)],
    Buffer.concat([Buffer.alloc(12), Buffer.from([8, 0]), lengths]),
  ];
  const other = observation({ startedAtMs: now - 30_000, lastObservedAtMs: now, target: '198.51.100.21' });
  const sensor = { id: sensorId, siteId: server.siteId };
  const spool = compressUpload(encodeUpload(createIncidentSpool()(other)));
  await server.monitor.inbox.receiveUrgent(sensor as never, spool, 'zstd', requireIncidentsAlone);
  const packets = frames.map((frame, i) => evidencePacket(frame, now + i));
  await receive(other.id, zstdCompressSync(encodeEvidence({ linkType: 1, packets })));
  const file = fileHref((await operator.get(await hrefOf('198.51.100.21'))).text)!;
  const { text } = await operator.get(file);
  assert.doesNotMatch(text, /<script>alert/);
  const { rows } = JSON.parse((await operator.get(`${file}?format=json&table=packets`)).text) as {
    rows: { source: string | null; protocol: string; info: string }[];
  };
  assert.deepEqual(
    rows.map(({ source, protocol, info }) => [source, protocol, info]),
    [
      ['203.0.113.9:40009', 'tcp', 'VLAN 200, SYN'],
      ['[2001:db8::1]:53', 'udp', 'first fragment'],
      [null, 'not IP', ''],
      [null, 'not IP', ''],
      ['203.0.113.5', 'udp', 'first fragment'],
    ],
  );
});

test('a file that the store has lost is said on its page and is a 404 as a download', async () => {
  const file = fileHref((await operator.get(page)).text)!;
  for (const name of globSync('*/*', { cwd: folder })) rmSync(join(folder, name));
  assert.match((await operator.get(file)).text, /The file can not be read.*The file is not in the store/s);
  const before = await downloads();
  assert.equal((await operator.get(`${file}/download`)).status, 404);
  assert.deepEqual(await downloads(), before);
});
