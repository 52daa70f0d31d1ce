// Slow: starts sensors and programs at terminals.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { silentReporter } from '#common/reporter/index.ts';
import type { LocalWindow } from '#sensor/collection/index.ts';
import {
  createStatusServer,
  followSensor,
  type SensorStatus,
  type StatusLine,
} from '#sensor/local-status/index.ts';
import { temporaryFolder } from '#sensor/testing/sample-minutes.ts';
import { renderPlain, renderPlainIncidents, renderTop, type TopState } from './top-view.ts';

const totals = {
  packets: 12_000,
  ipPackets: 12_000,
  ipBytes: 12_500_000,
  nonIpPackets: 0,
  parserDropped: 2,
  kernelDropped: 5,
  detailTruncated: 0,
};

function localWindow(capture: string, bytes: number): LocalWindow {
  return {
    capture,
    role: capture === 'eth0' ? 'uplink' : 'bridge',
    startedAtMs: Date.UTC(2026, 0, 1, 12, 4, 0),
    observedMs: 10_000,
    totals,
    hosts: [
      { address: '192.0.2.10', rxBytes: bytes, txBytes: 100, packets: 10 },
      { address: '192.0.2.11', rxBytes: 10, txBytes: bytes / 2, packets: 9000 },
      { address: '2001:db8:1234:5678:9abc:def0:1234:5678', rxBytes: 5, txBytes: 5, packets: 1 },
    ],
    hostsLeftOut: 0,
    applications: [
      { name: 'example.com', protocol: 6, serverPort: 443, clientBytes: 1000, serverBytes: 9_000_000 },
      { name: 'evil\x1b[2Jname', protocol: 47, serverPort: null, clientBytes: 10, serverBytes: 0 },
    ],
    spoofed: [],
  };
}

const status: SensorStatus = {
  version: '0.1.0',
  monitor: 'http://127.0.0.1:8090',
  site: 'Test site',
  startedAtMs: 0,
  captures: [
    {
      name: 'eth0',
      role: 'uplink',
      isListening: true,
      method: 'ring',
      members: 2,
      countsSegments: true,
      why: null,
    },
    {
      name: 'br0',
      role: 'bridge',
      isListening: false,
      method: null,
      members: 1,
      countsSegments: false,
      why: 'interface gone',
    },
  ],
  spool: { pendingUploads: 3, pendingBytes: 12_000, roomMinutes: 600 },
  live: { isAnnounced: true, posted: 9, dropped: 1, waiting: 0 },
  incidents: [],
};

const state: TopState = {
  windows: new Map([
    ['eth0', localWindow('eth0', 1_000_000)],
    ['br0', localWindow('br0', 2_000_000)],
  ]),
  status,
  sorting: 'total',
  isPaused: false,
  note: null,
};

test('top shows the incidents that go on: target, class, rate and since when, attacks first', () => {
  const incident = (target: string, severity: 'attack' | 'info', drill = false) => ({
    ...{ capture: 'eth0', target, direction: 'inbound' as const, severity, drill },
    ...{ class: 'syn_flood' as const, startedAtMs: Date.UTC(2026, 0, 1, 12, 3, 4), bps: 20e6, pps: 25_000 },
  });
  const incidents = [incident('192.0.2.11', 'info'), incident('192.0.2.10', 'attack', true)];
  const shown = { ...status, incidents };
  const text = renderTop({ ...state, status: shown }, 120, 40).join('\n');
  const lines = text.split('\n').filter((line) => line.includes('syn_flood'));
  assert.deepEqual(
    lines.map((line) => line.trim().split(/\s{2,}/)),
    [
      ['192.0.2.10', 'syn_flood (drill)', 'inbound', '20.00', '25,000', '12:03:04', 'eth0'],
      ['192.0.2.11', 'syn_flood (info)', 'inbound', '20.00', '25,000', '12:03:04', 'eth0'],
    ],
  );
  assert.equal(renderTop(state, 120, 40).join('\n').includes('ATTACKED'), false);
  assert.equal(renderPlainIncidents(shown, 'eth0').length, 2);
  assert.match(renderPlainIncidents(shown, 'eth0')[0]!, /attacked 192\.0\.2\.10 .* since 12:03:04/);
  assert.deepEqual(renderPlainIncidents(shown, 'br0'), []);
});

test('top shows capture files of attacks that are recorded or wait, and nothing without them', () => {
  const none = {
    ...{ takesEvidence: true, recording: 0, waitingFiles: 0, waitingBytes: 0, dropped: 0 },
    why: null as string | null,
  };
  const line = (part: Partial<typeof none>) =>
    renderTop({ ...state, status: { ...status, evidence: { ...none, ...part } } }, 120, 40).find((text) =>
      text.startsWith('evidence'),
    );
  assert.equal(line({}), undefined);
  assert.equal(line({ recording: 2 }), 'evidence: 0 capture files of attacks wait, 2 are recorded');
  assert.equal(
    line({ waitingFiles: 1, waitingBytes: 1.5 * 1024 * 1024, dropped: 3, why: 'full' }),
    'evidence: 1 capture file of an attack waits (1.5 MiB), 3 dropped: full',
  );
});

