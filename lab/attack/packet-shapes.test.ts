import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { formatAddress, parseAddress, prefixContains } from '#common/ip/index.ts';
import { readFrames, type SeenPacket } from '../testing/seen-packets.ts';
import { attackSources } from '../world/networks.ts';
import { createShape, packetClasses } from './packet-shapes.ts';
import { fold, sumWords } from './packet-writer.ts';
import { createSources } from './sources.ts';

const targets = ['203.0.113.17', '2001:db8:113::17'];
const macBytes = 14;

/** The same numbers in each run, and every bit in use. */
function createRandom(): () => number {
  let state = 7;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state ^ (state >>> 15)) >>> 0;
  };
}

function makeFrames(packetClass: (typeof packetClasses)[number], target: string, count: number): Buffer[] {
  const random = createRandom();
  const family = target.includes(':') ? 'ipv6' : 'ipv4';
  const sources = createSources(attackSources.spoofed[family], null, random);
  const shape = createShape(packetClass, { target, sources, random });
  return Array.from({ length: count }, () => {
    const bytes = Buffer.alloc(2048, 0xee);
    const length = shape.write(bytes, 10);
    assert.ok(length <= shape.frameBytesMax && length <= macBytes + 1500, `${length} bytes fit a frame`);
    return bytes.subarray(10, 10 + length);
  });
}

/** The sum over pseudo header and datagram: 0xffff when the checksum is right. */
function checkSum(frame: Buffer, packet: SeenPacket): number {
  const at = packet.transportAt;
  const datagram = sumWords(frame, at, frame.length);
  if (packet.protocol === 1) return fold(datagram);
  const addresses = packet.version === 4 ? [26, 34] : [22, 54];
  return fold(datagram + sumWords(frame, addresses[0]!, addresses[1]!) + packet.protocol + frame.length - at);
}

describe('lab attack: packets', () => {
  for (const packetClass of packetClasses) {
    for (const target of targets) {
      test(`of ${packetClass} to ${target} have right lengths, checksums and varied sources in range`, () => {
        const frames = makeFrames(packetClass, target, 300);
        const packets = readFrames(frames);
        const allowed = attackSources.spoofed[target.includes(':') ? 'ipv6' : 'ipv4'];
        for (const [i, packet] of packets.entries()) {
          assert.equal(packet.target, target);
          assert.ok(prefixContains(allowed, parseAddress(packet.source)!), packet.source);
          assert.equal(packet.ipLength, frames[i]!.length - macBytes);
          if (packet.version === 4) assert.equal(fold(sumWords(frames[i]!, 14, 34)), 0xffff);
          const hasOwnSum = packetClass !== 'protocol_flood' && packetClass !== 'fragment_flood';
          if (hasOwnSum) assert.equal(checkSum(frames[i]!, packet), 0xffff);
        }
        const perSource = packetClass === 'fragment_flood' ? 3 : 1;
        const sources = new Set(packets.map((packet) => packet.source));
        assert.ok(sources.size > 290 / perSource, `${sources.size} sources`);
      });
    }
  }

  test('of fragment_flood make whole datagrams with a right checksum', () => {
    for (const target of targets) {
      const frames = makeFrames('fragment_flood', target, 3);
      const packets = readFrames(frames);
      assert.deepEqual(
        packets.map((packet) => [packet.fragmentOffset, packet.hasMoreFragments, packet.source]),
        [0, 512, 1024].map((offset) => [offset, offset < 1024, packets[0]!.source]),
      );
      assert.equal(new Set(packets.map((packet) => packet.fragmentId)).size, 1);
      const data = Buffer.concat(frames.map((frame, i) => frame.subarray(packets[i]!.transportAt)));
      const addresses = sumWords(frames[0]!, target.includes(':') ? 22 : 26, target.includes(':') ? 54 : 34);
      assert.equal(fold(sumWords(data, 0, data.length) + addresses + 17 + data.length), 0xffff);
    }
  });

  test('come from one source where one was chosen, and from few where few are asked for', () => {
    const random = createRandom();
    const text = (words: Uint16Array) =>
      formatAddress(Uint8Array.from([...words].flatMap((word) => [word >>> 8, word & 255])));
    const one = createSources(attackSources.spoofed.ipv4, '198.18.7.8', random);
    assert.deepEqual([text(one.next()), text(one.next())], ['198.18.7.8', '198.18.7.8']);
    const few = createSources(attackSources.spoofed.ipv6, null, random, 8);
    assert.ok(new Set(Array.from({ length: 200 }, () => text(few.next()))).size <= 8);
  });
});
