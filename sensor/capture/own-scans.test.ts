import assert from 'node:assert/strict';
import { test } from 'node:test';
import { offer, testCapture, testMinute } from '#sensor/testing/captures.ts';
import { ethernet, reverse, type SegmentOptions, Tcp, tcp, udp } from '#sensor/testing/frames.ts';
import type { PacketTap } from './packet-tap.ts';

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

test('own scans count in totals and on addresses as any traffic does, and are no application and nothing to the detector', () => {
  const frames = probes('198.51.100.1', '192.0.2.1');
  const [marked, plain] = [count(frames, true), count(frames, false)];
  assert.deepEqual(marked.minute.usage, []);
  assert.ok(plain.minute.usage.length > 10);
  assert.deepEqual([marked.told, plain.told], [0, 600]);
  const { ipBytes, ipPackets, packets, detailTruncated } = marked.minute.totals;
  assert.deepEqual([ipBytes, ipPackets, packets], [plain.minute.totals.ipBytes, 600, 600]);
  assert.equal(detailTruncated, 0);
  const local = (minute: typeof marked.minute) => minute.hosts.filter((host) => host.address === '192.0.2.1');
  assert.deepEqual(local(marked.minute), local(plain.minute));
  assert.equal(local(marked.minute).length, 1);
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
