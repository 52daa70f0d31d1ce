/**
 * Floods of fragments, and the same datagrams as plain packets, to compare their costs.
 */
import { createCapture } from '#sensor/capture/index.ts';
import { testDomain, testMinute } from './captures.ts';
import { dnsMessage, ethernet, ip, type SegmentOptions, udp } from './frames.ts';

/** `plain` has as many packets, of as many flows, as the first of the floods. */
export const fragmentKinds = ['plain', 'dns', 'cldap', 'reversed', 'without-first', 'icmp'] as const;
export type FragmentKind = (typeof fragmentKinds)[number];

const fragmentBytes = 1480;
const fragmentsOfDatagram = 3;
const victim = '192.0.2.10';

/** About `count` frames of a kind: datagrams of 4 KB from as many reflectors. */
export function createFragmentFlood(kind: FragmentKind, count: number): Uint8Array[] {
  const frames: Uint8Array[] = [];
  for (let i = 0; frames.length < count; i += 1) {
    const from = `203.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;
    const ends = { from, fromPort: kind === 'cldap' ? 389 : 53, to: victim, toPort: 1024 + (i % 60_000) };
    frames.push(...datagramFrames(kind, i, ends));
  }
  return frames;
}

function datagramFrames(kind: FragmentKind, i: number, ends: SegmentOptions): Uint8Array[] {
  const { from, to } = ends;
  if (kind === 'plain') {
    const frame = ethernet(udp(ends, amplified(i, fragmentBytes - 8)));
    return Array.from({ length: fragmentsOfDatagram }, () => frame);
  }
  const protocol = kind === 'icmp' ? 1 : 17;
  const payload = udp(ends, amplified(i, fragmentBytes * fragmentsOfDatagram - 8)).subarray(20);
  const fragments = Array.from({ length: fragmentsOfDatagram }, (_, part) => {
    const offset = part * fragmentBytes;
    const more = part < fragmentsOfDatagram - 1;
    const packet = ip(payload.subarray(offset, offset + fragmentBytes), {
      from,
      to,
      protocol,
      id: i & 0xffff,
      offset,
      more,
    });
    return ethernet(packet);
  });
  if (kind === 'without-first') return fragments.slice(1);
  return kind === 'reversed' ? fragments.reverse() : fragments;
}

/** An unsolicited DNS answer, padded to `length`. */
function amplified(i: number, length: number): Uint8Array {
  const name = 'large.example';
  const answers = [{ name, ttl: 60, address: '198.51.100.9' }];
  const bytes = new Uint8Array(length).fill(0x61);
  bytes.set(dnsMessage({ id: i & 0xffff, name, answers }));
  return bytes;
}

/** For the counting thread: offers a flood to a capture, once to warm it up and once to be counted. */
export function* offerFlood({ kind, count }: { kind: FragmentKind; count: number }): Iterable<() => void> {
  const frames = createFragmentFlood(kind, count);
  const capture = createCapture({
    name: 'flood0',
    role: 'uplink',
    linkType: 1,
    registrableDomain: testDomain,
    local: { prefixes: ['192.0.2.0/24'], addresses: [] },
    hashKey: [1, 2],
  });
  const offerAll = (second: number) => () => {
    for (const frame of frames) capture.observe(frame, 0, frame.length, frame.length, second, 0, -1);
  };
  yield offerAll(testMinute);
  yield offerAll(testMinute + 1);
}
