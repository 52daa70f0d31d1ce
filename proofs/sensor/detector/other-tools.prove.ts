/**
 * Proof with floods of hping3, nping, masscan and tcpreplay, recorded on a veth pair: `sensor detect` names each by its
 * class, as one incident of severity attack, and blames neither the target for its answers nor any other address.
 *
 * Thresholds are the defaults where the tool reached three times the one of its class on this machine, else the defaults
 * divided so that it did. The same recordings with a fault planted between tcpdump and the detector must not be named right,
 * or the proof shows nothing.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { seededRandom } from '#common/random/index.ts';
import { defaultThresholds } from '#sensor/detector/index.ts';
import { packetsAtThreshold } from '#sensor/testing/attack-traffic.ts';
import {
  insideAddresses,
  openToolLink,
  record,
  requireTools,
  runFor,
  spawnTool,
  type ToolLink,
} from '#sensor/testing/tool-link.ts';
import { frameFaults } from './frame-faults.ts';
import {
  describeIncident,
  detectRecorded,
  medianOf,
  type RecordedFrame,
  readRecorded,
  type SecondOfTraffic,
  wholeSeconds,
  writeRecorded,
} from './recorded-traffic.ts';
import { type PickNumber, type ToolFlood, toolFloods, toolPackages } from './tool-floods.ts';

export const name = 'other-tools';

export const plantedFaults = frameFaults.map((fault) => fault.name);

export interface ProveOptions {
  n: number;
  seed: number;
  report: (line: string) => void;
  floods?: readonly ToolFlood[];
  /** Records a flood into a file; of the real tools by default. */
  recordFlood?: ((flood: ToolFlood, pick: PickNumber, folder: string, file: string) => Promise<void>) | null;
}

/** What the class is compared with: how often its rate is over the threshold. */
const wantedRatio = 3;
const floodSeconds = 4;
const rightShareMin = 0.95;
/** Whole seconds of a recording that a busy machine left with less are repeated. */
const wholeSecondsMin = 2;
const attemptsMax = 3;

interface Kept {
  frames: readonly RecordedFrame[];
  divisor: number;
}

interface Tally {
  runs: number;
  right: number;
  atDefaults: number;
}

