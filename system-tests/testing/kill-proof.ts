/**
 * Kills programs at random moments while real traffic flows, and holds what customers are shown against the truth.
 *
 * `kill -9` of the sensor, the monitor, operations and both PostgreSQL servers, most of all around each minute's turn,
 * when its counters are on their way from one to the next. The sensor is spared in odd minutes, so that there are
 * minutes which must be whole besides minutes which may be gaps. Afterwards every minute equals the
 * truth or is named as a gap, none is shown twice or with a byte too much, and no gap lies where nothing was killed.
 *
 * How fast the machine is decides nothing: a gap may last until the sensor's own log says that it listens again, and
 * the proof goes on until minutes with a clear truth were shown, a bounded number of them.
 */

import type { TruthRow } from '#lab/index.ts';
import { compareMinutes, findUnclear } from './compare-minutes.ts';
import { type ProtectMinute, readMinutes, signIn } from './people.ts';
import { type RunningDemo, runDemo } from './run-demo.ts';
import { type DeafTime, type Death, findDeafTimes } from './sensor-deaths.ts';

const victims = [
  ['monitor', 'program'],
  ['monitor', 'postgres'],
  ['operations', 'program'],
  ['operations', 'postgres'],
  ['sensor', 'program'],
] as const;
type Victim = (typeof victims)[number];

/** After the last kill, until one minute of each address was shown whose truth is clear. */
const restMinutesMax = 10;
/** The demo's own server. */
const serverId = 1;

export interface KillProofOptions {
  n: number;
  seed: number;
  report: (line: string) => void;
}

export interface KillProofResult {
  kills: number;
  /** Minutes of an address that were shown exactly, and those that were named as gaps. */
  equal: number;
  gaps: number;
  faults: string[];
  /** Of the planted faults, how many the comparison found. */
  planted: { caught: number; of: number };
}

/** Runs the proof in a world of its own. Takes some nine seconds a kill, and three minutes around them. */
export async function proveKills(options: KillProofOptions): Promise<KillProofResult> {
  const demo = await runDemo();
  try {
    const deafTimes = await killAtRandom(demo, options);
    return await judge(demo, options, deafTimes);
  } catch (error) {
    options.report(demo.output());
    throw error;
  } finally {
    await demo.stop();
  }
}

/** Kills `n` times, and returns when the sensor did not listen. */
async function killAtRandom(demo: RunningDemo, { n, seed, report }: KillProofOptions): Promise<DeafTime[]> {
  const random = createRandom(seed);
  const deaths: Death[] = [];
  for (let kill = 1; kill <= n; kill += 1) {
    const pauseMs = choosePauseMs(Date.now(), random());
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    const isOdd = Math.floor(Date.now() / 60_000) % 2 === 1;
    const choice = victims[Math.floor(random() * (isOdd ? victims.length - 1 : victims.length))]!;
    const [program, what] = await killOne(demo, choice);
    if (program === 'sensor') deaths.push({ fromMs: Date.now(), logEnd: demo.readLog('sensor').length });
    report(`${new Date().toISOString()} kill ${kill} of ${n}: ${program} ${what}`);
  }
  return demo.until('the sensor listens again', 120_000, () => findDeafTimes(demo.readLog('sensor'), deaths));
}

/** From two seconds before a minute's turn until twelve after it kills come thick; no pause skips a turn. */
function choosePauseMs(nowMs: number, random: number): number {
  const sinceHotMs = (nowMs + 2_000) % 60_000;
  if (sinceHotMs < 14_000) return 500 + 4_000 * random;
  return Math.min(8_000 + 16_000 * random, 60_000 - sinceHotMs + 2_000 * random);
}

/** Kills the victim as soon as it lives; one that is between two lives is waited for. */
async function killOne(demo: RunningDemo, victim: Victim): Promise<Victim> {
  await demo.until(`${victim.join(' ')} is killed`, 60_000, () => {
    const pid = demo.pidOf(victim[0], victim[1]);
    if (pid === null) return false;
    process.kill(pid, 'SIGKILL');
    return true;
  });
  return victim;
}

async function judge(
  demo: RunningDemo,
  options: KillProofOptions,
  deafTimes: readonly DeafTime[],
): Promise<KillProofResult> {
  const firstMinute = Math.ceil(demo.readyAtMs / 60_000) * 60;
  const addresses = await readAddresses(demo);
  const { lastMinute, shown } = await waitForClearMinutes(demo, addresses, options.report);
  const truth = demo.readTruth().filter((row) => {
    return addresses.includes(row.address) && row.minute >= firstMinute && row.minute <= lastMinute;
  });
  const gaps = await readGaps(demo, firstMinute, lastMinute);
  const allowed = minutesAround(deafTimes);
  const comparison = compareMinutes(shown, truth, gaps);
  const faults = [...comparison.faults, ...findLost(shown, truth, gaps)];
  for (const minute of gaps) {
    if (!allowed.has(minute)) faults.push(`${minute} is a gap though the sensor was not killed then`);
  }
  faults.push(...findUnclear(truth));
  return {
    kills: options.n,
    equal: comparison.equal,
    gaps: gaps.size * addresses.length,
    faults,
    planted: plantFaults(shown, truth, gaps),
  };
}

