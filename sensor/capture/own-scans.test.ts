import assert from 'node:assert/strict';
import { test } from 'node:test';
import { offer, testCapture, testMinute } from '#sensor/testing/captures.ts';
import { ethernet, ip, reverse, type SegmentOptions, Tcp, tcp, udp } from '#sensor/testing/frames.ts';
import type { PacketTap } from './capture.ts';
import type { MinuteReport } from './reports/minute-report.ts';

const endMs = (testMinute + 60) * 1000;
const scans = [{ sourceAddress: '198.51.100.1', address: '192.0.2.1' }];

/** Probes of TCP and UDP ports and their answers. */
function probes(from: string, to: string): Uint8Array[] {
  return Array.from({ length: 200 }, (_, i) => {
    const ends: SegmentOptions = { from, to, fromPort: 40_000, toPort: i + 1 };
    const refused = tcp(reverse(ends), Tcp.reset | Tcp.ack, 0);
    return [tcp(ends, Tcp.syn, 1), refused, udp(ends, new Uint8Array(8))].map((packet) => ethernet(packet));
  }).flat();
}

function count(frames: readonly Uint8Array[], isMarked: boolean) {
  const capture = testCapture();
  const told: number[] = [];
  const tap: PacketTap = {
    packet: (_, packets) => void told.push(packets),
    wantsFlow: () => true,
    flow: (_words, _base, _side, packets) => void told.push(packets),
    turn: () => {},
  };
  capture.setTap(tap);
  if (isMarked) capture.setOwnScans(scans);
  for (const frame of frames) offer(capture, frame);
  const [minute] = capture.closeMinutes(endMs);
  return { minute: minute!, told: told.reduce((sum, one) => sum + one, 0) };
}

const hostOf = ({ hosts }: MinuteReport, address: string) => {
  const [host, ...others] = hosts.filter((one) => one.address === address);
  assert.ok(host && others.length === 0, address);
  return host;
};

test('own scans count in totals and on addresses as any traffic does, and are no application and nothing to the detector', () => {
  const frames = probes('198.51.100.1', '192.0.2.1');
  const [marked, plain] = [count(frames, true), count(frames, false)];
  assert.deepEqual(marked.minute.usage, []);
  assert.ok(plain.minute.usage.length > 10);
  assert.deepEqual([marked.told, plain.told], [0, 600]);
  const { ipBytes, ipPackets, packets, detailTruncated } = marked.minute.totals;
  assert.deepEqual([ipBytes, ipPackets, packets], [plain.minute.totals.ipBytes, 600, 600]);
  assert.equal(detailTruncated, 0);
  const [own, any] = [marked, plain].map((one) => hostOf(one.minute, '192.0.2.1'));
  assert.deepEqual({ ...own, ownScan: undefined }, { ...any, ownScan: undefined });
});

test('an address says what own scans caused of its counters, to the byte and packet, beside the same packets of others', () => {
  const capture = testCapture();
  capture.setOwnScans(scans);
  const probed = probes('198.51.100.1', '192.0.2.1');
  const ping = (from: string, to: string) =>
    ethernet(ip(Uint8Array.of(8, 0, 0, 0, 0, 1, 0, 1), { from, to, protocol: 1 }));
  const scanned = [...probed, ping('198.51.100.1', '192.0.2.1'), ping('192.0.2.1', '198.51.100.1')];
  const others = [
    ...probes('198.51.100.2', '192.0.2.1'),
    ...probes('198.51.100.1', '192.0.2.2'),
    ping('198.51.100.2', '192.0.2.1'),
  ];
  for (let i = 0; i < Math.max(scanned.length, others.length); i += 1)
    for (const frame of [scanned[i], others[i]]) if (frame) offer(capture, frame);
  const [minute] = capture.closeMinutes(endMs);
  const ipLength = (frame: Uint8Array) => (frame[16]! << 8) | frame[17]!;
  const isTo = (frame: Uint8Array, address: string) => frame.subarray(30, 34).join('.') === address;
  const bytes = (frames: Uint8Array[]) => frames.reduce((sum, frame) => sum + ipLength(frame), 0);
  const [to, from] = [
    scanned.filter((frame) => isTo(frame, '192.0.2.1')),
    scanned.filter((frame) => isTo(frame, '198.51.100.1')),
  ];
  const { rxBytes, packets, ownScan } = hostOf(minute!, '192.0.2.1');
  assert.deepEqual(ownScan, { rxBytes: bytes(to), txBytes: bytes(from), packets: 602 });
  assert.deepEqual(
    [rxBytes - ownScan!.rxBytes, packets - ownScan!.packets],
    [bytes(others.filter((frame) => isTo(frame, '192.0.2.1'))), 601],
  );
  assert.equal(hostOf(minute!, '192.0.2.2').ownScan, undefined, 'its neighbour');
});

test('a ping of the scanner to its target is own while it scans, and no longer afterwards, before the next minute too', () => {
  const capture = testCapture();
  const ping = ethernet(
    ip(Uint8Array.of(8, 0, 0, 0, 0, 1, 0, 1), { from: '198.51.100.1', to: '192.0.2.1', protocol: 1 }),
  );
  const offered = (count: number) => {
    for (let i = 0; i < count; i += 1) offer(capture, ping);
  };
  offered(3);
  capture.setOwnScans(scans);
  offered(5);
  capture.setOwnScans([]);
  offered(2);
  const { packets, ownScan } = hostOf(capture.closeMinutes(endMs)[0]!, '192.0.2.1');
  assert.deepEqual([packets, ownScan?.packets], [10, 5]);
});

test('traffic of other pairs is not own: another host, another target, and after the scan', () => {
  for (const [from, to] of [
    ['198.51.100.2', '192.0.2.1'],
    ['198.51.100.1', '192.0.2.2'],
    ['2001:db8:1::1', '2001:db8::1'],
  ]) {
    const frames = probes(from!, to!);
    assert.deepEqual(count(frames, true), count(frames, false), `${from} ${to}`);
  }
  const capture = testCapture();
  capture.setOwnScans(scans);
  capture.setOwnScans([]);
  for (const frame of probes('198.51.100.1', '192.0.2.1')) offer(capture, frame);
  assert.ok(capture.closeMinutes(endMs)[0]!.usage.length > 10);
});

test('live windows list own scans as no application, and their address has all of its packets', () => {
  const capture = testCapture({ windowMs: 10_000, windowApplicationsMax: 10 });
  capture.setOwnScans(scans);
  for (const frame of probes('198.51.100.1', '192.0.2.1')) offer(capture, frame);
  const [window] = capture.closeWindows((testMinute + 10) * 1000);
  assert.deepEqual(window!.applications, []);
  assert.equal(window!.hosts.find((host) => host.address === '192.0.2.1')!.packets, 600);
});
