/**
 * Proof with broken packets: the packet path never throws, hangs or grows, and every packet has exactly one verdict.
 * The cost of a packet is counted in executed blocks of code; time only selects which packets are counted.
 *
 * Input: `n` mutated packets, every prefix of up to 5,000 frames, and every split of up to 200 hellos into three parts.
 * The same run with a fault planted between the packets and the engine must fail, or the proof shows nothing.
 */

import { seededRandom } from '#common/random/index.ts';
import type { Capture } from '#sensor/capture/capture.ts';
import { createCapture, createReading, type MinuteReport } from '#sensor/capture/index.ts';
import { readAll, testDomain, testMinute } from '#sensor/testing/captures.ts';
import { countBlocks } from '#sensor/testing/count-blocks.ts';
import { clientHello, ethernet, reverse, Tcp, tcp } from '#sensor/testing/frames.ts';
import { corpusSeeds, generatedSeeds, mutate, type SeedFrame } from '#sensor/testing/mutations.ts';
import { liveKiB } from '../live-memory.ts';

export const name = 'packet-robustness';

/** A slower packet is counted in blocks; on a busy machine many harmless packets are. */
const suspectMs = 5;
const suspectsMax = 2000;
/** Maximum blocks of JavaScript for one packet; ordinary packets take some hundred. */
const blocksMax = 200_000;
/** The planted fault that hangs: the first packet of this length runs a loop of this many rounds. */
const hanging = { length: 15, rounds: 30_000_000 } as const;
/** Allowed growth after the first tenth of the packets, when every table and engine exists. */
const growthKiB = 96 * 1024;
const prefixFramesMax = 5000;
const hellosMax = 200;
/** A reading keeps all its results, so a new one starts after this many packets. */
const packetsPerReading = 20_000;
const plantedPackets = 5000;

export type PlantedFault = 'throws' | 'hangs' | 'leaks' | 'counts-cut-twice';
export const plantedFaults: readonly PlantedFault[] = ['throws', 'hangs', 'leaks', 'counts-cut-twice'];

export interface ProveOptions {
  n: number;
  seed: number;
  report: (line: string) => void;
}

/** Runs everything, then a small run with each planted fault. */
export async function prove(options: ProveOptions) {
  const { n, seed, report } = options;
  const seeds = [...generatedSeeds(), ...corpusSeeds(prefixFramesMax)];
  const offences = [
    ...(await breakPackets(seeds, n, seed, null, report)),
    ...cutFrames(seeds.slice(-Math.min(prefixFramesMax, Math.ceil(n / 100))), report),
    ...cutHellos(Math.min(hellosMax, Math.ceil(n / 25_000)), n < 1_000_000 ? 7 : 1, seed, report),
  ];
  for (const offence of offences.slice(0, 20)) report(offence);
  let caught = 0;
  for (const fault of plantedFaults) {
    const found = await breakPackets(seeds, Math.min(plantedPackets, n), seed, fault, () => {});
    report(`planted ${fault}: ${found[0] ?? 'NOT NOTICED'}`);
    if (found.length > 0) caught += 1;
  }
  return {
    claim: `no broken packet makes the engine throw, run ${blocksMax} blocks or grow; each has one verdict`,
    tried: n,
    failures: offences.length,
    plantedBugsCaught: `${caught} of ${plantedFaults.length}`,
  };
}

const counted = ['packets', 'ipPackets', 'nonIpPackets', 'parserDropped'] as const;

/** Counts the output of the engine, with the planted fault in between. */
class Subject {
  readonly #captures = new Map<number, Capture>();
  readonly #fault: PlantedFault | null;
  readonly #leaked: Uint8Array[] = [];
  #hasHung = false;
  #reading = newReading();
  #inReading = 0;
  readonly #sums = { packets: 0, ipPackets: 0, nonIpPackets: 0, parserDropped: 0 };
  delivered = 0;

  constructor(fault: PlantedFault | null) {
    this.#fault = fault;
  }

