import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type DetectOptions, detectFile } from '#sensor/capture-reader/index.ts';
import {
  createFlood,
  createLookups,
  createTransfer,
  type FloodShape,
  type Stream,
  startSecond,
  storedStreams,
  victim,
} from '#sensor/testing/attack-traffic.ts';
import { pcapFile, pcapngFile } from '#sensor/testing/capture-files.ts';
import { printInProcess } from '#sensor/testing/read-in-process.ts';

const folder = mkdtempSync(join(tmpdir(), 'svc-detect-'));
after(() => rmSync(folder, { recursive: true }));

const flood: FloodShape = { class: 'syn_flood', version: 4, direction: 'inbound', ratio: 1 };
const streams: Stream[] = [
  { step: createLookups(1), perSecond: 4, from: 0, to: 80 },
  { step: createFlood(flood, 1), perSecond: 300, from: 5, to: 12 },
];
const frames = storedStreams(streams);
const capture = stored('flood.pcap', pcapFile(frames));
/** The flood beside a transfer by UDP to another address. */
const mixed = stored(
  'mixed.pcap',
  pcapFile(
    storedStreams([
      ...streams,
      { step: createTransfer('udp', '203.0.113.9', '192.0.2.9'), perSecond: 250, from: 2, to: 14 },
    ]),
  ),
);
const limits = stored('limits.json', '{"inbound": {"syn_pps": 100}}');

function stored(name: string, bytes: Uint8Array | string): string {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return path;
}

const detect = (path: string, options: DetectOptions = {}) =>
  printInProcess((screen) => detectFile(path, options, screen));

test('NET-1.1: detect --json has the capture, the detector and the incidents', async () => {
  const { status, stdout, stderr } = await detect(capture, { json: true, thresholds: limits });
  assert.deepEqual([status, stderr], [0, '']);
  const found = JSON.parse(stdout);
  const moment = (after: number) =>
    new Date((startSecond + after) * 1000).toISOString().replace('.000Z', '.000000Z');
  assert.equal(found.capture.packets, frames.length);
  assert.equal(found.capture.first_at, moment(0));
  assert.equal(found.detector.complete, true);
  assert.equal(found.detector.overflowed, 0);
  assert.equal(found.detector.ticks, 80);
  assert.equal(found.incidents.length, 1);
  const { top_sources: sources, vectors, ...incident } = found.incidents[0];
  assert.deepEqual(incident, {
    target: { kind: 'host', value: victim(4) },
    direction: 'inbound',
    class: 'syn_flood',
    severity: 'attack',
    started_at: moment(5),
    detected_at: moment(7),
    recovered_at: moment(72),
    peak: { bps: 300 * 40 * 8, pps: 300 },
    bytes: 2100 * 40,
    packets: 2100,
  });
  assert.equal(vectors[0].class, 'syn_flood');
  assert.deepEqual(vectors[0].ports, [443]);
  assert.ok(vectors[0].packets_share > 0.99 && vectors[0].bytes_share > 0.98);
  assert.ok(sources.length > 0 && sources.every((one: { share: number }) => one.share <= 1));
});

test('NET-1.1: detect prints a table for people', async () => {
  const { status, stdout } = await detect(capture, { thresholds: limits });
  assert.equal(status, 0);
  assert.match(stdout, /Incidents \(1\)/);
  assert.match(stdout, /192\.0\.2\.7 +inbound +syn_flood +attack/);
  assert.match(stdout, /syn_flood: 100 % of packets, 100 % of bytes, ports 443/);
  const quiet = await detect(capture);
  assert.match(quiet.stdout, /No incidents\./);
});

test('NET-1.1: --explain says by which rule an incident is one, and what was taken off of the largest other traffic', async () => {
  const options = { thresholds: limits, explain: true, protect: ['192.0.2.0/24'] };
  const { incidents, largest_others: others } = JSON.parse(
    (await detect(mixed, { ...options, json: true })).stdout,
  );
  assert.equal(incidents.length, 1);
  const { reason } = incidents[0];
  assert.deepEqual([reason.trigger, reason.threshold], ['two_of_three', { metric: 'syn_pps', value: 100 }]);
  assert.deepEqual(reason.ratios.slice(-2), [3, 3]);
  assert.deepEqual(reason.rest, { packets: 300, bytes: 300 * 40 });
  const [tunnel] = others;
  assert.deepEqual([tunnel.target.kind, tunnel.seconds_at_threshold], ['host', 0]);
  const { all, rest, ordinary, pairs } = tunnel.reason;
  assert.ok(all.packets > 400, `${all.packets}`);
  // Its first step is before the other end has sent.
  assert.ok(rest.packets <= 2, `${rest.packets}`);
  assert.deepEqual(Object.keys(ordinary), ['pairs']);
  assert.equal(ordinary.pairs.packets + rest.packets, all.packets);
  assert.equal(pairs.established, 1);
  assert.ok(others.length <= 5);
  const attacked = `inbound ${victim(4)}`;
  type Other = { direction: string; target: { value: string } };
  assert.ok(others.every((one: Other) => `${one.direction} ${one.target.value}` !== attacked));
  const { stdout } = await detect(mixed, options);
  assert.match(
    stdout,
    /why: two of three seconds at 1\.7 times a threshold \(syn_pps 100\); the seconds were at .*3\.00/,
  );
  assert.match(stdout, /Largest without an incident/);
  assert.match(stdout, /all of it is ordinary/);
  assert.match(stdout, /- packets of established pairs/);
  const plain = JSON.parse((await detect(mixed, { json: true, thresholds: limits })).stdout);
  assert.deepEqual([plain.largest_others, plain.incidents[0].reason], [undefined, undefined]);
});

