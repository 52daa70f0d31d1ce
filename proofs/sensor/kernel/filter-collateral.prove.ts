/**
 * Proof that the filter cuts off no one who conversed before: `n` floods of every class, one after another, each beside all kinds of ordinary traffic, whose pairs
 * were established before. A flood passes first and is answered, as until its incident is known; then rules of its vector drop it. No
 * interface is needed.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAddress } from '#common/ip/index.ts';
import { seededRandom } from '#common/random/index.ts';
import { defaultThresholds } from '#sensor/detector/index.ts';
import { createFlood, type FloodClass, floodClasses, victim } from '#sensor/testing/attack-traffic.ts';
import { FilterRuns, rulesAgainst } from '#sensor/testing/filter-runs.ts';
import { createOrdinary, ordinaryKinds } from '#sensor/testing/ordinary-traffic.ts';
import { compileKernel, kernelSources, sourceText } from '#tools/compile-kernel.ts';

export const name = 'filter-collateral';

const program = kernelSources[1]!;
const planted: readonly (readonly [string, string])[] = [
  ['since && *since < began', 'since && *since > began'],
  ['conversed = SENT_PAYLOAD | RECEIVED_PAYLOAD', 'conversed = 8'],
  ['opening->legs >= LEGS_MIN', 'opening->legs >= 1000'],
];
const hourMs = 3_600_000;
/** Packets of the server until a pair is established, and steps of the kind that it answers most seldom. */
const answersMin = 8;
const learningSteps = 220;
const stepsBeside = 2;
const packetsBefore = 30;
const packetsOfFlood = 60;
/** Nothing is answered in a scan, and nothing comes in of a multicast. */
const kinds = Object.keys(ordinaryKinds).filter(
  (kind) => kind !== 'port scan' && !kind.includes('multicast'),
);
/** So much that each kind has one peer. */
const few = {
  ...{ pps: 20, bps: 20_000, udp_pps: 20, udp_bps: 20_000 },
  ...{ fragment_pps: 20, icmp_pps: 3, syn_pps: 20 },
};
const thresholds = {
  inbound: { ...defaultThresholds.inbound, ...few },
  outbound: { ...defaultThresholds.outbound, ...few },
};

interface Options {
  n: number;
  seed: number;
  report(line: string): void;
}

export async function prove({ n, seed, report }: Options) {
  const { cut, failures } = runFloods(n, seed);
  for (const line of failures) report(line);
  let caught = 0;
  const folder = mkdtempSync(join(tmpdir(), 'svc-kernel-'));
  try {
    for (const [from, to] of planted) {
      const text = sourceText(program);
      if (!text.includes(from)) throw new Error(`the program has no ${from}`);
      const object = join(folder, 'planted.o');
      compileKernel(program, object, text.replace(from, to));
      const isNoticed = runFloods(floodClasses.length, seed, object).cut > 0;
      report(`planted ${JSON.stringify([from, to])}: ${isNoticed ? 'noticed' : 'NOT NOTICED'}`);
      if (isNoticed) caught += 1;
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  return {
    claim: `no packet of an established pair is dropped beside a flood, of ${kinds.length} kinds of ordinary traffic; each flood is dropped`,
    tried: n,
    failures: cut + failures.length,
    plantedBugsCaught: `${caught} of ${planted.length}`,
  };
}

/** The packets of established pairs that were dropped, with what else went wrong. */
export function runFloods(n: number, seed: number, object?: string): { cut: number; failures: string[] } {
  const runs = new FilterRuns(object);
  const random = seededRandom(seed);
  const failures: string[] = [];
  let cut = 0;
  try {
    const plays = ([4, 6] as const).map((version) => learn(runs, version, seed));
    for (let i = 0; i < n; i += 1) {
      const version = i % 2 === 0 ? 4 : 6;
      const attack = floodClasses[(i >> 1) % floodClasses.length]!;
      const beside = plays[i % 2]!;
      const flood = createFlood(
        { class: attack, version, direction: 'inbound', ratio: 1 },
        Math.floor(random() * 2 ** 31),
      );
      runs.loaded.filter.setRules([]);
      for (let packet = 0; packet < packetsBefore; packet += 1) {
        const [opening] = flood();
        runs.receive(opening!);
        // A server answers what it can.
        runs.send(backTo(opening!, version));
      }
      // The rules begin an hour from now, so that pairs of a moment ago are older.
      runs.loaded.filter.setRules(
        rulesAgainst(victim(version), vectorOf(attack), { beganAtMs: Date.now() + hourMs }),
      );
      let passed = 0;
      for (let packet = 0; packet < packetsOfFlood; packet += 1) {
        if (runs.receive(flood()[0]!)) passed += 1;
        if (packet % Math.ceil(packetsOfFlood / stepsBeside) === 0) cut += beside();
      }
      if (passed > 0) failures.push(`flood ${i}, ${attack} of IPv${version}: ${passed} packets passed`);
    }
  } finally {
    runs.close();
  }
  return { cut, failures };
}

const vectorOf = (attack: FloodClass) => ({
  class: attack,
  ports: [],
  protocols: attack === 'protocol_flood' ? [132] : [],
});

/** Establishes a pair of each kind. The function that it returns plays a step of each and returns how many packets were dropped. */
function learn(runs: FilterRuns, version: 4 | 6, seed: number): () => number {
  const steps = kinds.map((kind) => createOrdinary(kind, { version, thresholds, seed }).step);
  /** Plays a step: how many packets were dropped, and how many the server sent. */
  const playOne = (step: () => Uint8Array[]) => {
    let [dropped, sent] = [0, 0];
    for (const frame of step()) {
      if (isTo(frame, version)) dropped += runs.receive(frame) ? 0 : 1;
      else {
        runs.send(frame);
        sent += 1;
      }
    }
    return { dropped, sent };
  };
  runs.loaded.filter.setRules([]);
  for (const step of steps) playOne(step);
  runs.age();
  for (const step of steps)
    for (let i = 0, answers = 0; i < learningSteps && answers < answersMin; i += 1)
      answers += playOne(step).sent;
  return () => steps.reduce((sum, step) => sum + playOne(step).dropped, 0);
}

const own = { 4: parseAddress(victim(4))!, 6: parseAddress(victim(6))! };
/** Positions of the addresses in a frame. */
const source = { 4: 26, 6: 22 };

/** True for a frame to the protected address. */
function isTo(frame: Uint8Array, version: 4 | 6): boolean {
  const address = own[version];
  return address.every((byte, i) => frame[source[version] + address.length + i] === byte);
}

/** The frame with its addresses exchanged. */
function backTo(frame: Uint8Array, version: 4 | 6): Uint8Array {
  const [at, { length }] = [source[version], own[version]];
  const back = frame.slice();
  back.set(own[version], at);
  back.set(frame.subarray(at, at + length), at + length);
  return back;
}
