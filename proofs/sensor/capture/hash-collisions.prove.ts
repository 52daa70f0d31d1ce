/**
 * Proof: `n` flows made to fall into one part of the flow table by an attacker who knows the code and assumes that the
 * hash has no key.
 *
 * With a key that the attacker does not know, the most expensive 1 % of packets cost at most three times as much as with random
 * flows. The control is a capture with the key that the attacker assumed: it must cost many times more, or the attack
 * proves nothing. Cost is counted in executed blocks of code, including each probe of the table.
 */

import { seededRandom } from '#common/random/index.ts';
import type { Capture } from '#sensor/capture/capture.ts';
import { Packet } from '#sensor/capture/decode/packet.ts';
import { hashPacket } from '#sensor/capture/flows/flow-hash.ts';
import { createCapture } from '#sensor/capture/index.ts';
import { testDomain, testMinute } from '#sensor/testing/captures.ts';
import { countBlocks } from '#sensor/testing/count-blocks.ts';
import { ethernet, udp } from '#sensor/testing/frames.ts';

export const name = 'hash-collisions';

const assumedKey = [0, 0] as const;
const flowsMax = 32_768;
const places = 65_536;
/** Number of slots for the attacker's flows; linear probing makes them one long run. */
const aimedPlaces = 512;
const batch = 50;
const slowdownMax = 3;
/** Minimum cost factor of the control. */
const controlMin = 20;

export interface ProveOptions {
  n: number;
  seed: number;
  report: (line: string) => void;
}

/** Measures random flows, the attack, and the control. */
export async function prove({ n, seed, report }: ProveOptions) {
  const random = seededRandom(seed);
  const attack = Array.from({ length: n }, () => collidingFlow(random));
  const ordinary = Array.from({ length: n }, () => randomFlow(random));
  const hashKey = [random(), random()].map((part) => (part * 2 ** 32) | 0) as [number, number];
  const normal = await p99({ flows: ordinary, hashKey });
  const keyed = await p99({ flows: attack, hashKey });
  const control = await p99({ flows: attack, hashKey: assumedKey });
  report(
    `dearest hundredth of packets: random flows ${normal.toFixed(0)} blocks, colliding ones ${keyed.toFixed(0)}, colliding ones without a key ${control.toFixed(0)}`,
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

/** Draws random flows until one falls into the target slots, as an attacker with the code can. */
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

interface FlowWork {
  flows: readonly Flow[];
  hashKey: readonly [number, number];
}

/** Executed blocks per packet: the 99th percentile of the batches. */
async function p99(work: FlowWork): Promise<number> {
  const costs = (await countBlocks(import.meta.url, 'observeFlows', work)).map((blocks) => blocks / batch);
  // The cost is stable once the table is full.
  const settled = costs.slice(Math.floor(costs.length / 2)).sort((a, b) => a - b);
  return settled[Math.floor(settled.length * 0.99)]!;
}

/** One packet of each flow, in batches; runs in the counting thread. */
export function* observeFlows({ flows, hashKey }: FlowWork): Iterable<() => void> {
  const capture = newCapture(hashKey);
  const frame = ethernet(udp({ from: '1.2.3.4', fromPort: 1, to: '1.2.3.5', toPort: 1 }, new Uint8Array(8)));
  const view = new DataView(frame.buffer);
  for (let from = 0; from + batch <= flows.length; from += batch) {
    yield () => {
      for (let i = from; i < from + batch; i += 1) {
        const flow = flows[i]!;
        view.setInt32(26, flow.source);
        view.setInt32(30, flow.target);
        view.setInt32(34, flow.ports);
        capture.observe(frame, 0, frame.length, frame.length, testMinute, 0, -1);
      }
    };
  }
}

function newCapture(hashKey: readonly [number, number]): Capture {
  return createCapture({
    name: 'collisions',
    role: 'uplink',
    linkType: 1,
    registrableDomain: testDomain,
    local: { prefixes: [], addresses: [] },
    flowsMax,
    hashKey,
  });
}
