import assert from 'node:assert/strict';
import { test } from 'node:test';
import { evidencePacketsMax } from '#contracts/sensor-api/evidence.ts';
import { parseWords } from '#sensor/capture/index.ts';
import { ethernet, udp } from '#sensor/testing/frames.ts';
import { PacketRecorder, readRecords, recordingsMax, type WantedRecording } from './index.ts';

function wanted(id: string, part: Partial<WantedRecording> & { address: string }): WantedRecording {
  const { address, ...rest } = part;
  const { version, words } = parseWords(address);
  return { id, direction: 'inbound', version, words, prefixBits: 128, ...rest };
}

const frame = (source: string, target: string, data = 20) =>
  ethernet(udp({ from: source, to: target, fromPort: 1000, toPort: 2000 }, new Uint8Array(data)));

/** Frames within a larger buffer, as in a ring. */
function show(recorder: PacketRecorder, bytes: Uint8Array, { at = 1000, tci = -1, cut = bytes.length } = {}) {
  const ring = new Uint8Array(bytes.length + 100);
  ring.set(bytes, 50);
  recorder.observe(ring, 50, cut, bytes.length, at, 5, tci);
}
function recordedOf(recorder: PacketRecorder, id: string) {
  recorder.end();
  return readRecords(recorder.take().find((one) => one.id === id)!.records);
}

test('of an address in one direction: what goes to it, or what comes from it', () => {
  for (const [version, own, other, third] of [
    [4, '192.0.2.7', '203.0.113.1', '192.0.2.8'],
    [6, '2001:db8::7', '2a00::1', '2001:db8::8'],
  ] as const) {
    const recorder = new PacketRecorder(1);
    recorder.follow([wanted('in', { address: own }), wanted('out', { address: own, direction: 'outbound' })]);
    for (const [source, target] of [
      [other, own],
      [own, other],
      [third, other],
      [other, third],
    ] as const)
      show(recorder, frame(source, target));
    recorder.end();
    const taken = recorder.take();
    assert.deepEqual(
      taken.map(({ id, packets }) => [version, id, packets]),
      [
        [version, 'in', 1],
        [version, 'out', 1],
      ],
    );
    assert.deepEqual(readRecords(taken[0]!.records)[0]!.bytes, frame(other, own));
  }
});

test('of a prefix: all of its addresses and no others', () => {
  for (const [address, prefixBits, inside, outside, source] of [
    ['192.0.2.0', 96 + 24, ['192.0.2.0', '192.0.2.255'], ['192.0.3.0', '192.0.1.255'], '203.0.113.1'],
    [
      '2001:db8:7::',
      48,
      ['2001:db8:7::1', '2001:db8:7:ffff::1'],
      ['2001:db8:8::', '2001:db8:6::'],
      '2a00::1',
    ],
    ['0.0.0.0', 96, ['255.255.255.255'], [], '203.0.113.1'],
    ['::', 0, ['ff::1'], [], '2a00::1'],
  ] as const) {
    const recorder = new PacketRecorder(1);
    recorder.follow([wanted('p', { address, prefixBits })]);
    for (const target of [...inside, ...outside]) show(recorder, frame(source, target));
    assert.equal(recordedOf(recorder, 'p').length, inside.length, address);
  }
});

test('a packet is cut at 256 bytes with its length on the wire, time and VLAN tag', () => {
  const recorder = new PacketRecorder(1);
  recorder.follow([wanted('a', { address: '192.0.2.7' })]);
  const long = frame('203.0.113.1', '192.0.2.7', 900);
  const short = frame('203.0.113.1', '192.0.2.7', 0);
  show(recorder, long, { at: 77 });
  show(recorder, long, { tci: 0x2064 });
  show(recorder, short, { tci: 0 });
  show(recorder, long, { cut: 60 });
  const [whole, tagged, small, cut] = recordedOf(recorder, 'a');
  assert.deepEqual([whole!.seconds, whole!.nanoseconds], [77, 5]);
  assert.deepEqual([whole!.bytes.length, whole!.wireLength], [256, long.length]);
  assert.deepEqual(whole!.bytes, long.subarray(0, 256));
  const tag = (tci: number, bytes: Uint8Array) =>
    Uint8Array.from([...bytes.subarray(0, 12), 0x81, 0, tci >> 8, tci & 255, ...bytes.subarray(12)]);
  assert.deepEqual(tagged!.bytes, tag(0x2064, long).subarray(0, 256));
  assert.equal(tagged!.wireLength, long.length + 4);
  assert.deepEqual([small!.bytes, small!.wireLength], [tag(0, short), short.length + 4]);
  assert.deepEqual([cut!.bytes.length, cut!.wireLength], [60, long.length]);
});

test('memory is bounded: 2,000 packets of each, eight at once; what is full is given once and takes no more', () => {
  const recorder = new PacketRecorder(1);
  const all = Array.from({ length: recordingsMax + 2 }, (_, i) =>
    wanted(`n${i}`, { address: `192.0.2.${i}` }),
  );
  recorder.follow(all);
  const bytes = frame('203.0.113.1', '192.0.2.0', 1000);
  for (let i = 0; i < evidencePacketsMax + 500; i += 1) show(recorder, bytes);
  const [full, ...others] = recorder.take();
  assert.deepEqual([full!.id, full!.packets, others.length], ['n0', evidencePacketsMax, 0]);
  assert.deepEqual(recorder.take(), []);
  recorder.follow(all);
  show(recorder, bytes);
  show(recorder, frame('203.0.113.1', '192.0.2.9'));
  recorder.follow([]);
  const given = recorder.take();
  assert.deepEqual(given.map(({ id }) => id).sort(), ['n1', 'n2', 'n3', 'n4', 'n5', 'n6', 'n7', 'n8']);
  assert.equal(recorder.isRecording, false);
});

test('frames that are no IP packet, or broken ones, are passed over', () => {
  const recorder = new PacketRecorder(1);
  recorder.follow([wanted('a', { address: '192.0.2.7' })]);
  const bytes = frame('203.0.113.1', '192.0.2.7');
  for (let length = 0; length < 34; length += 1) show(recorder, bytes.subarray(0, length));
  show(recorder, new Uint8Array(64));
  assert.equal(recordedOf(recorder, 'a').length, 0);
});
