/**
 * Proof by collisions: `n` flows made to fall into one part of the flow table by somebody who knows the code and thinks
 * that the hash has no key.
 *
 * With the key that a capture draws for itself, the slowest hundredth of packets costs at most three times what it
 * costs with random flows. The control is a capture with the key that the attacker assumed: it must be more than
 * twenty times as slow, or the attack shows nothing.
 */
import { type Capture, createCapture } from '#sensor/capture/index.ts';
import { testDomain, testMinute } from '#sensor/testing/captures.ts';
import { ethernet, udp } from '#sensor/testing/frames.ts';
import { createRandom } from '#sensor/testing/mixed-capture.ts';
import { hashPacket } from './flow-hash.ts';
import { Packet } from './packet.ts';

export const name = 'hash-collisions';

const assumedKey = [0, 0] as const;
const flowsMax = 32_768;
const places = 65_536;
/** The attacker's flows fall into this many places, which linear probing makes one long run. */
const aimedPlaces = 512;
const batch = 50;
const slowdownMax = 3;
const rounds = 3;

export interface ProveOptions {
  n: number;
  seed: number;
  report: (line: string) => void;
  /** How many times as slow the control has to be; fewer flows make shorter runs. */
  controlMin?: number;
}

/** Measures random flows, the attack, and the control. */
export async function prove({ n, seed, report, controlMin = 20 }: ProveOptions) {
  const random = createRandom(seed);
  const attack = Array.from({ length: n }, () => collidingFlow(random));
  const ordinary = Array.from({ length: n }, () => randomFlow(random));
  // The best of some rounds: whatever else runs on the machine only ever adds.
  const best = (measureOnce: () => number) => Math.min(...Array.from({ length: rounds }, measureOnce));
  const normal = best(() => p99(newCapture(), ordinary));
  const keyed = best(() => p99(newCapture(), attack));
  // Once is enough: it takes a hundred times as long.
  const control = p99(newCapture(assumedKey), attack);
  report(
    `slowest hundredth of packets: random flows ${normal.toFixed(0)} ns, colliding ones ${keyed.toFixed(0)} ns, colliding ones without a key ${control.toFixed(0)} ns`,
  );
  const isHeld = keyed <= normal * slowdownMax;
  return {
    claim: `colliding flows cost ${(keyed / normal).toFixed(1)} times random ones (without a key ${(control / normal).toFixed(0)} times)`,
    tried: n,
    failures: isHeld ? 0 : 1,
    plantedBugsCaught: `${control > normal * controlMin ? 1 : 0} of 1`,
  };
}

interface Flow {
  source: number;
  target: number;
  ports: number;
}

function randomFlow(random: () => number): Flow {
  return {
    source: (random() * 2 ** 32) | 0,
    target: (192 << 24) | (2 << 8) | (random() * 256),
    ports: (random() * 2 ** 32) | 0,
  };
}

/** Draws until the flow falls where it is wanted, as anybody with the code can. */
function collidingFlow(random: () => number): Flow {
  const packet = new Packet();
  packet.version = 4;
  packet.protocol = 17;
  for (;;) {
    const flow = randomFlow(random);
    packet.source3 = flow.source;
    packet.target3 = flow.target;
    const isLower = flow.source < flow.target;
    const ports = isLower ? flow.ports : (flow.ports << 16) | (flow.ports >>> 16);
    const hash = hashPacket(packet, isLower, ports, 17 | (4 << 8), assumedKey[0], assumedKey[1]);
    if ((hash & (places - 1)) < aimedPlaces) return flow;
  }
}

/** Nanoseconds a packet that one in a hundred batches exceeds. */
function p99(capture: Capture, flows: readonly Flow[]): number {
  const frame = ethernet(udp({ from: '1.2.3.4', fromPort: 1, to: '1.2.3.5', toPort: 1 }, new Uint8Array(8)));
  const view = new DataView(frame.buffer);
  const costs: number[] = [];
  for (let from = 0; from + batch <= flows.length; from += batch) {
    const started = process.threadCpuUsage();
    for (let i = from; i < from + batch; i += 1) {
      const flow = flows[i]!;
      view.setInt32(26, flow.source);
      view.setInt32(30, flow.target);
      view.setInt32(34, flow.ports);
      capture.observe(frame, 0, frame.length, frame.length, testMinute, 0, -1);
    }
    // Processor time, not the clock's: a busy machine takes turns away.
    const used = process.threadCpuUsage(started);
    costs.push(((used.user + used.system) * 1000) / batch);
  }
  // The table has to be full before the cost is what it stays at.
  const settled = costs.slice(Math.floor(costs.length / 2)).sort((a, b) => a - b);
  return settled[Math.floor(settled.length * 0.99)]!;
}

function newCapture(hashKey?: readonly [number, number]): Capture {
  return createCapture({
    name: 'collisions',
    role: 'uplink',
    linkType: 1,
    registrableDomain: testDomain,
    local: { prefixes: [], addresses: [] },
    flowsMax,
    ...(hashKey ? { hashKey } : {}),
  });
}
