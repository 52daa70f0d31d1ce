/**
 * Kills programs at random times while servers of the lab are flooded, and compares the incidents that the customer, the
 * monitor and operations have afterwards with the floods that were sent.
 *
 * `kill -9` of the sensor, the monitor, operations and both PostgreSQL servers, during floods and during the healthy minute
 * after each. Afterwards every flood is one incident of its address and class, with the same id and times at the monitor
 * and in operations; it began with the flood, or when a sensor that was dead listened again, and it ended by recovery, not
 * before sixty seconds after the last packet. There is no other incident of severity attack.
 */
import { attack } from './attack.ts';
import { type KillOptions, killAtRandom } from './kill-programs.ts';
import { apiOf, signIn } from './people.ts';
import { type RunningDemo, runDemo } from './run-demo.ts';
import type { DeafTime } from './sensor-deaths.ts';

/** Low, so that a busy machine sends and counts the floods. */
const thresholds = {
  'inbound.syn_pps': '500',
  'inbound.udp_pps': '500',
  'inbound.icmp_pps': '500',
} as const;
const floodClasses = ['syn_flood', 'udp_flood', 'icmp_flood'] as const;
/** Floods of one address that follow one another within minutes can be one incident, so rounds take turns. */
const groups = 2;
const serversMin = groups * floodClasses.length;
const floodPps = 2_500;
const floodSeconds = 40;
const killsOfRound = 40;
/** What a stored time may differ from the clock of this process: the packet's way, and the second it is counted in. */
const slackMs = 2_000;
/** From the first packet until the incident begins at the latest; a sensor that has just begun to listen needs a first second. */
const startSlackMs = 4_000;
const recoveryMs = 60_000;

/** Its packets lie between these times; how long its process took to start and to end is not known. */
interface Flood {
  address: string;
  class: string;
  fromMs: number;
  toMs: number;
}

export interface KnownIncident {
  id: string;
  address: string;
  class: string;
  state: string;
  startedMs: number;
  recoveredMs: number | null;
}

export interface IncidentKillResult {
  kills: number;
  floods: number;
  faults: string[];
  /** Planted faults that the comparison found. */
  planted: { caught: number; of: number };
}

/** Runs the proof in its own world. Takes about four seconds per kill, plus three minutes. */
export async function proveIncidentKills({ n, seed, report }: KillOptions): Promise<IncidentKillResult> {
  const demo = await runDemo();
  try {
    const addresses = await prepare(demo);
    const floods: Flood[] = [];
    const deafTimes: DeafTime[] = [];
    const faults: string[] = [];
    for (let killed = 0; killed < n && faults.length === 0; killed += killsOfRound) {
      const kills = Math.min(killsOfRound, n - killed);
      const round = sendFloods(demo, addresses, killed / killsOfRound);
      deafTimes.push(...(await killAtRandom(demo, { n: kills, seed: seed + killed, report, pauseMs })));
      floods.push(...(await round));
      faults.push(...(await settle(demo, floods, deafTimes, report)));
    }
    const known = await readKnown(demo, 'monitor');
    const delivered = await readKnown(demo, 'operations');
    return {
      kills: n,
      floods: floods.length,
      faults,
      planted: plantFaults({ floods, known, delivered, deafTimes }),
    };
  } catch (error) {
    report(demo.output());
    throw error;
  } finally {
    await demo.stop();
  }
}

/** Lowers the thresholds, creates servers, and waits until a sensor protects their public addresses, which it returns. */
async function prepare(demo: RunningDemo): Promise<string[]> {
  const operator = await signIn(demo.file.monitor_url, demo.file.monitor_operator);
  await operator.submit('/sites/1/protection', 'thresholds', thresholds);
  const api = apiOf(demo.file, demo.file.full_key);
  for (let i = 1; i < serversMin; i += 1) {
    const { id } = await api.createServer({ plan: 'kvm-1', image: 'debian-13', name: `flooded-${i}` });
    await api.waitForServer(id, 'running', { timeoutMs: 60_000, everyMs: 250 });
  }
  const sql = `select distinct host(a.address) as address from allocation_targets a
    where family(a.address) = 4 and exists (select 1 from detector_epochs e where a.address <<= any(e.prefixes))`;
  return demo.until('sensors protect servers of the lab', 240_000, async () => {
    const rows = await demo.query<{ address: string }>('monitor', sql);
    return rows.length >= serversMin && rows.map(({ address }) => address);
  });
}

const pauseMs = (random: number) => 1_000 + 3_000 * random;

/** One flood of each class at once, on the addresses whose turn it is. An address has another class each time. */
function sendFloods(demo: RunningDemo, addresses: readonly string[], round: number): Promise<Flood[]> {
  const first = (round % groups) * floodClasses.length;
  const turn = Math.floor(round / groups);
  return Promise.all(
    floodClasses.map(async (floodClass, i) => {
      const address = addresses[first + ((i + turn) % floodClasses.length)]!;
      const fromMs = Date.now();
      await attack(demo, { target: address, class: floodClass, pps: floodPps, seconds: floodSeconds });
      return { address, class: floodClass, fromMs, toMs: Date.now() };
    }),
  );
}

