import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { MinuteReport } from '#sensor/capture/index.ts';
import { offer, testCapture, testMinute } from '#sensor/testing/captures.ts';
import {
  ascii,
  clientHello,
  dnsMessage,
  ethernet,
  ip,
  reverse,
  type SegmentOptions,
  Tcp,
  tcp,
  udp,
} from '#sensor/testing/frames.ts';

const outbound: SegmentOptions = { from: '192.0.2.1', fromPort: 40_000, to: '203.0.113.9', toPort: 443 };
const endMs = (testMinute + 60) * 1000;

function hostOf(report: MinuteReport, address: string) {
  return report.hosts.find((host) => host.address === address)!;
}

test('NET-2.4.2: an address has separate received and sent bytes, and packets of both directions', () => {
  const capture = testCapture();
  const there = udp(outbound, ascii('ping'));
  const back = udp(reverse(outbound), ascii('a longer pong'));
  offer(capture, ethernet(there));
  offer(capture, ethernet(back));
  const [report] = capture.closeMinutes(endMs);
  const host = hostOf(report!, '192.0.2.1');
  assert.deepEqual(
    [host.isLocal, host.txBytes, host.rxBytes, host.packets],
    [true, there.length, back.length, 2],
  );
  assert.deepEqual(report!.totals, {
    packets: 2,
    ipPackets: 2,
    ipBytes: there.length + back.length,
    nonIpPackets: 0,
    parserDropped: 0,
    kernelDropped: 0,
    detailTruncated: 0,
    mergedFrames: 0,
  });
});

test('NET-2.2.1: direction is from the local scope, also after the scope changed', () => {
  const capture = testCapture();
  const pairs: [string, string, string][] = [
    ['192.0.2.1', '203.0.113.9', 'outbound'],
    ['203.0.113.9', '192.0.2.1', 'inbound'],
    ['192.0.2.1', '192.0.2.2', 'internal'],
    ['203.0.113.9', '203.0.113.10', 'transit'],
  ];
  for (const [from, to] of pairs) offer(capture, ethernet(udp({ ...outbound, from, to }, ascii('x'))));
  const [report] = capture.closeMinutes(endMs);
  for (const [client, server, direction] of pairs) {
    const row = report!.usage.find((one) => one.client === client && one.server === server)!;
    assert.equal(row.direction, direction);
    assert.equal(row.name, direction === 'inbound' ? client : server);
  }
  capture.setLocal({ prefixes: [], addresses: ['203.0.113.9'] });
  offer(capture, ethernet(udp(outbound, ascii('x'))), 61);
  const [after] = capture.closeMinutes(endMs + 60_000);
  assert.equal(after!.usage[0]!.direction, 'inbound');
});

test('bytes from before the name was known go to the name within the minute', () => {
  const capture = testCapture();
  const frames = [
    tcp(outbound, Tcp.syn, 1),
    tcp(reverse(outbound), Tcp.syn | Tcp.ack, 1),
    tcp(outbound, Tcp.ack, 2, clientHello({ host: 'www.example.com' })),
    tcp(reverse(outbound), Tcp.ack, 2, ascii('data')),
  ];
  for (const frame of frames) offer(capture, ethernet(frame), 2.25);
  const [report] = capture.closeMinutes(endMs);
  const sent = frames[0]!.length + frames[2]!.length;
  const received = frames[1]!.length + frames[3]!.length;
  assert.deepEqual(report!.usage, [
    {
      client: '192.0.2.1',
      server: '203.0.113.9',
      protocol: 6,
      serverPort: 443,
      direction: 'outbound',
      name: 'example.com',
      evidence: 'tls_sni',
      clientBytes: sent,
      serverBytes: received,
      packets: 4,
      clientLastSentMs: testMinute * 1000 + 2250,
      serverLastSentMs: testMinute * 1000 + 2250,
    },
  ]);
});

