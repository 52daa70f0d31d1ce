/**
 * Proof by orders: what several sensors and captures see of the same attacks is uploaded in random orders, in random
 * pieces, with repetitions, over the real inbox. After every order the incidents, their members, states, times, rates,
 * curves and correlations are the same.
 */
import type { IncidentObservation } from '#contracts/sensor-api/detection.ts';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { type Random, seededBelow } from '#monitor/facts/testing/random-uploads.ts';
import { requireIncidentsAlone } from '#monitor/incidents/index.ts';
import { createIncidentSpool, observation } from '#monitor/incidents/testing/observations.ts';
import { createMonitorWorld, type MonitorWorld } from '#monitor/testing/index.ts';
import { stopDatabaseClock } from '#monitor/testing/still-clock.ts';

export const name = 'incident-orders';

export interface OrderOptions {
  /** Orders. */
  n: number;
  seed: number;
  report(line: string): void;
}

const plants = ['last_arrival_wins', 'merge_forgotten', 'seconds_replaced'] as const;
type Plant = (typeof plants)[number] | null;

/** Orders of one history. */
const ordersOfHistory = 10;
const start = Date.UTC(2026, 5, 1, 12, 0, 0);

export async function prove(options: OrderOptions) {
  const { tried, merged, offences } = await runOrders(options, null);
  for (const offence of offences.slice(0, 20)) options.report(offence);
  let caught = 0;
  for (const plant of plants) {
    const found = await runOrders({ ...options, n: 60 }, plant);
    options.report(`planted ${plant}: ${found.offences[0] ?? 'NOT NOTICED'}`);
    if (found.offences.length > 0) caught += 1;
  }
  return {
    claim: `attacks seen by several captures of three sensors, uploaded in random orders and pieces with repetitions: the same incidents, members, times, rates, curves and correlations (${merged} incidents were merged on the way)`,
    tried,
    failures: offences.length,
    plantedBugsCaught: `${caught} of ${plants.length}`,
  };
}

export async function runOrders(
  { n, seed }: Pick<OrderOptions, 'n' | 'seed'>,
  plant: Plant,
): Promise<{ tried: number; merged: number; offences: string[] }> {
  await using world = await createMonitorWorld();
  await stopDatabaseClock(world.database, start + 3_600_000);
  const sensors = [world.sensor, await world.enrol('node-2'), await world.enrol('node-3')];
  if (plant) await plantIn(world, plant);
  const random = seededBelow(seed);
  const offences: string[] = [];
  let merged = 0;
  let history: Said[] = [];
  let expected = '';
  for (let tried = 0; tried < n; tried += 1) {
    if (tried % ordersOfHistory === 0) {
      history = makeHistory(random);
      expected = '';
    }
    await world.database.pool.query(
      'delete from incidents; delete from incident_observations; delete from site_correlations',
    );
    const order = tried % ordersOfHistory === 0 ? history : shuffled(random, repeated(random, history));
    let arrival = 0;
    for (let at = 0; at < order.length; ) {
      const [first] = order.slice(at);
      const piece = takePiece(random, order, at);
      at += piece.length;
      const incidents = piece.map(({ said }) => {
        arrival += 1;
        return plant === 'last_arrival_wins' ? { ...said, revision: arrival } : said;
      });
      // Revisions of one observation may meet in one upload, the same one twice may not.
      const distinct = [...new Map(incidents.map((one) => [`${one.id} ${one.revision}`, one])).values()];
      const body = compressUpload(encodeUpload(createIncidentSpool()(...distinct)));
      await world.inbox.receiveUrgent(sensors[first!.sensor]!, body, 'zstd', requireIncidentsAlone);
    }
    merged += (await world.rows('select 1 from incidents where merged_into is not null')).length;
    const found = JSON.stringify(await world.rows(resultQuery));
    if (expected === '') expected = found;
    else if (found !== expected) offences.push(`order ${tried}: ${differenceOf(expected, found)}`);
  }
  return { tried: n, merged, offences };
}

interface Said {
  sensor: number;
  said: IncidentObservation;
}