export async function prove({ n, seed, report, floods = toolFloods, recordFlood = null }: ProveOptions) {
  const random = seededRandom(seed);
  const pick: PickNumber = (least, most) => least + Math.floor(random() * (most - least + 1));
  const folder = mkdtempSync(join(tmpdir(), 'svc-other-tools-'));
  const live = recordFlood ? null : openLive();
  const recorder = recordFlood ?? live!.recordFlood;
  const tallies = new Map<string, Tally>();
  const kept = new Map<string, Kept>();
  const wrong: string[] = [];
  let unjudged = 0;
  try {
    const order = shuffled(floods, random);
    for (let i = 0; i < n; i += 1) {
      const flood = order[i % order.length]!;
      const title = `${flood.tool} ${flood.class} (${flood.what}) IPv${flood.version} from ${flood.sources}`;
      const run = await judgeFlood(flood, pick, folder, recorder);
      if (run === null) {
        unjudged += 1;
        report(`${title}: NOT JUDGED, it sent nothing for two seconds in ${attemptsMax} attempts`);
        continue;
      }
      const key = `${flood.tool} ${flood.class} IPv${flood.version}`;
      const tally = tallies.get(key) ?? { runs: 0, right: 0, atDefaults: 0 };
      tallies.set(key, tally);
      tally.runs += 1;
      if (run.divisor === 1) tally.atDefaults += 1;
      if (run.offence === null) tally.right += 1;
      else wrong.push(`${title}, ${run.rate.toFixed(0)} packets/s: ${run.offence}`);
      if (flood.version === 4 && run.offence === null && !kept.has(flood.class)) kept.set(flood.class, run);
    }
    for (const line of wrong) report(line);
    for (const [key, { runs, right, atDefaults }] of [...tallies].toSorted(([a], [b]) => (a < b ? -1 : 1)))
      report(`${key}: ${right} of ${runs} right, ${atDefaults} with the default thresholds`);
    const caught = await plant(kept, folder, report);
    const tried = n - unjudged;
    const right = tried - wrong.length;
    report(`${right} of ${tried} right; ${unjudged} were not judged`);
    const isRight = right >= tried * rightShareMin && tried >= n * rightShareMin;
    return {
      claim:
        'floods of hping3, nping, masscan and tcpreplay are one attack each, of the right class, in 95 %',
      tried,
      failures: isRight ? 0 : wrong.length + unjudged,
      plantedBugsCaught: `${caught} of ${frameFaults.length}`,
    };
  } finally {
    live?.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The namespaces, with a server on the port that floods of connections ask for. */
function openLive() {
  requireTools(toolPackages);
  const link = openToolLink();
  const serve = "require('net').createServer((socket) => socket.destroy()).listen(443, '::')";
  const server = spawnTool([...link.inside, process.execPath, '-e', serve]);
  return {
    recordFlood: (flood: ToolFlood, pick: PickNumber, folder: string, file: string) =>
      recordLive(link, flood, pick, folder, file),
    close() {
      server.kill('SIGKILL');
      link.close();
    },
  };
}

async function recordLive(link: ToolLink, flood: ToolFlood, pick: PickNumber, folder: string, file: string) {
  const command = await flood.command(pick, folder);
  await record(link, file, async () => {
    await runFor([...link.outside, ...command], floodSeconds);
  });
}

type Recorder = (flood: ToolFlood, pick: PickNumber, folder: string, file: string) => Promise<void>;

async function judgeFlood(flood: ToolFlood, pick: PickNumber, folder: string, recorder: Recorder) {
  const file = join(folder, 'flood.pcap');
  for (let attempt = 1; ; attempt += 1) {
    await recorder(flood, pick, folder, file);
    const frames = readRecorded(file);
    const seconds = wholeSeconds(frames, 'in');
    if (seconds.length < wholeSecondsMin || medianOf(seconds, (second) => second.packets) === 0) {
      if (attempt < attemptsMax) continue;
      return null;
    }
    const rate = medianOf(seconds, (second) => second.packets);
    const divisor = Math.max(1, wantedRatio / ratioOf(flood, seconds));
    return { frames, rate, divisor, offence: offenceOf(flood, await detectRecorded(file, divisor)) };
  }
}

/** How far the median second is over the default threshold of its class. */
function ratioOf(flood: ToolFlood, seconds: readonly SecondOfTraffic[]): number {
  const { inbound } = defaultThresholds;
  const spread = flood.sources === 'many' ? inbound.amplification_spread_bps : inbound.amplification_bps;
  if (flood.class === 'amplification') return medianOf(seconds, (second) => second.bytes * 8) / spread;
  // Some tools answer the target's answers with resets.
  const isOpening = flood.class === 'syn_flood';
  const rate = medianOf(seconds, (second) => (isOpening ? second.openings : second.packets));
  const shape = { class: flood.class, version: flood.version, direction: 'inbound', ratio: 1 } as const;
  return rate / packetsAtThreshold(shape, defaultThresholds);
}

function offenceOf(flood: ToolFlood, incidents: Awaited<ReturnType<typeof detectRecorded>>): string | null {
  const attacks = incidents.filter(({ severity }) => severity === 'attack').map(describeIncident);
  const wanted = `${insideAddresses[flood.version]} inbound ${flood.class} attack`;
  if (attacks.length === 1 && attacks[0] === wanted) return null;
  return attacks.length === 0 ? 'no attack' : attacks.join(', ');
}

/** Judges kept recordings with each fault. Returns the number of faults that showed. */
async function plant(kept: ReadonlyMap<string, Kept>, folder: string, report: (line: string) => void) {
  let caught = 0;
  for (const fault of frameFaults) {
    const one = kept.get(fault.class);
    if (!one) {
      report(`planted "${fault.name}": NO RECORDING of ${fault.class}`);
      continue;
    }
    for (const frame of one.frames) if (frame.bytes[12] === 0x08) fault.spoil(frame);
    const spoilt = join(folder, 'spoilt.pcap');
    writeRecorded(spoilt, one.frames);
    const flood = { class: fault.class, version: 4, sources: 'many' } as ToolFlood;
    const offence = offenceOf(flood, await detectRecorded(spoilt, one.divisor));
    report(`planted "${fault.name}": ${offence ?? 'NOT NOTICED'}`);
    if (offence !== null) caught += 1;
  }
  return caught;
}

function shuffled<T>(list: readonly T[], random: () => number): T[] {
  return list
    .map((one) => ({ one, at: random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ one }) => one);
}