test('requests with different hosts on one connection each get the bytes that follow them', () => {
  const capture = testCapture();
  const first = ascii('GET / HTTP/1.1\r\nHost: a.example.com\r\n\r\n');
  const second = ascii('GET / HTTP/1.1\r\nHost: b.example.org\r\n\r\n');
  const answer = tcp(reverse(outbound), Tcp.ack, 2, new Uint8Array(1000));
  const frames = [tcp(outbound, Tcp.ack, 2, first), tcp(outbound, Tcp.ack, 2 + first.length, second), answer];
  for (const frame of frames) offer(capture, ethernet(frame));
  const [report] = capture.closeMinutes(endMs);
  const rows = report!.usage.map((row) => [row.name, row.clientBytes, row.serverBytes]);
  assert.deepEqual(rows, [
    ['example.com', frames[0]!.length, 0],
    ['example.org', frames[1]!.length, answer.length],
  ]);
});

test('a flow keeps its name in later minutes', () => {
  const capture = testCapture();
  offer(capture, ethernet(tcp(outbound, Tcp.ack, 2, clientHello({ host: 'www.example.com' }))), 1);
  offer(capture, ethernet(tcp(outbound, Tcp.ack, 900, ascii('more'))), 61);
  const reports = capture.closeMinutes(endMs + 60_000);
  assert.deepEqual(
    reports.map((report) => report.usage.map((row) => row.name)),
    [['example.com'], ['example.com']],
  );
});

test('minutes close by time and by a later frame, silent ones too, oldest first', () => {
  const capture = testCapture();
  capture.listeningSince((testMinute + 20) * 1000);
  offer(capture, ethernet(udp(outbound, ascii('x'))), 30);
  assert.deepEqual(capture.closeMinutes(endMs - 1), []);
  offer(capture, ethernet(udp(outbound, ascii('x'))), 185);
  offer(capture, ethernet(udp(outbound, ascii('late'))), 179.9);
  const reports = capture.closeMinutes(endMs + 180_000);
  assert.deepEqual(
    reports.map((report) => [report.minute - testMinute, report.observedMs, report.totals.packets]),
    [
      [0, 40_000, 1],
      [60, 60_000, 0],
      [120, 60_000, 0],
      [180, 60_000, 2],
    ],
  );
  assert.equal(reports[1]!.hosts.length, 0);
});

test('an orderly stop closes the open minute with what was observed of it', () => {
  const capture = testCapture();
  capture.listeningSince(testMinute * 1000);
  offer(capture, ethernet(udp(outbound, ascii('x'))), 3);
  const reports = capture.closeAll((testMinute + 15) * 1000);
  assert.deepEqual(
    reports.map((report) => [report.observedMs, report.totals.packets]),
    [[15_000, 1]],
  );
});

test('a clock that was set back opens the minute it says', () => {
  const capture = testCapture();
  offer(capture, ethernet(udp(outbound, ascii('x'))), 3600);
  offer(capture, ethernet(udp(outbound, ascii('x'))), 1);
  const reports = capture.closeMinutes(endMs);
  assert.deepEqual(
    reports.map((report) => report.minute - testMinute),
    [3600, 0],
  );
});

test('NET-2.2.6: packets the kernel dropped are told apart from those the parser rejected', () => {
  const capture = testCapture();
  offer(capture, new Uint8Array(5));
  capture.addKernelDropped(7);
  const [report] = capture.closeMinutes(endMs);
  assert.deepEqual(
    [report!.totals.kernelDropped, report!.totals.parserDropped, report!.totals.packets],
    [7, 1, 1],
  );
});

test('NET-8.6: when flows overflow, totals of local addresses stay exact and every byte is in a row', () => {
  const capture = testCapture({ flowsMax: 64 });
  let sent = 0;
  for (let i = 0; i < 500; i += 1) {
    const ends = { ...outbound, fromPort: 1024 + i };
    for (const packet of [udp(ends, ascii('a')), udp(reverse(ends), ascii('b')), udp(ends, ascii('c'))]) {
      offer(capture, ethernet(packet));
      sent += packet.length;
    }
  }
  const [report] = capture.closeMinutes(endMs);
  const host = hostOf(report!, '192.0.2.1');
  assert.equal(host.rxBytes + host.txBytes, sent);
  assert.equal(host.packets, 1500);
  const rows = report!.usage.reduce((sum, row) => sum + row.packets, 0);
  assert.deepEqual([rows, report!.totals.detailTruncated], [1500, 0]);
});

/** A connection that says its name, from the opening to the hello. */
function namedConnection(ends: SegmentOptions, host: string): Uint8Array[] {
  return [
    tcp(ends, Tcp.syn, 1),
    tcp(reverse(ends), Tcp.syn | Tcp.ack, 1),
    tcp(ends, Tcp.ack, 2, clientHello({ host })),
  ].map((packet) => ethernet(packet));
}