  take({ bytes, linkType }: SeedFrame, second: number): void {
    if (this.#fault === 'throws' && bytes.length === 13) throw new RangeError('planted');
    if (this.#fault === 'hangs' && bytes.length === hanging.length && !this.#hasHung) {
      this.#hasHung = true;
      spin(hanging.rounds);
    }
    if (this.#fault === 'leaks') this.#leaked.push(new Uint8Array(65_536).fill(1));
    this.delivered += 1;
    this.#observe(bytes, linkType, second);
    if (this.#fault === 'counts-cut-twice' && bytes.length < 14) this.#observe(bytes, linkType, second);
  }

  #observe(bytes: Uint8Array, linkType: number, second: number): void {
    let capture = this.#captures.get(linkType);
    if (!capture) {
      capture = newCapture(linkType);
      this.#captures.set(linkType, capture);
    }
    capture.observe(bytes, 0, bytes.length, bytes.length, second, 0, -1);
    this.#reading.observe(bytes, 0, bytes.length, bytes.length, second, linkType);
    this.#inReading += 1;
    if (this.#inReading >= packetsPerReading) this.#renewReading();
  }

  #renewReading(): void {
    const { totals } = this.#reading.finish();
    const sum = totals.ipPackets + totals.nonIpPackets + totals.parserDropped;
    if (totals.packets !== this.#inReading || sum !== totals.packets)
      throw new Error(verdicts(this.#inReading, totals));
    this.#reading = newReading();
    this.#inReading = 0;
  }

  /** Takes the closed minutes, as a sensor does; otherwise they accumulate. */
  closeMinutes(second: number): void {
    for (const capture of this.#captures.values()) this.#add(capture.closeMinutes(second * 1000));
  }

  #add(reports: readonly MinuteReport[]): void {
    for (const { totals, hosts } of reports) {
      for (const key of counted) this.#sums[key] += totals[key];
      if (totals.detailTruncated > totals.ipPackets)
        throw new Error('more packets truncated than there were');
      if (hosts.some((host) => !Number.isSafeInteger(host.rxBytes + host.txBytes) || host.packets < 0))
        throw new Error('a host counter is no number of bytes');
    }
  }

  /** The errors in the counters. */
  finish(second: number): string[] {
    if (this.#inReading > 0) this.#renewReading();
    for (const capture of this.#captures.values()) this.#add(capture.closeAll(second * 1000));
    const sums = this.#sums;
    const sum = sums.ipPackets + sums.nonIpPackets + sums.parserDropped;
    const isExact = sums.packets === this.delivered && sum === this.delivered;
    return isExact ? [] : [verdicts(this.delivered, sums)];
  }
}

function verdicts(delivered: number, sums: object): string {
  return `${delivered} packets were delivered, but ${JSON.stringify(sums)} counted`;
}

async function breakPackets(
  seeds: readonly SeedFrame[],
  n: number,
  seed: number,
  fault: PlantedFault | null,
  report: (line: string) => void,
): Promise<string[]> {
  const random = seededRandom(seed);
  const subject = new Subject(fault);
  const offences: string[] = [];
  let before = 0;
  const suspects: Suspect[] = [];
  let second = testMinute;
  for (let i = 0; i < n; i += 1) {
    if (i === Math.floor(n / 10)) before = liveKiB();
    const packet = mutate(seeds, random);
    if (i % 2000 === 0) {
      second += 1;
      subject.closeMinutes(second);
    }
    const started = performance.now();
    try {
      subject.take(packet, second);
    } catch (error) {
      offences.push(`packet ${i} (${hex(packet)}): ${String(error)}`);
      if (offences.length > 5) return offences;
    }
    if (performance.now() - started > suspectMs && suspects.length < suspectsMax)
      suspects.push({ number: i, packet: { ...packet, bytes: packet.bytes.slice() } });
    if (i % 500_000 === 499_999) report(`${i + 1} packets, ${liveKiB()} KiB live`);
  }
  // Measured before the last use of the engines, because later they may be collected.
  const grown = liveKiB() - before;
  try {
    offences.push(...subject.finish(second));
  } catch (error) {
    offences.push(String(error));
  }
  if (grown > growthKiB) offences.push(`live memory grew by ${grown} KiB`);
  const costs = await countSuspects(suspects, fault);
  for (const [at, blocks] of costs.entries())
    if (blocks > blocksMax) offences.push(`packet ${suspects[at]!.number} ran ${blocks} blocks`);
  report(
    `${n} mutated packets: ${costs.length} took over ${suspectMs} ms, of which the longest ran ${Math.max(0, ...costs)} blocks; ${grown} KiB of live memory grown after the first tenth`,
  );
  return offences;
}

interface Suspect {
  number: number;
  packet: SeedFrame;
}

/** Counts each suspect packet, alone in an engine of its own. */
async function countSuspects(suspects: readonly Suspect[], fault: PlantedFault | null): Promise<number[]> {
  if (suspects.length === 0) return [];
  const work: AloneWork = { packets: suspects.map(({ packet }) => packet), fault };
  return countBlocks(import.meta.url, 'observeAlone', work);
}

interface AloneWork {
  packets: readonly SeedFrame[];
  fault: PlantedFault | null;
}

/** The counted work of each packet; runs in the counting thread. */
export function* observeAlone({ packets, fault }: AloneWork): Iterable<() => void> {
  for (const { bytes, linkType } of packets) {
    const capture = newCapture(linkType);
    yield () => {
      if (fault === 'hangs' && bytes.length === hanging.length) spin(hanging.rounds);
      capture.observe(bytes, 0, bytes.length, bytes.length, testMinute, 0, -1);
    };
  }
}

function spin(rounds: number): number {
  let sum = 0;
  for (let round = 0; round < rounds; round += 1) sum = (sum + round) | 0;
  return sum;
}

function cutFrames(frames: readonly SeedFrame[], report: (line: string) => void): string[] {
  const subject = new Subject(null);
  let second = testMinute;
  for (const [i, { bytes, linkType }] of frames.entries()) {
    if (i % 50 === 0) {
      second += 1;
      subject.closeMinutes(second);
    }
    for (let length = 0; length <= bytes.length; length += 1) {
      try {
        // A copy, so that a read beyond the end is detected.
        subject.take({ bytes: bytes.slice(0, length), linkType }, second);
      } catch (error) {
        return [`prefix of ${length} bytes of frame ${i}: ${String(error)}`];
      }
    }
  }
  const offences = subject.finish(second);
  report(`every prefix of ${frames.length} frames: ${subject.delivered} packets`);
  return offences;
}

const ends = { from: '192.0.2.1', fromPort: 40_000, to: '203.0.113.9', toPort: 443 };

/**
 * Every split of a hello into at most three parts must give its name. With a `step`, only every `step`-th first
 * position is tried. Half of the parts arrive in reverse order.
 */
function cutHellos(count: number, step: number, seed: number, report: (line: string) => void): string[] {
  const random = seededRandom(seed);
  const offences: string[] = [];
  let tried = 0;
  for (let i = 0; i < count; i += 1) {
    const host = `h${i}.example.com`;
    const say = clientHello({
      host,
      before: Math.floor(random() * 160),
      recordBytes: 8 + Math.floor(random() * 500),
    });
    for (let first = 1; first < say.length; first += step) {
      const frames: Uint8Array[] = [];
      for (let second = first; second < say.length; second += 1) {
        const parts = [0, first, second].map((from, k) => ({
          from,
          part: say.subarray(from, [first, second, say.length][k]),
        }));
        if ((first + second) % 2 === 1) parts.reverse();
        const own = { ...ends, fromPort: 1024 + second };
        frames.push(ethernet(tcp(own, Tcp.syn, 999)), ethernet(tcp(reverse(own), Tcp.syn | Tcp.ack, 5)));
        for (const { from, part } of parts)
          if (part.length > 0) frames.push(ethernet(tcp(own, Tcp.ack | Tcp.push, 1000 + from, part)));
        tried += 1;
      }
      const named = readAll(frames).flows.filter(
        (flow) => flow.host === host && flow.evidence === 'tls_sni',
      ).length;
      if (named !== say.length - first)
        offences.push(`hello ${i} cut at ${first}: ${named} of ${say.length - first} named`);
    }
  }
  report(`${count} hellos in every cutting into up to three parts: ${tried} connections`);
  return offences;
}

function newCapture(linkType: number): Capture {
  return createCapture({
    name: 'br0',
    role: 'bridge',
    linkType,
    registrableDomain: testDomain,
    local: { prefixes: ['192.0.2.0/24', '2001:db8::/32'], addresses: [] },
    flowsMax: 4096,
  });
}

function newReading() {
  return createReading({
    registrableDomain: testDomain,
    local: { prefixes: [], addresses: [] },
    packetsMax: packetsPerReading,
    onAnswer: () => {},
  });
}

function hex({ bytes, linkType }: SeedFrame): string {
  return `link ${linkType}: ${Buffer.from(bytes.subarray(0, 200)).toString('hex')}`;
}
