/**
 * Kills programs at random times during real traffic, and compares the minutes shown to customers with the counters of
 * nftables.
 *
 * `kill -9` of the sensor, the monitor, operations and both PostgreSQL servers, most often around the end of a minute,
 * when its counters are in transit. Afterwards every minute equals the counters or has a gap, no minute is shown twice
 * or with extra bytes, and no gap exists without a sensor kill.
 *
 * The result does not depend on the speed of the machine: a gap may last until the sensor logs that it listens again,
 * and may begin a minute earlier if that minute was not on disk yet. The proof continues until minutes with exact
 * counters were shown, up to a limit.
 */

import type { TruthRow } from '#lab/index.ts';
import { compareMinutes, findUnclear } from './compare-minutes.ts';
import { type KillOptions, killAtRandom } from './kill-programs.ts';
import { type ProtectMinute, readMinutes, signIn } from './people.ts';
import { type RunningDemo, runDemo } from './run-demo.ts';
import { minutesOf } from './sensor-deaths.ts';
import { watchStandstills } from './standstills.ts';

/** After the last kill, until one minute with exact counters was shown for each address. */
const restMinutesMax = 10;
/** After that, for an upload that was delayed because its first attempts met a killed database. */
const lateMinutesMax = 4;
/** The demo's own server. */
const serverId = 1;

export interface KillProofResult {
  kills: number;
  /** Minutes that were shown exactly, and minutes with gaps, over all addresses. */
  equal: number;
  gaps: number;
  faults: string[];
  /** Number of planted faults that the comparison found. */
  planted: { caught: number; of: number };
}

export interface KillProofOptions extends KillOptions {
  /**
   * Scan ports meanwhile, as a demo does. Scans take half of the processor time, and a minute at whose
   * turn a scan sends packets is no witness.
   */
  scansPorts: boolean;
}

/** Runs the proof in its own world. Takes about nine seconds per kill, plus three minutes. */
export async function proveKills(options: KillProofOptions): Promise<KillProofResult> {
  const demo = await runDemo({ scansPorts: options.scansPorts });
  const standstills = watchStandstills();
  try {
    const deafTimes = await killAtRandom(demo, options);
    const evidence = await waitForEvidence(demo, options.report);
    return judge(options, evidence, minutesOf([...deafTimes, ...standstills.times()]));
  } catch (error) {
    options.report(demo.output());
    throw error;
  } finally {
    standstills.stop();
    await demo.stop();
  }
}

/** All data about the minutes from the first complete one of the demo on. */
interface Evidence {
  addresses: readonly string[];
  shown: readonly ProtectMinute[];
  truth: readonly TruthRow[];
  /** Minutes, in seconds, with gaps in the monitor. */
  gaps: ReadonlySet<number>;
  /** Minutes, in seconds, in which the sensor counted packets dropped by the kernel. */
  lossy: ReadonlySet<number>;
}

function judge(options: KillProofOptions, evidence: Evidence, allowed: ReadonlySet<number>): KillProofResult {
  const { addresses, shown, truth, gaps, lossy } = evidence;
  const comparison = compareMinutes(shown, truth, new Set([...gaps, ...lossy]));
  const faults = [...comparison.faults, ...findLost(evidence)];
  for (const minute of gaps) {
    if (!allowed.has(minute)) faults.push(`${minute} is a gap though the sensor was not killed then`);
  }
  faults.push(...findUnclear(truth));
  return {
    kills: options.n,
    equal: comparison.equal,
    gaps: gaps.size * addresses.length,
    faults,
    planted: plantFaults(evidence),
  };
}

/**
 * Waits for minutes without a kill: until one with exact counters is shown for each address, and all before it have
 * arrived.
 */