test('NET-8.6: exchanges that are over give their entries back, a named connection stays and new ones get names', () => {
  const capture = testCapture({ flowsMax: 256 });
  const old = { ...outbound, fromPort: 999 };
  for (const frame of namedConnection(old, 'www.old.example')) offer(capture, frame);
  for (let i = 0; i < 5000; i += 1) {
    const ends = { ...outbound, from: '192.0.2.2', fromPort: 1024 + i, to: '198.51.100.53', toPort: 53 };
    for (const packet of [udp(ends, ascii('question')), udp(reverse(ends), ascii('an answer'))])
      offer(capture, ethernet(packet));
    if (i % 500 !== 0) continue;
    const ends2 = { ...outbound, fromPort: 2000 + i };
    for (const frame of namedConnection(ends2, `www.new-${i}.example`)) offer(capture, frame);
  }
  offer(capture, ethernet(tcp(old, Tcp.ack, 900, ascii('still here'))));
  const [report] = capture.closeMinutes(endMs);
  const named = report!.usage.filter((row) => row.evidence === 'tls_sni');
  assert.equal(named.length, 11);
  assert.equal(named.find((row) => row.name === 'old.example')?.packets, 4);
  assert.equal(report!.usage.find((row) => row.serverPort === 53)?.packets, 10_000);
  assert.equal(report!.totals.detailTruncated, 0);
});

test('NET-8.6: under pressure the least recently used conversation makes room, a named TCP connection last', () => {
  const capture = testCapture({ flowsMax: 256 });
  const named = Array.from({ length: 100 }, (_, i) => ({ ...outbound, fromPort: 100 + i }));
  for (const [i, ends] of named.entries())
    for (const frame of namedConnection(ends, `www.site-${i}.example`)) offer(capture, frame);
  for (let i = 0; i < 3000; i += 1) {
    const ends = { from: '203.0.113.50', fromPort: 5000 + i, to: '192.0.2.9', toPort: 27_015 };
    for (const packet of [udp(ends, ascii('a')), udp(reverse(ends), ascii('b')), udp(ends, ascii('c'))])
      offer(capture, ethernet(packet), 1 + i / 1000);
  }
  for (const ends of named) offer(capture, ethernet(tcp(ends, Tcp.ack, 900, ascii('still here'))), 30);
  const [report] = capture.closeMinutes(endMs);
  const rows = report!.usage.filter((row) => row.evidence === 'tls_sni');
  assert.deepEqual([rows.length, rows.every((row) => row.packets === 4)], [100, true]);
  const game = report!.usage.find((row) => row.serverPort === 27_015)!;
  assert.deepEqual([game.client, game.packets], ['203.0.113.50', 9000]);
});

test('NET-8.6: a resolver’s many names and servers leave room for what clients say', () => {
  const capture = testCapture({ flowsMax: 32_768 });
  const resolver = '192.0.2.53';
  for (let i = 0; i < 20_000; i += 1) {
    const server = `198.${18 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`;
    const ends = { from: resolver, fromPort: 1024 + (i % 60_000), to: server, toPort: 53 };
    const name = `h${i}.zone-${i}.example-${i}.com`;
    const answers = [{ name, ttl: 300, address: `203.1.${(i >> 8) & 255}.${i & 255}` }];
    offer(capture, ethernet(udp(ends, dnsMessage({ id: i & 0xffff, name }))));
    offer(capture, ethernet(udp(reverse(ends), dnsMessage({ id: i & 0xffff, name, answers }))));
    if (i % 1000 !== 999) continue;
    const connection = namedConnection({ ...outbound, fromPort: i }, `www.spoken-${i}.example`);
    for (const frame of connection) offer(capture, frame);
  }
  const [report] = capture.closeMinutes(endMs);
  const named = report!.usage.filter((row) => row.evidence === 'tls_sni').map((row) => row.name);
  assert.deepEqual(
    named.sort(),
    Array.from({ length: 20 }, (_, i) => `spoken-${i * 1000 + 999}.example`).sort(),
  );
  assert.equal(hostOf(report!, resolver).packets, 40_000);
});

