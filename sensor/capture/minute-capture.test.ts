import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MinuteReport } from '#sensor/capture/index.ts';
import { offer, testCapture, testMinute } from '#sensor/testing/captures.ts';
import {
  ascii,
  clientHello,
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

test('NET-2.2.1: direction follows the local scope, also after the scope changed', () => {
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

test('each of several hosts on one connection gets the bytes after its request', () => {
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

test('minutes close by time and by a later frame, oldest first, including minutes without a frame', () => {
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

test('an orderly stop closes the open minute with its observed part', () => {
  const capture = testCapture();
  capture.listeningSince(testMinute * 1000);
  offer(capture, ethernet(udp(outbound, ascii('x'))), 3);
  const reports = capture.closeAll((testMinute + 15) * 1000);
  assert.deepEqual(
    reports.map((report) => [report.observedMs, report.totals.packets]),
    [[15_000, 1]],
  );
});

test('after the clock was set back, the frame’s minute opens', () => {
  const capture = testCapture();
  offer(capture, ethernet(udp(outbound, ascii('x'))), 3600);
  offer(capture, ethernet(udp(outbound, ascii('x'))), 1);
  const reports = capture.closeMinutes(endMs);
  assert.deepEqual(
    reports.map((report) => report.minute - testMinute),
    [3600, 0],
  );
});

test('NET-2.2.6: packets dropped by the kernel and by the parser are counted separately', () => {
  const capture = testCapture();
  offer(capture, new Uint8Array(5));
  capture.addKernelDropped(7);
  const [report] = capture.closeMinutes(endMs);
  assert.deepEqual(
    [report!.totals.kernelDropped, report!.totals.parserDropped, report!.totals.packets],
    [7, 1, 1],
  );
});

test('NET-2.2.9: a local address is owned by the MAC it sent from; it has no owner on conflict or when it did not send', () => {
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

test('the VLAN that the kernel removed from the frame is part of the segment', () => {
  const capture = testCapture({ role: 'bridge' });
  const frame = ethernet(udp(outbound, ascii('x')));
  capture.observe(frame, 0, frame.length, frame.length, testMinute + 1, 0, 0x6000 | 12);
  const [report] = capture.closeMinutes(endMs);
  assert.equal(hostOf(report!, '192.0.2.1').deviceKey, 'br0.12|02:00:00:00:00:01');
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

test('a fragment whose first fragment never comes still counts exactly', () => {
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