/** Attacks on a few targets, each seen by some captures, with their heartbeats, recoveries and reopenings. */
function makeHistory(random: Random): Said[] {
  const history: Said[] = [];
  const views = 3 + random(5);
  for (let i = 0; i < views; i += 1) {
    const id = uuidOf(random);
    const sensor = random(3);
    const target = `198.51.100.${1 + random(2)}`;
    const capture = ['eth0', 'br0'][random(2)]!;
    const className = (['syn_flood', 'udp_flood', 'other'] as const)[random(3)]!;
    const severity = random(5) === 0 ? ('info' as const) : ('attack' as const);
    const startedAtMs = start + random(900) * 1000;
    const revisions = 1 + random(4);
    let lastMs = startedAtMs + 3000;
    for (let revision = 1; revision <= revisions; revision += 1) {
      const isOver = revision > 1 && random(3) === 0;
      const recoveredAtMs = isOver ? lastMs + 60_000 : null;
      const [bps, pps] = [1000 * (1 + random(5)), 1 + random(5)];
      const seconds = [{ atMs: lastMs - 1000, bps, pps }];
      const totals = { bytes: 1000 * revision * (1 + random(3)), packets: 10 * revision };
      const said = observation({
        ...{ id, revision, capture, target, severity, startedAtMs, recoveredAtMs, bps, pps, seconds, totals },
        ...{ class: className, lastObservedAtMs: lastMs, detectedAtMs: startedAtMs + 2000 },
      });
      history.push({ sensor, said });
      lastMs += isOver ? 60_000 + random(200) * 1000 : 10_000;
    }
  }
  return history;
}

/** UUIDs of the seed, so that ties are the same in every run. */
function uuidOf(random: Random): string {
  const hex = Array.from({ length: 32 }, () => random(16).toString(16)).join('');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
}

function repeated(random: Random, history: readonly Said[]): Said[] {
  return history.flatMap((one) => (random(6) === 0 ? [one, one] : [one]));
}

function shuffled(random: Random, list: readonly Said[]): Said[] {
  const left = [...list];
  return Array.from({ length: left.length }, () => left.splice(random(left.length), 1)[0]!);
}

/** The next observations of the order, as many of one sensor as one upload has. */
function takePiece(random: Random, order: readonly Said[], at: number): Said[] {
  const { sensor } = order[at]!;
  const wanted = 1 + random(3);
  const piece: Said[] = [];
  for (const one of order.slice(at, at + wanted)) {
    if (one.sensor !== sensor) break;
    piece.push(one);
  }
  return piece;
}

/** Everything that can be seen, without ids of ours and the number of changes on the way. */
const resultQuery = `
  select i.target, i.direction, i.severity, i.class, i.state, i.started_at, i.detected_at, i.last_observed_at,
    i.recovered_at, i.measured, i.is_withdrawn,
    (select json_agg(o.observation_id || ' ' || o.revision order by o.observation_id) from incident_observations o
      where o.incident_id = i.id) as members,
    (select json_agg(s.text order by s.text) from (
      select o.observation_id || ' ' || c.revision || ' ' || c.at::text || c.bps::text || c.pps::text as text
      from incident_observations o join incident_seconds c on c.observation = o.id where o.incident_id = i.id) s) as curve,
    (select json_agg(p.target || p.started_at order by p.target, p.started_at) from incidents p
      where p.correlation_id = i.correlation_id) as together,
    (select row(c.classes, c.first_started_at, c.last_started_at)::text from site_correlations c
      where c.id = i.correlation_id) as correlation
  from incidents i where i.merged_into is null
  order by i.target, i.severity, i.started_at, i.class`;

function differenceOf(expected: string, found: string): string {
  const [a, b] = [expected, found].map((text) => JSON.parse(text) as Record<string, unknown>[]);
  if (a!.length !== b!.length) return `${b!.length} incidents instead of ${a!.length}`;
  for (const [i, row] of a!.entries())
    for (const key of Object.keys(row))
      if (JSON.stringify(row[key]) !== JSON.stringify(b![i]![key]))
        return `${key} is ${JSON.stringify(b![i]![key])} instead of ${JSON.stringify(row[key])}`;
  return 'another order of fields';
}

async function plantIn({ database }: MonitorWorld, plant: Exclude<Plant, null>): Promise<void> {
  // An observation stays with the incident that it was of first.
  if (plant === 'merge_forgotten')
    await database.pool.query(`
      create function planted() returns trigger language plpgsql as $$
      begin new.incident_id := coalesce(old.incident_id, new.incident_id); return new; end $$;
      create trigger planted before update on incident_observations for each row execute function planted()`);
  // A curve has the seconds of the last revision that came.
  if (plant === 'seconds_replaced')
    await database.pool.query(`
      create function planted() returns trigger language plpgsql as $$
      begin delete from incident_seconds where observation = new.observation; return new; end $$;
      create trigger planted before insert on incident_seconds for each row execute function planted()`);
}
