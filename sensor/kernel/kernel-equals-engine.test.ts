/** The counting program and the engine give the same numbers for the same frames. Needs root. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { seededRandom } from '#common/random/index.ts';
import { Kind, Read } from '#sensor/attack-counters/index.ts';
import { formatWords } from '#sensor/capture/index.ts';
import { openCaptureFile } from '#sensor/capture-files/index.ts';
import { capturePath, expectedFiles, hasCorpus } from '#sensor/testing/corpus.ts';
import { ethernet, join, u16, u32, udp } from '#sensor/testing/frames.ts';
import {
  canRun,
  frameBatches,
  KernelComparison,
  KernelRuns,
  type OfferedFrame,
} from '#sensor/testing/kernel-runs.ts';
import { KindReader } from './kind-reader.ts';

const isRoot = process.getuid?.() === 0 ? false : 'needs root';
const packet = udp({ from: '192.0.2.1', fromPort: 1000, to: '203.0.113.9', toPort: 9 }, new Uint8Array(20));

function compare(linkType: 1 | 101, batches: Iterable<OfferedFrame[]>): void {
  const comparison = new KernelComparison(linkType);
  try {
    for (const frames of batches) assert.equal(comparison.findDifference(frames), null);
  } finally {
    comparison.close();
  }
}

test('NET-2.2.6: the kernel counts every frame as the engine does: verdict, bytes, packets, addresses, spoofed senders, kinds of packets', {
  skip: isRoot,
}, () => {
  for (const linkType of [1, 101] as const)
    compare(linkType, frameBatches({ linkType, count: 4000, random: seededRandom(11) }));
});

test('frames whose link headers reach the limit of 1,024 bytes count alike in the kernel and in the engine', {
  skip: isRoot,
}, () => {
  const inner = ethernet(packet);
  const rest = inner.subarray(12);
  const around = (bytes: number) => Array.from({ length: 6 }, (_, i) => Math.floor(1024 / bytes) - 4 + i);
  const counts = new Set([0, 1, 2, 3, 30, ...[4, 5, 6, 18].flatMap(around)]);
  const frames = [...counts].map((i) => {
    const tags = ethernet(packet, { tags: Array.from({ length: i }, (_tag, id) => id + 1) });
    const labels = Array.from({ length: i }, (_label, at) => u32(at === i - 1 ? 0x0001_1140 : 0x0001_0040));
    const mpls = ethernet(join(...labels, packet), { type: 0x8847 });
    const wire = ethernet(join(...labels, u32(0), inner), { type: 0x8847 });
    const multilink = Array.from({ length: i }, () => [0x3d, 0xc0, 0, 0, 1]);
    const ppp = ethernet(join([0x11, 0], u16(1), u16(9), ...multilink, [0x21], packet), { type: 0x8864 });
    const service = Array.from({ length: i }, () => join(u16(0x88e7), u32(7), inner.subarray(0, 12)));
    const backbone = join(inner.subarray(0, 12), ...service, rest);
    const short = Array.from({ length: i }, () => join(u16(0x8926), u32(1)));
    return [tags, mpls, wire, ppp, backbone, join(inner.subarray(0, 12), ...short, rest)];
  });
  const runnable = frames.flat().filter(({ length }) => length < 2_000);
  compare(1, [runnable.map((bytes) => ({ bytes }))]);
});

test('every UDP port, ICMP type, set of TCP flags and protocol is of the same kind in the kernel and in the engine', {
  skip: isRoot,
}, () => {
  const ipv4 = ethernet(packet);
  const ipv6 = ethernet(
    udp({ from: '2001:db8::1', fromPort: 1000, to: '2001:db8::9', toPort: 9 }, new Uint8Array(20)),
  );
  const frames: OfferedFrame[] = [];
  // Each has a number of segments of its own, so that two that are taken for one another do not cancel out.
  const add = (whole: Uint8Array, changes: readonly (readonly [number, number])[]) => {
    const bytes = whole.slice();
    for (const [at, byte] of changes) bytes[at] = byte;
    frames.push({ bytes, segments: 1 + ((frames.length * 7919) % 65_521) });
  };
  for (let port = 0; port < 65_536; port += 1)
    add(ipv4, [
      [34, port >> 8],
      [35, port & 255],
    ]);
  for (let byte = 0; byte < 256; byte += 1) {
    for (const protocol of [1, 58]) {
      add(ipv4, [
        [23, protocol],
        [34, byte],
      ]);
      add(ipv6, [
        [20, protocol],
        [54, byte],
      ]);
    }
    add(ipv4, [
      [23, 6],
      [47, byte],
    ]);
    add(ipv6, [
      [20, 6],
      [67, byte],
    ]);
    add(ipv4, [[23, byte]]);
    add(ipv6, [[20, byte]]);
    // Packets that end before their headers do.
    for (const protocol of [6, 17]) {
      add(ipv4, [
        [16, 0],
        [17, byte],
        [23, protocol],
      ]);
      add(ipv6, [
        [18, 0],
        [19, byte],
        [20, protocol],
      ]);
    }
    // Fragments of one that may be an amplified answer.
    add(ipv4, [
      [20, byte],
      [34, 0],
      [35, 53],
    ]);
    add(ipv6, [
      [20, 44],
      [54, 17],
      [57, byte],
    ]);
    add(ipv4, [[30, byte]]);
    add(ipv6, [[38, byte]]);
  }
  compare(1, [frames]);
});

test('the detector reads an address that was removed and comes again, even with the same number of bytes', {
  skip: isRoot,
}, () => {
  const runs = new KernelRuns(true);
  const read = () => {
    const { count, numbers } = reader.read();
    return [count, numbers[Read.bytes]];
  };
  const local = { prefixes: ['203.0.113.0/24'], addresses: [] };
  const reader = new KindReader(runs.counter);
  const frame = { bytes: ethernet(packet) };
  const bytes = packet.length;
  runs.counter.setLocal(local, false, { prefixes: [] });
  read();
  runs.run(frame);
  assert.deepEqual(read(), [1, bytes]);
  runs.counter.setLocal({ prefixes: [], addresses: [] }, false, { prefixes: [] });
  runs.counter.setLocal(local, false, { prefixes: [] });
  runs.run(frame);
  assert.deepEqual(read(), [1, bytes]);
  runs.close();
});

test('an address that gets the slot of a removed one begins at zero, and packets of the removed one are not its own', {
  skip: isRoot,
}, async () => {
  const runs = new KernelRuns(true);
  const reader = new KindReader(runs.counter);
  const only = (...addresses: string[]) =>
    runs.counter.setLocal({ prefixes: [], addresses }, false, { prefixes: [] });
  const countTo = (to: string) => {
    const ends = { from: '192.0.2.1', fromPort: 1000, to, toPort: 9 };
    runs.run({ bytes: ethernet(udp(ends, new Uint8Array(20))) });
    const { count, slots, numbers } = reader.read();
    const rows =
      count === 0 ? [] : [formatWords(...reader.addressOf(slots[0]!)), numbers[Kind.datagram], slots[0]];
    return [count, ...rows];
  };
  only('203.0.113.9');
  reader.read();
  const [, , , slot] = countTo('203.0.113.9');
  only();
  let vacated: readonly number[] = [];
  while (vacated.length === 0) {
    await setImmediate();
    runs.counter.slots.vacate();
    ({ vacated } = reader.read());
  }
  assert.deepEqual(vacated, [slot]);
  only('203.0.200.7');
  assert.deepEqual(countTo('203.0.200.7'), [1, '203.0.200.7', 1, slot]);
  assert.deepEqual(countTo('203.0.113.9'), [0]);
  runs.close();
});

test('every frame of the corpus counts alike in the kernel and in the engine', {
  skip: isRoot || (hasCorpus() ? false : 'no corpus'),
}, () => {
  for (const linkType of [1, 101] as const) compare(linkType, corpusFrames(linkType));
});

function* corpusFrames(linkType: number): Generator<OfferedFrame[]> {
  for (const { file: name } of expectedFiles()) {
    const file = openCaptureFile(capturePath(name));
    const frames: OfferedFrame[] = [];
    while (file.next()) {
      const bytes = file.bytes.slice(file.offset, file.offset + file.capturedLength);
      if (file.linkType === linkType && canRun(bytes)) frames.push({ bytes });
    }
    file.close();
    if (frames.length > 0) yield frames;
  }
}
