/**
 * Compares counters that are told most packets with their flow, once a second, with counters that are told each by itself. Two
 * tags without a VLAN before a frame have no meaning, but force that.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '#common/random/index.ts';
import { createCapture } from '#sensor/capture/index.ts';
import { createThresholdBook, defaultThresholds } from '#sensor/detector/index.ts';
import { clientHello, ethernet, join, reverse, Tcp, tcp } from '#sensor/testing/frames.ts';
import { createMixedCapture } from '#sensor/testing/mixed-capture.ts';
import { LiveCounters } from './index.ts';
import { readRows } from './second-rows.ts';
import { countersOf } from './slot-table.ts';

const limits = createThresholdBook(defaultThresholds).sets.map(({ hostLimits }) => hostLimits);
const firstSecond = 1_700_000_040;
const emptyTags = [0x81, 0, 0, 0, 0x81, 0, 0, 0];
const addresses = Array.from({ length: 150 }, (_, i) => [`192.0.2.${i + 1}`, `2001:db8:1::${i + 1}`]).flat();

interface TimedFrame {
  bytes: Uint8Array;
  wireBytes: number;
  second: number;
  /** Packets that were merged into it; 0 for an unknown number. */
  segments: number;
}

const isTaggable = ({ bytes }: TimedFrame) => bytes.length >= 14;
const tagged = (frame: TimedFrame): TimedFrame => ({
  ...frame,
  bytes: join(frame.bytes.subarray(0, 12), emptyTags, frame.bytes.subarray(12)),
  wireBytes: frame.wireBytes + emptyTags.length,
});

/** Every counter of every address in every second, as text. */
function countersFor(frames: readonly TimedFrame[], flowsMax: number) {
  const scope = { prefixes: [], addresses };
  const counters = new LiveCounters({ number: 1, scope, groups: [], limits });
  const capture = createCapture({
    ...{ name: 'test0', role: 'bridge', linkType: 1, flowsMax, hashKey: [1, 2] },
    local: { prefixes: ['192.0.2.0/24', '2001:db8::/32'], addresses: [] },
    registrableDomain: (host) => host,
  });
  let told = 0;
  const tell = counters.packet.bind(counters);
  counters.packet = (...args: Parameters<typeof tell>) => {
    told += 1;
    tell(...args);
  };
  capture.setTap(counters);
  const lines: string[] = [];
  const take = () => {
    for (const { second, hosts, packets, overflowed, mergedFrames } of counters.takeSeconds()) {
      lines.push(`${second - firstSecond}: ${packets} packets, ${overflowed}, ${mergedFrames}`);
      const rows: string[] = [];
      readRows(hosts, ({ version, w0, w1, w2, w3, bits, at, otherBits, otherAt }) => {
        const values = hosts.subarray(at, otherAt + countersOf(otherBits)).join(' ');
        rows.push(
          `${second - firstSecond}: ${[version, w0, w1, w2, w3, bits, otherBits].join(' ')}: ${values}`,
        );
      });
      lines.push(...rows.sort());
    }
  };
  for (const { bytes, wireBytes, second, segments } of frames) {
    capture.observe(bytes, 0, bytes.length, wireBytes, firstSecond + second, 0, -1, segments);
    take();
  }
  capture.turnTap((firstSecond + frames.at(-1)!.second + 1) * 1000);
  take();
  return { lines, told };
}

/** Mixed traffic of 90 seconds; some frames are merged ones, some have a wrong byte or are cut. */
function mixedFrames(seed: number): TimedFrame[] {
  const mixed = createMixedCapture(400, seed);
  const random = seededRandom(seed);
  return Array.from({ length: mixed.frames }, (_, i) => {
    const at = mixed.offsets[i]!;
    let bytes: Uint8Array = mixed.bytes.slice(at, at + mixed.captured[i]!);
    const kind = random();
    if (kind < 0.06)
      bytes[14 + Math.floor(random() * Math.min(bytes.length - 14, 40))]! ^= 1 << Math.floor(random() * 8);
    else if (kind < 0.08) bytes = bytes.slice(0, Math.floor(random() * bytes.length));
    const segments = kind > 0.98 ? 0 : kind > 0.95 ? 2 + Math.floor(random() * 8) : 1;
    const second = Math.floor((i / mixed.frames) * 90);
    return { bytes, wireBytes: Math.max(mixed.wire[i]!, bytes.length), second, segments };
  }).filter(isTaggable);
}

test('NET-3.2: packets that are told with their flow count for each address, direction and kind like those told one by one', () => {
  for (const [seed, flowsMax] of [
    [1, 64],
    [2, 1024],
    [3, 64],
  ] as const) {
    const frames = mixedFrames(seed);
    const summed = countersFor(frames, flowsMax);
    const single = countersFor(frames.map(tagged), flowsMax);
    assert.deepEqual(summed.lines, single.lines, `seed ${seed}, ${flowsMax} flows`);
    assert.ok(single.told > frames.length * 0.9);
    if (flowsMax > 400)
      assert.ok(summed.told < single.told / 2, `${summed.told} of ${single.told} are told by themselves`);
  }
});

test('NET-3.2: of a connection within a second only what opens it is told by itself', () => {
  const ends = { from: '198.51.100.9', fromPort: 4000, to: '192.0.2.7', toPort: 443 };
  const back = reverse(ends);
  const data = new Uint8Array(100).fill(0x99);
  const packets = [
    tcp(ends, Tcp.syn, 1),
    tcp(back, Tcp.syn | Tcp.ack, 1),
    tcp(ends, Tcp.ack, 2),
    tcp(ends, Tcp.push | Tcp.ack, 2, clientHello({ host: 'www.example.com' })),
    ...Array.from({ length: 10 }, (_, i) => tcp(back, Tcp.ack, 2 + i * 100, data)),
    tcp(ends, Tcp.fin | Tcp.ack, 600),
    tcp(back, Tcp.fin | Tcp.ack, 1002),
  ];
  const frames = packets.map((packet) => {
    const bytes = ethernet(packet);
    return { bytes, wireBytes: bytes.length, second: 0, segments: 1 };
  });
  const summed = countersFor(frames, 64);
  assert.deepEqual(summed.lines, countersFor(frames.map(tagged), 64).lines);
  assert.equal(summed.told, 2);
});