test('NET-8.6: a minute has the 4,096 largest rows; packets without a row are counted, hosts stay exact', () => {
  const capture = testCapture({ flowsMax: 8192 });
  for (let i = 0; i < 6000; i += 1) {
    const ends = { ...outbound, to: `198.51.${100 + (i >> 8)}.${i & 255}`, toPort: 1000 };
    offer(capture, ethernet(udp(ends, ascii(i === 5999 ? 'a larger one' : 'a'))));
    offer(capture, ethernet(udp(reverse(ends), ascii('a'))));
  }
  const [report] = capture.closeMinutes(endMs);
  assert.equal(report!.usage.length, 4096);
  assert.equal(report!.usage[0]!.server, '198.51.123.111');
  assert.equal(report!.totals.detailTruncated, (6000 - 4096) * 2);
  assert.equal(hostOf(report!, '192.0.2.1').packets, 12_000);
});

test('NET-8.6: every packet of a minute is in a row or counted as one without', () => {
  const capture = testCapture({ flowsMax: 20_000 });
  const count = 18_000;
  for (let i = 0; i < count; i += 1) {
    offer(capture, ethernet(udp({ ...outbound, to: `198.51.${i >> 8}.${i & 255}` }, ascii('a'))));
  }
  const [report] = capture.closeMinutes(endMs);
  const inRows = report!.usage.reduce((sum, row) => sum + row.packets, 0);
  assert.equal(inRows + report!.totals.detailTruncated, count);
  assert.equal(hostOf(report!, '192.0.2.1').packets, count);
});

test('a flood of connection attempts takes neither the flows nor the rows of those that talk', () => {
  const capture = testCapture({ flowsMax: 1024 });
  const named = clientHello({ host: 'www.example.com' });
  for (const frame of [
    tcp(outbound, Tcp.syn, 1),
    tcp(reverse(outbound), Tcp.syn | Tcp.ack, 1),
    tcp(outbound, Tcp.ack, 2, named),
  ]) {
    offer(capture, ethernet(frame));
  }
  for (let i = 0; i < 20_000; i += 1) {
    const flood = {
      from: `203.0.${i >> 8}.${i & 255}`,
      fromPort: 1024 + (i % 60_000),
      to: '192.0.2.1',
      toPort: 80,
    };
    offer(capture, ethernet(tcp(flood, Tcp.syn, i)));
  }
  const late = tcp(outbound, Tcp.ack, 2 + named.length, ascii('still here'));
  offer(capture, ethernet(late));
  const [report] = capture.closeMinutes(endMs);
  const row = report!.usage.find((one) => one.name === 'example.com')!;
  assert.equal(row.packets, 4);
  assert.equal(hostOf(report!, '192.0.2.1').packets, 20_004);
});

test('NET-2.2.9: a local address is owned by the MAC it sent from, by none on conflict or when unseen', () => {
  const capture = testCapture({ role: 'bridge' });
  const frames: [SegmentOptions, string, number[]][] = [
    [outbound, '02:00:00:00:00:aa', []],
    [{ ...outbound, from: '192.0.2.2' }, '02:00:00:00:00:bb', [30]],
    [{ ...outbound, from: '192.0.2.3' }, '02:00:00:00:00:cc', []],
    [{ ...outbound, from: '192.0.2.3', fromPort: 5 }, '02:00:00:00:00:dd', []],
    [reverse(outbound), '02:00:00:00:00:ff', []],
    [{ ...outbound, from: '192.0.2.5' }, '02:00:00:00:00:ff', []],
  ];
  for (const [ends, source, tags] of frames)
    offer(capture, ethernet(udp(ends, ascii('x')), { source, tags }));
  offer(capture, ethernet(udp({ ...outbound, from: '203.0.113.1', to: '192.0.2.4' }, ascii('x'))));
  const [report] = capture.closeMinutes(endMs);
  const owners = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4', '192.0.2.5'].map(
    (address) => hostOf(report!, address).deviceKey,
  );
  assert.deepEqual(owners, ['br0|02:00:00:00:00:aa', 'br0.30|02:00:00:00:00:bb', '', '', '']);
  assert.equal(hostOf(report!, '203.0.113.9').deviceKey, '');
});

test('on an uplink no address has an owner', () => {
  const capture = testCapture();
  offer(capture, ethernet(udp(outbound, ascii('x'))));
  assert.equal(hostOf(capture.closeMinutes(endMs)[0]!, '192.0.2.1').deviceKey, '');
});

