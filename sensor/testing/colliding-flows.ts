/** Flows that an attacker who knows the code aims at one part of the flow table, and what observing them costs. */
import { seededRandom } from '#common/random/index.ts';
import { Packet } from '#sensor/capture/decode/packet.ts';
import { hashPacket } from '#sensor/capture/flows/flow-hash.ts';
import { testCapture, testMinute } from './captures.ts';
import { ethernet, udp } from './frames.ts';

/** The key of a hash that has none. */
export const assumedKey = [0, 0] as const;
const flowsMax = 32_768;
const places = 65_536;
/** Number of slots for the attacker's flows; linear probing makes them one long run. */
const aimedPlaces = 512;
/** Packets between two counts. */
export const batch = 50;

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

export interface FlowWork {
  count: number;
  seed: number;
  isAttack: boolean;
  hashKey: readonly [number, number];
}

/** One packet of each flow, in batches. */
export function* observeFlows({ count, seed, isAttack, hashKey }: FlowWork): Iterable<() => void> {
  const random = seededRandom(seed);
  const flows = Array.from({ length: count }, () => (isAttack ? collidingFlow : randomFlow)(random));
  const capture = testCapture({ flowsMax, hashKey, local: { prefixes: [], addresses: [] } });
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
