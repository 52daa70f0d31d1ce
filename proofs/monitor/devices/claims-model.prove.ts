/**
 * Proof by model (2.L): claims, hand-overs and conflicts over addresses that several MACs use in turn, together, and
 * after pauses, minute by minute, with each minute's sightings split over two concurrent transactions.
 *
 * The model keeps every sighting. After each stretch of minutes it checks: A binding begins and ends with a sighting.
 * Every sighting is in a binding (except for the five minutes by which a stored end may lag). Two MACs that continue
 * together are in conflict. An open conflict has two MACs that were seen in turn. A MAC that was alone for over an hour
 * is the only owner.
 */
import fc from 'fast-check';
import { lagSeconds } from '#monitor/devices/policy.ts';
import { createWorld, type World } from '#monitor/testing/world.ts';

export const name = 'claims-model';

export interface ClaimOptions {
  /** Runs of at most ten stretches. */
  n: number;
  seed: number;
  report(line: string): void;
}

/** Planted faults, as triggers of the database. */
const plants: Readonly<Record<string, string>> = {
  conflict_never_opened: 'before insert on ip_conflicts for each row execute function planted_nothing()',
  silent_owner_stays:
    "before update on ip_bindings for each row when (new.ended_by = 'owner') execute function planted_nothing()",
  begins_too_early: 'before insert on ip_bindings for each row execute function planted_early()',
};
const plantedFunctions = `
  create function planted_nothing() returns trigger language plpgsql as 'begin return null; end';
  create function planted_early() returns trigger language plpgsql as
    'begin new.first_seen_at := new.first_seen_at - interval ''3 minutes''; return new; end';`;

export async function prove(options: ClaimOptions) {
  const { minutes, fault } = await runClaims(options, null);
  if (fault !== null) options.report(fault);
  let caught = 0;
  for (const plant of Object.keys(plants)) {
    const found = await runClaims({ ...options, n: 60 }, plant);
    options.report(`planted ${plant}: ${found.fault?.split('\n')[0] ?? 'NOT NOTICED'}`);
    if (found.fault !== null) caught += 1;
  }
  return {
    claim: `claims, bindings and conflicts over shared addresses follow from ${minutes} minutes of sightings`,
    tried: options.n,
    failures: fault === null ? 0 : 1,
    plantedBugsCaught: `${caught} of ${Object.keys(plants).length}`,
  };
}

/** The MACs seen with each of two addresses, the number of minutes, and the pause before. */
const stretch = fc.record({
  silence: fc.constantFrom(0, 0, 0, 2, 12, 75),
  minutes: fc.integer({ min: 1, max: 8 }),
  seen: fc.uniqueArray(fc.record({ mac: fc.nat(2), address: fc.nat(1) }), {
    selector: (one) => `${one.mac} ${one.address}`,
    maxLength: 4,
  }),
  isSplit: fc.boolean(),
});
type Stretch = typeof stretch extends fc.Arbitrary<infer T> ? T : never;

export async function runClaims(
  { n, seed }: Pick<ClaimOptions, 'n' | 'seed'>,
  plant: string | null,
): Promise<{ minutes: number; fault: string | null }> {
  await using world = await createWorld();
  if (plant !== null)
    await world.database.pool.query(`${plantedFunctions} create trigger planted ${plants[plant]}`);
  let runs = 0;
  let minutes = 0;
  const property = fc.asyncProperty(fc.array(stretch, { minLength: 2, maxLength: 10 }), async (list) => {
    runs += 1;
    const run = createRun(world, runs);
    for (const one of list) {
      minutes += one.minutes;
      await run.show(one);
      const fault = await run.judge();
      if (fault !== null) throw new Error(`${fault} in minute ${run.now()}`);
    }
  });
  const result = await fc.check(property, { numRuns: n, seed, endOnFailure: plant !== null });
  if (!result.failed) return { minutes, fault: null };
  const { errorInstance, counterexample } = result;
  const message = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
  return { minutes, fault: `${message}\n${JSON.stringify(counterexample)}` };
}

interface BindingRow {
  mac: string;
  address: string;
  first: number;
  last: number;
  isLive: boolean;
}

const startSecond = Math.floor(Date.now() / 60_000) * 60 - 20 * 86_400;

