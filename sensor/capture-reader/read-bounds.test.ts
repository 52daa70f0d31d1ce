// Slow: reads two hundred thousand minutes.
import assert from 'node:assert/strict';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pcapFile, pcapngFile } from '#sensor/testing/capture-files.ts';
import { exchangePacketBytes, writeExchanges } from '#sensor/testing/exchange-capture.ts';
import { clientHello, ethernet, Tcp, tcp } from '#sensor/testing/frames.ts';
import { readInProcess } from '#sensor/testing/read-in-process.ts';

const folder = mkdtempSync(join(tmpdir(), 'svc-read-bounds-'));
after(() => rmSync(folder, { recursive: true }));

function stored(name: string, bytes: Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return path;
}

const web = { from: '192.0.2.1', fromPort: 40_000, to: '203.0.113.9', toPort: 443 };
const hello = ethernet(tcp(web, Tcp.ack, 2, clientHello({ host: 'www.example.co.uk' })));

test('times outside the calendar are limited and reported, in tables and JSON, with --minutes and without', async () => {
  const frame = { bytes: hello, seconds: 1_700_000_000, nanoseconds: 0 };
  // With a resolution of whole seconds, a time in microseconds becomes a year of about 10^11.
  const far = pcapngFile([frame], { interfaces: [{ linkType: 1, resolution: 0 }] });
  new DataView(far.buffer).setUint32(
    far.length - 4 - hello.length - ((4 - (hello.length % 4)) % 4) - 16,
    1,
    true,
  );
  const late = pcapFile([frame, { ...frame, seconds: 4_294_967_295 }]);
  new DataView(late.buffer).setUint32(28, 4_294_967_295, true);
  for (const [i, bytes] of [far, late].entries()) {
    const path = stored(`times-${i}.pcap`, bytes);
    for (const options of [{}, { minutes: true }, { json: true }, { json: true, minutes: true }]) {
      const { status, stdout } = await readInProcess([path], options);
      assert.equal(status, 0);
      if (!options.json) continue;
      const { capture, minutes } = JSON.parse(stdout);
      for (const time of [capture.first_at, capture.last_at])
        assert.match(time, /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6,9}Z$/);
      if (options.minutes)
        assert.equal(
          minutes.reduce((sum: number, one: { packets: number }) => sum + one.packets, 0),
          capture.packets,
        );
    }
  }
  assert.match(
    (await readInProcess([join(folder, 'times-1.pcap')])).stderr,
    /1 packets have a time outside the years 1970 to 9999 or a fraction of more than a second/,
  );
});

test('packets without a time have no first time and no minute, and one among others has the time of the one before', async () => {
  const timed = { bytes: hello, seconds: 1_700_000_000, nanoseconds: 0 };
  const untimed = { ...timed, seconds: 0 };
  const simple = { ...timed, hasNoTime: true };
  const small = { interfaces: [{ linkType: 1, resolution: 127 }] };
  const none = /\d packets have no time: they are in no minute\./;
  const borrowed = /1 packets have no time: that of the packet before is used\./;
  for (const [i, [bytes, at, inMinutes, problem]] of [
    [pcapFile([untimed, untimed]), null, 0, none],
    [pcapngFile([simple, simple]), null, 0, none],
    [pcapngFile([timed], small), null, 0, none],
    [pcapngFile([simple, timed]), '2023-11-14T22:13:20.000000Z', 1, none],
    [pcapngFile([timed, simple]), '2023-11-14T22:13:20.000000Z', 2, borrowed],
  ].entries() as ArrayIterator<[number, [Uint8Array, string | null, number, RegExp]]>) {
    const path = stored(`untimed-${i}.pcap`, bytes);
    const { stdout } = await readInProcess([path], { json: true, minutes: true });
    const { capture, minutes } = JSON.parse(stdout);
    assert.deepEqual([capture.first_at, capture.last_at], [at, at]);
    const packets = minutes.map((one: { packets: number }) => one.packets);
    assert.deepEqual(packets, inMinutes > 0 ? [inMinutes] : []);
    const tables = await readInProcess([path], {});
    assert.match(tables.stderr, problem);
    assert.doesNotMatch(tables.stdout, /1970/);
  }
});

test('two hundred thousand different minutes are listed', async () => {
  const path = join(folder, 'minutes.pcap');
  writeFileSync(path, pcapFile([]));
  const record = Buffer.alloc(16 + 14);
  record.writeUInt32LE(14, 8);
  record.writeUInt32LE(14, 12);
  record.writeUInt16BE(0x0806, 28);
  const records = [];
  for (let i = 0; i < 200_000; i += 1) {
    record.writeUInt32LE(i * 60 + 1, 0);
    records.push(Buffer.from(record));
  }
  appendFileSync(path, Buffer.concat(records));
  const { status, stdout } = await readInProcess([path], { minutes: true });
  assert.equal(status, 0);
  assert.match(stdout, /^1970-01-01 00:00 +1 /m);
});