test('top fits any terminal, keeps the most important lines, and outputs no control characters from the wire', () => {
  for (const [width, height] of [
    [200, 50],
    [80, 24],
    [40, 12],
    [20, 6],
  ] as const) {
    const lines = renderTop(state, width, height);
    assert.ok(lines.length <= height && lines.every((line) => line.length <= width), `${width}×${height}`);
    const codes = [...lines.join('')].map((character) => character.charCodeAt(0));
    assert.ok(
      codes.every((code) => code >= 32 && code !== 127),
      'no control character',
    );
  }
  const wide = renderTop(state, 120, 40).join('\n');
  for (const text of [
    'RATE Mbit/s',
    '10.00',
    'ring ×2',
    'example.com',
    'tcp 443',
    '3 uploads pending',
    '10.0 h',
    'not listening: interface gone',
  ]) {
    assert.ok(wide.includes(text), `${text} in\n${wide}`);
  }
  const narrow = renderTop(state, 40, 40).join('\n');
  assert.ok(
    narrow.includes('192.0.2.10') && narrow.includes('example.com') && !narrow.includes('ROLE'),
    narrow,
  );
});

test('NET-2.2.5: a host in two captures shows the larger counters of one of them; rows follow the chosen order', () => {
  const order = (sorting: TopState['sorting']) =>
    renderTop({ ...state, sorting }, 120, 40)
      .filter((line) => /^192\.0\.2\.1[01]/.test(line))
      .map((line) => line.split(/\s{2,}/));
  assert.deepEqual(order('total')[0]!.slice(0, 3), ['192.0.2.10', '1.60', '<0.01']);
  assert.equal(order('out')[0]![0], '192.0.2.11');
  assert.equal(order('packets')[0]![0], '192.0.2.11');
  assert.match(
    renderPlain(localWindow('eth0', 1_000_000)),
    /^12:04:00 {2}eth0 \(uplink\) {2}10.00 Mbit\/s {2}1,200 packets\/s {2}lost 5, unparsed 2 {2}top host 192\.0\.2\.10/,
  );
});

test('a column has one unit, named in its title, for any sizes', () => {
  const window = {
    ...localWindow('eth0', 1),
    hosts: [
      { address: '192.0.2.1', rxBytes: 12_500_000_000, txBytes: 0, packets: 1 },
      { address: '192.0.2.2', rxBytes: 2_500_000, txBytes: 40, packets: 1 },
    ],
  };
  const lines = renderTop({ ...state, windows: new Map([['eth0', window]]) }, 120, 40);
  const at = lines.findIndex((line) => line.startsWith('HOST'));
  assert.deepEqual(
    lines.slice(at, at + 3).map((line) => line.split(/\s{2,}/).slice(0, 3)),
    [
      ['HOST', 'IN Gbit/s', 'OUT Gbit/s'],
      ['192.0.2.1', '10.00', '0'],
      ['192.0.2.2', '<0.01', '<0.01'],
    ],
  );
  assert.ok(
    lines.every((line) => !/\d [kMGT]?bit\/s/.test(line)),
    lines.join('\n'),
  );
});

test('traffic without a name is one row per service, not one per remote address', () => {
  const row = { protocol: 6, serverPort: 22, clientBytes: 500_000, serverBytes: 0 };
  const applications = [
    { ...row, name: '203.0.113.9' },
    { ...row, name: '2001:db8::9' },
    { ...row, name: '203.0.113.9', serverPort: 7777 },
    { ...row, name: 'example.com' },
  ];
  const window = { ...localWindow('eth0', 1), applications };
  const lines = renderTop({ ...state, windows: new Map([['eth0', window]]) }, 120, 40);
  const at = lines.findIndex((line) => line.startsWith('APPLICATION'));
  assert.deepEqual(
    lines.slice(at + 1).map((line) => line.split(/\s{2,}/).slice(0, 3)),
    [
      ['SSH', 'tcp 22', '800.00'],
      ['203.0.113.9', 'tcp 7777', '400.00'],
      ['example.com', 'tcp 22', '400.00'],
    ],
  );
  assert.match(renderPlain(window), /top application SSH 0\.80 Mbit\/s$/);
});