/**
 * Waits for minutes that no kill touched: until one with a clear truth is shown of each address. When it is, everything
 * is at work again.
 */
async function waitForClearMinutes(
  demo: RunningDemo,
  addresses: readonly string[],
  report: (line: string) => void,
): Promise<{ lastMinute: number; shown: ProtectMinute[] }> {
  const firstRest = Math.ceil(Date.now() / 60_000) * 60;
  const customer = await signIn(demo.file.operations_url, demo.file.customer);
  for (let rest = 0; rest < restMinutesMax; rest += 1) {
    const minute = firstRest + rest * 60;
    const text = new Date(minute * 1000).toISOString();
    report(`waiting for the minute ${text}`);
    const shown = await demo.until(`the minute ${text} after the last kill is shown`, 420_000, async () => {
      const minutes = await readMinutes(customer, serverId);
      const isThere = (address: string) =>
        minutes.some((row) => row.address === address && Date.parse(row.timestamp) / 1000 === minute);
      return addresses.every(isThere) && minutes;
    });
    const clear = demo.readTruth().filter((row) => row.exact && row.minute >= firstRest);
    if (addresses.every((address) => clear.some((row) => row.address === address)))
      return { lastMinute: minute, shown };
  }
  throw new Error(
    `In ${restMinutesMax} minutes without a kill the lab’s traffic never rested around a minute’s turn: this machine stands still too often to be a witness`,
  );
}

/** Minutes with bytes that are neither shown nor named as gaps. */
function findLost(shown: readonly ProtectMinute[], truth: readonly TruthRow[], gaps: ReadonlySet<number>) {
  const known = new Set(shown.map((row) => `${Date.parse(row.timestamp) / 1000} ${row.address}`));
  return truth
    .filter((row) => row.rx_bytes + row.tx_bytes > 0 && !gaps.has(row.minute))
    .filter((row) => !known.has(`${row.minute} ${row.address}`))
    .map((row) => `${row.minute} ${row.address} is lost without a gap`);
}

/** Loses a minute, doubles one and adds a byte to one: the checks must find each. */
function plantFaults(shown: readonly ProtectMinute[], truth: readonly TruthRow[], gaps: ReadonlySet<number>) {
  const exact = new Set(truth.filter((row) => row.exact && !gaps.has(row.minute)).map((row) => row.minute));
  const at = shown.findIndex((row) => exact.has(Date.parse(row.timestamp) / 1000));
  const victim = shown[at]!;
  const others = shown.filter((_, i) => i !== at);
  const doubled = {
    ...victim,
    inbound_bytes: victim.inbound_bytes! * 2,
    outbound_bytes: victim.outbound_bytes! * 2,
  };
  const planted = [
    others,
    [...others, doubled],
    [...others, { ...victim, inbound_bytes: victim.inbound_bytes! + 1 }],
  ];
  const caught = planted.filter((minutes) => {
    return compareMinutes(minutes, truth, gaps).faults.length + findLost(minutes, truth, gaps).length > 0;
  });
  return { caught: caught.length, of: planted.length };
}

async function readAddresses(demo: RunningDemo): Promise<string[]> {
  const guests = await demo.listGuests();
  const guest = guests.find((entry) => entry.name === `vm-${serverId}`)!;
  return guest.addresses.map((entry) => entry.address);
}

/** Minutes, in seconds, that the monitor was told not to be whole, on any capture. */
async function readGaps(demo: RunningDemo, firstMinute: number, lastMinute: number): Promise<Set<number>> {
  const rows = await demo.query<{ from: number; to: number }>(
    'monitor',
    `select extract(epoch from from_minute)::float8 as from, extract(epoch from to_minute)::float8 as to
       from telemetry_gaps where to_minute >= to_timestamp($1)`,
    [firstMinute],
  );
  const gaps = new Set<number>();
  for (const { from, to } of rows) {
    for (let minute = Math.max(from, firstMinute); minute <= Math.min(to, lastMinute); minute += 60)
      gaps.add(minute);
  }
  return gaps;
}

function minutesAround(deafTimes: readonly DeafTime[]): Set<number> {
  const minutes = new Set<number>();
  for (const { fromMs, toMs } of deafTimes) {
    const first = Math.floor(fromMs / 60_000) * 60;
    for (let minute = first; minute * 1000 <= toMs; minute += 60) minutes.add(minute);
  }
  return minutes;
}

/** Mulberry32: the same seed gives the same kills. */
function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