/** Without kills, until every flood has recovered everywhere, or long after it had to. Returns what is wrong then. */
async function settle(
  demo: RunningDemo,
  floods: readonly Flood[],
  deafTimes: readonly DeafTime[],
  report: (line: string) => void,
): Promise<string[]> {
  let faults: string[] = [];
  try {
    await demo.until('all floods have recovered at the monitor and in operations', 300_000, async () => {
      const known = await readKnown(demo, 'monitor');
      const delivered = await readKnown(demo, 'operations');
      faults = compareIncidents({ floods, known, delivered, deafTimes });
      return faults.length === 0;
    });
  } catch (error) {
    if (faults.length === 0) throw error;
  }
  report(`${new Date().toISOString()} ${floods.length} floods, ${faults.length} faults`);
  return faults;
}

const queries = {
  monitor: `select id, host(target::inet) as address, class, state, extract(epoch from started_at)::float8 * 1000 as "startedMs",
      extract(epoch from recovered_at)::float8 * 1000 as "recoveredMs"
    from incidents where severity = 'attack' and merged_into is null and not is_withdrawn and target_kind = 'host'`,
  operations: `select incident_id as id, address, class, state, extract(epoch from started_at)::float8 * 1000 as "startedMs",
      extract(epoch from recovered_at)::float8 * 1000 as "recoveredMs"
    from protect_incidents where severity = 'attack'`,
} as const;

function readKnown(demo: RunningDemo, program: keyof typeof queries): Promise<KnownIncident[]> {
  return demo.query<KnownIncident>(program, queries[program]);
}

export interface IncidentEvidence {
  floods: readonly Flood[];
  known: readonly KnownIncident[];
  delivered: readonly KnownIncident[];
  deafTimes: readonly DeafTime[];
}

/** What is wrong, one line each. */
export function compareIncidents({ floods, known, delivered, deafTimes }: IncidentEvidence): string[] {
  const faults: string[] = [];
  const explained = new Set<string>();
  for (const flood of floods) {
    const title = `${flood.class} of ${flood.address} from ${new Date(flood.fromMs).toISOString()}`;
    const own = known.filter(
      (one) =>
        one.address === flood.address &&
        one.startedMs >= flood.fromMs - slackMs &&
        one.startedMs <= flood.toMs + slackMs,
    );
    for (const { id } of own) explained.add(id);
    if (own.length !== 1) {
      faults.push(`${title}: ${own.length} incidents`);
      continue;
    }
    faults.push(...judgeTimes(flood, own[0]!, deafTimes).map((fault) => `${title}: ${fault}`));
  }
  for (const { id, class: found, address } of known)
    if (!explained.has(id)) faults.push(`${found} of ${address} was not sent`);
  return [...faults, ...compareCopies(known, delivered)];
}

function judgeTimes(flood: Flood, incident: KnownIncident, deafTimes: readonly DeafTime[]): string[] {
  const faults: string[] = [];
  if (incident.class !== flood.class) faults.push(`is called ${incident.class}`);
  // Deaths that follow one another leave no time to begin between them.
  let latestMs = flood.toMs - floodSeconds * 1000 + startSlackMs;
  for (const { fromMs, toMs } of deafTimes.toSorted((a, b) => a.fromMs - b.fromMs))
    if (fromMs <= latestMs) latestMs = Math.max(latestMs, toMs + startSlackMs);
  if (incident.startedMs > latestMs)
    faults.push(`began ${Math.round(incident.startedMs - flood.fromMs)} ms after its first packet`);
  if (incident.state !== 'recovered') faults.push(`is ${incident.state}`);
  else if (incident.recoveredMs! < flood.fromMs + floodSeconds * 1000 + recoveryMs - slackMs)
    faults.push(`recovered ${Math.round(incident.recoveredMs! - flood.toMs)} ms after its last packet`);
  return faults;
}

/** Operations has each incident of the monitor once, as it is. */
function compareCopies(known: readonly KnownIncident[], delivered: readonly KnownIncident[]): string[] {
  const faults: string[] = [];
  // Times are cut to milliseconds on the way.
  const text = (one: KnownIncident) =>
    `${one.address} ${one.class} ${one.state} ${Math.floor(one.startedMs)} ${one.recoveredMs === null ? null : Math.floor(one.recoveredMs)}`;
  for (const one of known) {
    const copies = delivered.filter(({ id }) => id === one.id);
    if (copies.length !== 1) faults.push(`${text(one)}: ${copies.length} times in operations`);
    else if (text(copies[0]!) !== text(one)) faults.push(`${text(one)}: in operations ${text(copies[0]!)}`);
  }
  for (const copy of delivered)
    if (!known.some(({ id }) => id === copy.id)) faults.push(`${text(copy)} is in operations alone`);
  return faults;
}

/** Each stands for a class of errors; the comparison must find every one. */
function plantFaults(evidence: IncidentEvidence): { caught: number; of: number } {
  const { known, delivered, floods } = evidence;
  const [victim, ...others] = known;
  if (!victim) return { caught: 0, of: 6 };
  const end = floods.find(({ address }) => address === victim.address)!.toMs;
  const early = { ...victim, recoveredMs: end + 5_000 };
  const planted: Partial<IncidentEvidence>[] = [
    { known: others },
    { known: [...known, { ...victim, id: 'another' }] },
    { known: [{ ...victim, class: 'other' }, ...others] },
    {
      known: [early, ...others],
      delivered: delivered.map((one) => (one.id === victim.id ? early : one)),
    },
    { delivered: delivered.filter(({ id }) => id !== victim.id) },
    {
      delivered: delivered.map((one) =>
        one.id === victim.id ? { ...one, startedMs: one.startedMs + 1000 } : one,
      ),
    },
  ];
  const caught = planted.filter((change) => compareIncidents({ ...evidence, ...change }).length > 0);
  return { caught: caught.length, of: planted.length };
}