async function waitForEvidence(demo: RunningDemo, report: (line: string) => void): Promise<Evidence> {
  const firstMinute = Math.ceil(demo.readyAtMs / 60_000) * 60;
  const firstRest = Math.ceil(Date.now() / 60_000) * 60;
  const addresses = await readAddresses(demo);
  const { operations_url: url, customer: login } = demo.file;
  // Operations or its database may have been killed just now.
  const customer = await demo.until('the customer signs in', 120_000, () => signIn(url, login));
  let clearRests = 0;
  for (let rest = 0; rest < restMinutesMax || clearRests > 0; rest += 1) {
    const minute = firstRest + rest * 60;
    const text = new Date(minute * 1000).toISOString();
    report(`waiting for the minute ${text}`);
    const shown = await demo.until(`the minute ${text} after the last kill is shown`, 420_000, async () => {
      // A minute without values tells of a gap; what it names is read from the gaps themselves.
      const minutes = (await readMinutes(customer, serverId)).filter((row) => row.inbound_bytes !== null);
      return addresses.every((address) => newestOf(minutes, address) >= minute) && minutes;
    });
    const truth = demo.readTruth().filter((row) => {
      return addresses.includes(row.address) && row.minute >= firstMinute && row.minute <= minute;
    });
    const gaps = await readMinuteSet(demo, gapsQuery, firstMinute, minute);
    const lossy = await readMinuteSet(demo, lossyQuery, firstMinute, minute);
    const evidence = { addresses, shown, truth, gaps, lossy };
    const clear = truth.filter((row) => row.exact && row.minute >= firstRest && row.rx_bytes > 0);
    const isClear = addresses.every((address) => clear.some((row) => row.address === address));
    if (isClear && (findLost(evidence).length === 0 || clearRests >= lateMinutesMax)) return evidence;
    if (isClear) clearRests += 1;
  }
  throw new Error(
    `In ${restMinutesMax} minutes without a kill the lab’s traffic never rested around a minute’s turn: this machine stands still too often to be a witness`,
  );
}

/** The newest minute of an address, in seconds. */
function newestOf(minutes: readonly ProtectMinute[], address: string): number {
  const own = minutes.filter((row) => row.address === address);
  return Math.max(0, ...own.map((row) => Date.parse(row.timestamp) / 1000));
}

/** Minutes with bytes that are neither shown nor gaps. */
function findLost({ shown, truth, gaps }: Evidence): string[] {
  const known = new Set(shown.map((row) => `${Date.parse(row.timestamp) / 1000} ${row.address}`));
  return truth
    .filter((row) => row.rx_bytes + row.tx_bytes > 0 && !gaps.has(row.minute))
    .filter((row) => !known.has(`${row.minute} ${row.address}`))
    .map((row) => `${row.minute} ${row.address} is lost without a gap`);
}

/** Loses a minute, doubles one and adds a byte to one: the checks must find each. */
function plantFaults(evidence: Evidence): { caught: number; of: number } {
  const { shown, truth, gaps } = evidence;
  const exact = new Set(
    truth
      .filter((row) => row.exact && row.rx_bytes > 0 && !gaps.has(row.minute))
      .map((row) => `${row.minute} ${row.address}`),
  );
  const at = shown.findIndex((row) => exact.has(`${Date.parse(row.timestamp) / 1000} ${row.address}`));
  // Without an exact minute nothing can be planted, which counts as not found.
  if (at < 0) return { caught: 0, of: 3 };
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
    const lost = findLost({ ...evidence, shown: minutes });
    return compareMinutes(minutes, truth, gaps).faults.length + lost.length > 0;
  });
  return { caught: caught.length, of: planted.length };
}

async function readAddresses(demo: RunningDemo): Promise<string[]> {
  const guests = await demo.until('the lab lists its guests', 60_000, () => demo.listGuests());
  const guest = guests.find((entry) => entry.name === `vm-${serverId}`)!;
  return guest.addresses.map((entry) => entry.address);
}

const gapsQuery = `select extract(epoch from from_minute)::float8 as from, extract(epoch from to_minute)::float8 as to
  from telemetry_gaps where to_minute >= to_timestamp($1)`;
const lossyQuery = `select extract(epoch from minute)::float8 as from, extract(epoch from minute)::float8 as to
  from capture_minutes where kernel_dropped > 0 and minute >= to_timestamp($1)`;

/** The minutes, in seconds, of ranges in the monitor's database, of any capture. */
async function readMinuteSet(
  demo: RunningDemo,
  sql: string,
  firstMinute: number,
  lastMinute: number,
): Promise<Set<number>> {
  const rows = await demo.until('the database of the monitor answers', 120_000, () =>
    demo.query<{ from: number; to: number }>('monitor', sql, [firstMinute]),
  );
  const minutes = new Set<number>();
  for (const { from, to } of rows) {
    for (let minute = Math.max(from, firstMinute); minute <= Math.min(to, lastMinute); minute += 60)
      minutes.add(minute);
  }
  return minutes;
}