test('the VLAN that the kernel took off the frame is part of the segment', () => {
  const capture = testCapture({ role: 'bridge' });
  const frame = ethernet(udp(outbound, ascii('x')));
  capture.observe(frame, 0, frame.length, frame.length, testMinute + 1, 0, 0x6000 | 12);
  const [report] = capture.closeMinutes(endMs);
  assert.equal(hostOf(report!, '192.0.2.1').deviceKey, 'br0.12|02:00:00:00:00:01');
});

test('months of new names and flows stay within the tables, and an old flow keeps its name', () => {
  const capture = testCapture({ flowsMax: 256 });
  const old = { ...outbound, fromPort: 999 };
  const hello = clientHello({ host: 'www.lasting.example' });
  offer(capture, ethernet(tcp(old, Tcp.ack, 1, hello)), 0);
  let truncated = 0;
  const names = new Set<string | undefined>();
  for (let i = 0; i < 30_000; i += 1) {
    const ends = { ...outbound, fromPort: 1024 + (i % 60_000) };
    offer(capture, ethernet(tcp(ends, Tcp.ack, 1, clientHello({ host: `h${i}.example-${i}.com` }))), i);
    if (i % 60 !== 59) continue;
    offer(capture, ethernet(tcp(old, Tcp.ack, 1 + hello.length, ascii('still here'))), i);
    for (const report of capture.closeMinutes((testMinute + i) * 1000)) {
      truncated += report.totals.detailTruncated;
      names.add(report.usage.find((row) => row.packets === 1 && row.name === 'lasting.example')?.name);
      assert.ok(
        report.usage.every((row) => row.name === 'lasting.example' || row.name.startsWith('example-')),
      );
    }
  }
  assert.equal(truncated, 0);
  assert.ok(names.has('lasting.example'));
});

test('NET-8.6: four full captures fit into 32 MiB', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const settledBytes = async () => {
    for (let i = 0; i < 5; i += 1) {
      collect();
      await setImmediate();
    }
    return process.memoryUsage().arrayBuffers;
  };
  const before = await settledBytes();
  const capture = testCapture({ flowsMax: 32_768 });
  const frame = ethernet(
    tcp(outbound, Tcp.ack, 1, clientHello({ host: 'unfinished.example' }).subarray(0, 60)),
  );
  for (let i = 0; i < 40_000; i += 1) {
    // The server's address and the client's port.
    frame.set([i >> 8, i & 255, 40 + (i >> 10), i & 255], 32);
    offer(capture, frame);
    if (i % 8 !== 0) continue;
    const named = clientHello({ host: `h${i}.example-${i}.com` });
    offer(capture, ethernet(tcp({ ...outbound, fromPort: 1024 + i }, Tcp.ack, 1, named)));
  }
  const used = (await settledBytes()) - before;
  assert.equal(capture.closeMinutes(endMs)[0]!.usage.length, 4096);
  assert.ok(used <= 8 * 1024 * 1024, `${used} bytes`);
});

test('fragments count on the flow of their datagram', () => {
  const capture = testCapture();
  const payload = udp(outbound, new Uint8Array(100)).subarray(20);
  const ends = { from: outbound.from, to: outbound.to, protocol: 17, id: 5 };
  const first = ip(payload.subarray(0, 48), { ...ends, offset: 0, more: true });
  const second = ip(payload.subarray(48), { ...ends, offset: 48 });
  for (const packet of [second, first]) offer(capture, ethernet(packet));
  const [report] = capture.closeMinutes(endMs);
  assert.deepEqual(
    report!.usage.map((row) => [row.serverPort, row.clientBytes, row.packets]),
    [[443, first.length + second.length, 2]],
  );
});

test('a fragment whose first never comes still counts exactly', () => {
  const capture = testCapture();
  const lost = ip(new Uint8Array(80), {
    from: outbound.from,
    to: outbound.to,
    protocol: 17,
    id: 5,
    offset: 80,
  });
  offer(capture, ethernet(lost));
  const [report] = capture.closeMinutes(endMs);
  assert.equal(hostOf(report!, '192.0.2.1').txBytes, lost.length);
  assert.deepEqual(
    report!.usage.map((row) => [row.serverPort, row.clientBytes]),
    [[null, lost.length]],
  );
});