function createRun(world: World, number: number) {
  const tail = number.toString(16).padStart(4, '0').match(/../g)!.join(':');
  const macOf = (mac: number) => `00:1b:21:0${mac}:${tail}`;
  const addressOf = (address: number) => `10.${number >> 8}.${number & 255}.${address + 1}`;
  /** Minutes of the run in which a MAC was seen with an address. */
  const sightings = new Map<string, number[]>();
  let now = 0;

  async function record(seen: Stretch['seen']): Promise<void> {
    const hosts = seen.map(({ mac, address }) => ({
      deviceKey: `br0|${macOf(mac)}`,
      address: addressOf(address),
    }));
    const upload = { siteId: world.siteId, minutes: [{ minute: startSecond + now * 60, hosts }] };
    await world.database.db.transaction().execute((trx) => world.devices.recordSightings(trx, [upload]));
  }

  return {
    now: () => now,
    async show({ silence, minutes, seen, isSplit }: Stretch): Promise<void> {
      now += silence;
      for (let i = 0; i < minutes; i += 1) {
        now += 1;
        const half = isSplit ? Math.ceil(seen.length / 2) : seen.length;
        await Promise.all([record(seen.slice(0, half)), record(seen.slice(half))]);
        for (const { mac, address } of seen) {
          const key = `${macOf(mac)} ${addressOf(address)}`;
          sightings.set(key, [...(sightings.get(key) ?? []), now]);
        }
      }
    },
    async judge(): Promise<string | null> {
      const addresses = [addressOf(0), addressOf(1)];
      const { rows: bindings } = await world.database.pool.query<BindingRow>(
        `select mac, host(address) as address, ended_at is null as "isLive",
           ((extract(epoch from first_seen_at) - $2) / 60)::int as first, ((extract(epoch from last_seen_at) - $2) / 60)::int as last
         from ip_bindings where address = any($1::inet[])`,
        [addresses, startSecond],
      );
      const { rows: conflicts } = await world.database.pool.query<{ address: string; macs: string[] }>(
        'select host(address) as address, macs from ip_conflicts where resolved_at is null and address = any($1::inet[])',
        [addresses],
      );
      const fault = judgeBindings(sightings, bindings);
      if (fault !== null) return fault;
      for (const address of addresses) {
        const seen = new Map(
          [...sightings].flatMap(([key, list]) =>
            key.endsWith(` ${address}`) ? [[key.split(' ')[0]!, list]] : [],
          ),
        );
        const conflict = conflicts.find((one) => one.address === address);
        const live = bindings.filter((one) => one.isLive && one.address === address).map((one) => one.mac);
        const wrong = judgeAddress(seen, conflict?.macs ?? null, live.sort(), now);
        if (wrong !== null) return `${address}: ${wrong}`;
      }
      return null;
    },
  };
}

function judgeBindings(
  sightings: ReadonlyMap<string, readonly number[]>,
  bindings: readonly BindingRow[],
): string | null {
  const of = Map.groupBy(bindings, (one) => `${one.mac} ${one.address}`);
  for (const [key, list] of of) {
    const seen = sightings.get(key);
    if (!seen) return `${key} is bound and was never seen`;
    for (const { first, last } of list) {
      if (!seen.includes(first) || !seen.includes(last))
        return `${key} is bound from ${first} to ${last}, seen in ${seen}`;
    }
    if (list.filter((one) => one.isLive).length > 1) return `${key} has two live claims`;
  }
  for (const [key, seen] of sightings) {
    const list = of.get(key) ?? [];
    const outside = seen.find(
      (minute) => !list.some(({ first, last }) => minute >= first && minute <= last + lagSeconds / 60),
    );
    if (outside !== undefined) return `${key} was seen in ${outside} and not bound then`;
  }
  return null;
}

function judgeAddress(
  seen: ReadonlyMap<string, readonly number[]>,
  conflict: readonly string[] | null,
  live: readonly string[],
  now: number,
): string | null {
  const together = [...seen].filter(([, list]) =>
    [now, now - 1, now - 2].every((minute) => list.includes(minute)),
  );
  if (together.length > 1 && !together.every(([mac]) => conflict?.includes(mac)))
    return `${together.map(([mac]) => mac)} go on together, and the conflict is ${conflict ?? 'not open'}`;
  if (conflict !== null) {
    const lists = conflict.map((mac) => seen.get(mac) ?? []);
    const inTurns = lists.some((a, i) => lists.some((b, k) => i < k && areInTurns(a, b)));
    if (!inTurns) return `a conflict of ${conflict} is open, and none of them were seen in turns`;
    if (live.length < 2) return `a conflict is open with ${live.length} owners`;
  }
  // An hour, and the minutes by which a stored end may lag.
  const recent = [...seen].filter(([, list]) => list.some((minute) => minute >= now - 67));
  const [alone] = recent;
  const isAlone = recent.length === 1 && alone![1].includes(now) && alone![1].includes(now - 1);
  if (isAlone && (conflict !== null || live.join() !== alone![0]))
    return `${alone![0]} went on alone for over an hour; owners are ${live}, conflict ${conflict}`;
  return null;
}

/** Each was seen after the other within an hour and a half. */
function areInTurns(a: readonly number[], b: readonly number[]): boolean {
  const follows = (one: readonly number[], other: readonly number[]) =>
    one.some((minute) => other.some((before) => before < minute && minute - before <= 90));
  return follows(a, b) && follows(b, a);
}