test('invalid times and dates are refused with an example of a valid one', async () => {
  const path = stored('one.pcap', pcapFile([{ bytes: hello, seconds: 1_700_000_000, nanoseconds: 0 }]));
  for (const from of [
    '25:00',
    '24:01',
    '12:60',
    '12:00:60',
    '2026-02-30T12:00:00Z',
    '2026-01-01T25:00:00Z',
  ]) {
    const { status, stdout, stderr } = await readInProcess([path], { from });
    assert.deepEqual([from, status, stdout], [from, 2, '']);
    assert.match(stderr, /--from takes a time such as 2026-01-31T12:00:00Z, 12:00:30/);
  }
  const turned = await readInProcess([path], { from: '12:00', to: '11:00' });
  assert.equal(turned.status, 2);
  assert.match(turned.stderr, /--from 12:00 is not before --to 11:00/);
  for (const from of ['00:00', '22:13:20', '2024-02-29T12:00:00Z', '+90s'])
    assert.equal((await readInProcess([path], { from, to: '24:00' })).status, 0, from);
});

test('a name pattern with any number of stars is matched in one pass', async () => {
  const host = `${'a'.repeat(60)}.${'a'.repeat(60)}.${'a'.repeat(60)}.example`;
  const bytes = ethernet(tcp(web, Tcp.ack, 2, clientHello({ host })));
  const path = stored('stars.pcap', pcapFile([{ bytes, seconds: 1_700_000_000, nanoseconds: 0 }]));
  const flowsWith = async (name: string) =>
    JSON.parse((await readInProcess([path], { json: true, name: [name] })).stdout).flows.length;
  assert.equal(await flowsWith(`${'*a'.repeat(40)}*b`), 0);
  assert.equal(await flowsWith(`${'*a'.repeat(40)}*.example`), 1);
  assert.equal(await flowsWith('*a.example'), 1);
  assert.equal(await flowsWith('*.example*.example'), 0);
});

test('NET-2.2.3: with 200,000 answered exchanges the applications are complete, without a warning', async () => {
  const path = join(folder, 'exchanges.pcap');
  writeExchanges(path, 200_000);
  const { status, stdout, stderr } = await readInProcess([path], { json: true });
  const { capture, flows, hosts, conversations, applications } = JSON.parse(stdout);
  assert.deepEqual([status, stderr], [0, '']);
  assert.equal(capture.bytes, 400_000 * exchangePacketBytes);
  assert.deepEqual(
    [flows.length, hosts.length, conversations.length, applications.length],
    [200_000, 200_001, 200_000, 200_000],
  );
  const bytes = applications.reduce(
    (sum: number, one: Record<string, number>) => sum + one.inbound_bytes! + one.outbound_bytes!,
    0,
  );
  assert.equal(bytes, capture.bytes);
});

test('single packets after many flows are listed too, without a warning', async () => {
  const path = join(folder, 'singles.pcap');
  writeExchanges(path, 17_000, { remotes: 100 });
  const single = join(folder, 'single.pcap');
  writeExchanges(single, 10, { packets: 1, firstRemote: 1000 });
  appendFileSync(path, readFileSync(single).subarray(24));
  const { stdout, stderr } = await readInProcess([path], { json: true });
  assert.equal(stderr, '');
  assert.equal(JSON.parse(stdout).flows.length, 17_010);
});

test('a part of a flood of single packets is listed, and the rest is reported as counts', async () => {
  const path = join(folder, 'flood.pcap');
  writeExchanges(path, 20_000, { packets: 1 });
  const { status, stdout, stderr } = await readInProcess([path], { json: true });
  const { capture, flows, applications } = JSON.parse(stdout);
  assert.deepEqual([status, capture.packets, flows.length], [0, 20_000, 16_384]);
  const listed = applications.reduce(
    (sum: number, one: { outbound_bytes: number }) => sum + one.outbound_bytes,
    0,
  );
  const [, left, packets, bytes] =
    /(\d+) flows are not listed; (\d+) packets \((\d+) bytes\) are missing from applications/.exec(stderr) ??
    [];
  assert.equal(Number(left), 20_000 - 16_384);
  assert.equal(listed + Number(bytes), capture.bytes);
  assert.equal(Number(packets) * exchangePacketBytes, Number(bytes));
});

test('in tables, traffic without a name is listed under the service of its port; in the JSON its address stays', async () => {
  const ssh = { ...web, toPort: 22 };
  const path = stored(
    'ssh.pcap',
    pcapFile(
      ['203.0.113.9', '203.0.113.10'].map((to, i) => ({
        bytes: ethernet(tcp({ ...ssh, to }, Tcp.syn, 1)),
        seconds: 1_700_000_000 + i,
        nanoseconds: 0,
      })),
    ),
  );
  assert.match((await readInProcess([path])).stdout, /Applications\n.*\nSSH +tcp +22 +0 B +80 B\n\n/);
  assert.deepEqual(
    JSON.parse((await readInProcess([path], { json: true })).stdout).applications.map(
      (one: { name: string }) => one.name,
    ),
    ['203.0.113.9', '203.0.113.10'],
  );
});