test('NET-1.1: --protect limits detection to these addresses', async () => {
  const options = { json: true, thresholds: limits };
  const inside = await detect(capture, { ...options, protect: ['192.0.2.0/25', '2001:db8::/32'] });
  assert.equal(JSON.parse(inside.stdout).incidents.length, 1);
  const outside = await detect(capture, { ...options, protect: ['198.51.100.7'] });
  assert.deepEqual(JSON.parse(outside.stdout).incidents, []);
  assert.equal(JSON.parse(outside.stdout).detector.hosts, 0);
});

test('NET-1.1: --link-speed judges the file as a whole', async () => {
  // 300 packets of 40 bytes, each 84 on the link.
  const options = { json: true, protect: ['192.0.2.0/24', '2001:db8::/32'] };
  const full = await detect(capture, { ...options, linkSpeed: '0.22M' });
  const found = JSON.parse(full.stdout).incidents as { target: unknown; class: string }[];
  assert.deepEqual(
    found.map((one) => [one.target, one.class]),
    [[{ kind: 'capture', value: 'flood.pcap' }, 'syn_flood']],
  );
  const wide = await detect(capture, { ...options, linkSpeed: '1G' });
  assert.deepEqual(JSON.parse(wide.stdout).incidents, []);
});

for (const [options, message] of [
  [
    { protect: ['192.0.2.7/24'] },
    /--protect 192\.0\.2\.7\/24 is not a prefix.*For one address write 192\.0\.2\.7\./,
  ],
  [{ protect: ['example.com'] }, /--protect takes an address or a prefix such as 192\.0\.2\.0\/24/],
  [{ thresholds: '/does/not/exist' }, /--thresholds \/does\/not\/exist can not be read \(ENOENT\)/],
  [{ thresholds: capture }, /--thresholds .*: it is not JSON. Write for example/],
  [
    { linkSpeed: 'fast', protect: ['192.0.2.0/24'] },
    /--link-speed takes bits a second, such as 1G, 2\.5G or 100M/,
  ],
  [{ linkSpeed: '0', protect: ['192.0.2.0/24'] }, /--link-speed takes bits a second/],
  [{ linkSpeed: '1G' }, /--link-speed needs --protect/],
] as const)
  test(`NET-1.1: detect refuses ${JSON.stringify(options).slice(0, 40)} and says what to do`, async () => {
    const { status, stdout, stderr } = await detect(capture, options as DetectOptions);
    assert.deepEqual([status, stdout], [2, '']);
    assert.match(stderr, message);
  });

test('NET-1.1: a truncated capture is judged up to the damage', async () => {
  const whole = pcapFile(frames);
  const path = stored('truncated.pcap', whole.subarray(0, Math.floor(whole.length / 2)));
  const { status, stdout, stderr } = await detect(path, { json: true, thresholds: limits });
  assert.equal(status, 0);
  assert.match(stderr, /The file ends inside a packet.*the packets before were read/);
  const found = JSON.parse(stdout);
  assert.equal(found.incidents[0].class, 'syn_flood');
  assert.equal(found.detector.complete, false);
});

test('NET-1.1: a file of several interfaces is judged and named as such', async () => {
  const interfaces = [{ linkType: 1 }, { linkType: 1 }];
  const path = stored('two.pcapng', pcapngFile(frames.slice(0, 50), { interfaces }));
  const { status, stdout, stderr } = await detect(path, { json: true });
  assert.equal(status, 0);
  assert.match(stderr, /The file has 2 interfaces/);
  assert.equal(JSON.parse(stdout).detector.complete, false);
});

test('NET-1.1: what is not a capture ends with exit code 2', async () => {
  const { status, stderr } = await detect(stored('text', 'not a capture file at all'));
  assert.equal(status, 2);
  assert.match(stderr, /is not a capture file/);
});

test('NET-1.1: the command line has detect with its help and its errors', () => {
  const runner = `
    import { Command } from 'commander';
    import { addCommands } from '#sensor/main.ts';
    const program = new Command('sensor');
    addCommands(program);
    await program.parseAsync(process.argv.slice(1), { from: 'user' });
  `;
  const cwd = fileURLToPath(new URL('../..', import.meta.url));
  const run = (...args: string[]) =>
    spawnSync(process.execPath, ['--input-type=module', '-e', runner, '--', 'detect', ...args], {
      cwd,
      encoding: 'utf8',
    });
  const help = run('--help');
  assert.equal(help.status, 0);
  for (const option of ['--json', '--protect', '--thresholds', 'syn_pps'])
    assert.ok(help.stdout.includes(option));
  assert.equal(run().status, 2);
  const found = run(capture, '--thresholds', limits, '--protect', '192.0.2.7', '--json');
  assert.equal(found.status, 0, found.stderr);
  assert.equal(JSON.parse(found.stdout).incidents.length, 1);
});