test('a running sensor serves its status and windows on a socket for its own user', async (t) => {
  const stateDirectory = temporaryFolder(t);
  assert.equal(
    await followSensor(
      stateDirectory,
      () => {},
      () => {},
    ),
    null,
  );
  const server = createStatusServer({ stateDirectory, reporter: silentReporter, status: () => status });
  await server.start();
  assert.equal(statSync(join(stateDirectory, 'sensor.sock')).mode & 0o777, 0o600);
  const lines: StatusLine[] = [];
  let heard: () => void = () => {};
  const three = new Promise<void>((resolve) => {
    heard = resolve;
  });
  let ended: () => void = () => {};
  const end = new Promise<void>((resolve) => {
    ended = resolve;
  });
  await followSensor(
    stateDirectory,
    (line) => {
      lines.push(line);
      if (lines.length === 1) server.publish(localWindow('eth0', 5));
      if (lines.length === 3) heard();
    },
    () => ended(),
  );
  await three;
  assert.deepEqual(
    lines.map((line) => line.kind),
    ['status', 'status', 'window'],
  );
  assert.deepEqual(lines[0], { kind: 'status', status });
  await server.stop();
  await end;
});

const svc = fileURLToPath(new URL('../../svc.ts', import.meta.url));
const node = [process.execPath, '--disable-warning=ExperimentalWarning', svc] as const;

test('top on one interface needs neither enrolment nor a terminal', async (t) => {
  if (process.getuid?.() !== 0) {
    assert.ok(!process.env.CI, 'this test needs root: run the gate as root in CI');
    return t.diagnostic('left out: needs root for a packet socket');
  }
  const env = { ...process.env, SVC_SENSOR_STATE_DIR: temporaryFolder(t) };
  const child = spawn(node[0], [...node.slice(1), 'sensor', 'top', '--interface', 'lo', '--count', '1'], {
    env,
  });
  let said = '';
  child.stdout.on('data', (text) => {
    said += text;
  });
  const [code] = await once(child, 'close');
  assert.equal(code, 0);
  assert.match(said, /^\d\d:\d\d:\d\d {2}lo \(uplink\) .*\n$/);
  const none = spawnSync(node[0], [...node.slice(1), 'sensor', 'top'], { env, encoding: 'utf8' });
  assert.equal(none.status, 1);
  assert.match(none.stderr, /No sensor runs .*--interface/);
});

test('check reports in words and as JSON what this host lacks; its exit code is 1 when something is bad', (t) => {
  const env = {
    ...process.env,
    SVC_SENSOR_STATE_DIR: temporaryFolder(t),
    SVC_MONITOR_URL: 'http://127.0.0.1:9',
    SVC_SENSOR_CAPTURES: 'uplink:nosuchif0',
  };
  const said = spawnSync(node[0], [...node.slice(1), 'sensor', 'check', '--json'], { env, encoding: 'utf8' });
  assert.equal(said.status, 1, said.stderr);
  const { ok, findings } = JSON.parse(said.stdout) as {
    ok: boolean;
    findings: { subject: string; state: string; text: string }[];
  };
  const of = (subject: string) => findings.filter((one) => one.subject === subject);
  assert.equal(ok, false);
  assert.ok(
    of('capture nosuchif0').some((one) => one.state === 'bad' && one.text.includes('no network interface')),
  );
  assert.deepEqual(
    of('enrolment').map((one) => one.state),
    ['bad'],
  );
  assert.ok(of('monitor').some((one) => one.state === 'bad' && one.text.includes('SVC_MONITOR_URL')));
  for (const subject of ['kernel', 'capability', 'memory', 'cores', 'disk', 'tcpdump', 'nmap', 'running']) {
    assert.equal(of(subject).length > 0, true, subject);
  }
  const text = spawnSync(node[0], [...node.slice(1), 'sensor', 'check'], { env, encoding: 'utf8' });
  assert.match(text.stdout, /BAD {2,}enrolment[^\n]*token[\s\S]*This host is not ready/);
});

test("without the ring's library check reports that tcpdump replaces it", (t) => {
  const folder = temporaryFolder(t);
  const block = join(folder, 'block.mjs');
  writeFileSync(
    block,
    `import { registerHooks } from 'node:module';
     registerHooks({ resolve(name, context, next) {
       if (name === 'koffi') throw new Error('no library for this machine');
       return next(name, context);
     } });`,
  );
  const env = { ...process.env, SVC_SENSOR_STATE_DIR: folder, NODE_OPTIONS: `--import=${block}` };
  const words = [...node.slice(1), 'sensor', 'check', '--interface', 'lo', '--json'];
  const said = spawnSync(node[0], words, { env, encoding: 'utf8' });
  assert.match(
    said.stdout,
    /The packet ring can not be used; tcpdump replaces it[^"]*no library for this machine/,
  );
  if (process.getuid?.() === 0) assert.match(said.stdout, /Works through tcpdump/);
});
