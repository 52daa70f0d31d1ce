/** Replays of groups, and what they found of each address. */
import { sql } from 'kysely';
import type { AttackDirection } from '#contracts/incidents.ts';
import type { Metric } from '#contracts/sensor-api/detection.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { ThresholdChoices } from './thresholds.ts';

export interface GroupReplay {
  id: string;
  groupId: number;
  groupName: string;
  asked: ThresholdChoices;
  askedAtMs: number;
  askedBy: string;
  /** Null until the work has begun. */
  addresses: number | null;
  done: number;
  /** Null: it waits or is under way. */
  finishedAtMs: number | null;
  cancelledBy: string | null;
  failure: string | null;
}

/** What other thresholds would have found of one address. */
export interface ReplayedAddress {
  address: string;
  /** Minutes with traffic. */
  minutes: number;
  fired: number;
  certain: number;
  /** What the thresholds of that time find in the same minutes. */
  present: number;
  /** Incidents of which only the present thresholds find something, and only the others; null of replays of before. */
  lost: number | null;
  added: number | null;
  strongest: {
    direction: AttackDirection;
    metric: Metric;
    rate: number;
    ratio: number;
    fromMs: number;
  } | null;
}

const columns = sql`id, group_id::float8 as group_id, group_name, asked,
  (extract(epoch from asked_at) * 1000)::float8 as asked_at_ms, asked_by, cardinality(addresses) as addresses, done,
  (extract(epoch from finished_at) * 1000)::float8 as finished_at_ms, cancelled_by,
  failure`;

export async function findOpenReplay(db: Queryable, siteId: number): Promise<GroupReplay | null> {
  const { rows } = await sql<GroupReplay>`
    select ${columns} from protection_replays where site_id = ${siteId} and finished_at is null`.execute(db);
  return rows[0] ?? null;
}

/** Of a group, the newest first. */
export async function listReplays(
  db: Queryable,
  siteId: number,
  groupId: number,
  limit: number,
): Promise<GroupReplay[]> {
  const { rows } = await sql<GroupReplay>`
    select ${columns} from protection_replays where site_id = ${siteId} and group_id = ${groupId}
    order by asked_at desc, id limit ${limit}`.execute(db);
  return rows;
}

/** The address that would lose most incidents first, then the one that would have fired most often. */
export async function listReplayed(db: Queryable, siteId: number, id: string): Promise<ReplayedAddress[]> {
  const { rows } = await sql<ReplayedAddress>`
    select a.address, a.minutes, a.fired, a.certain, a.present, a.lost, a.added, a.strongest
    from protection_replay_addresses a join protection_replays r on r.id = a.replay_id
    where r.id = ${id} and r.site_id = ${siteId}
    order by coalesce(a.lost, 0) desc, a.fired desc, a.present desc, a.minutes desc, a.address`.execute(db);
  return rows;
}

export async function insertReplay(
  trx: Queryable,
  siteId: number,
  replay: { id: string; groupId: number; groupName: string; asked: ThresholdChoices },
  by: string,
): Promise<void> {
  await sql`
    insert into protection_replays (id, site_id, group_id, group_name, asked, asked_by)
    values (${replay.id}, ${siteId}, ${replay.groupId}, ${replay.groupName}, ${JSON.stringify(replay.asked)}, ${by})`.execute(
    trx,
  );
}

/** Null: the site has none of this id that waits or is under way. The worker ends with its next address. */
export async function cancelReplay(
  trx: Queryable,
  siteId: number,
  id: string,
  by: string,
): Promise<GroupReplay | null> {
  const { rows } = await sql<GroupReplay>`
    update protection_replays set finished_at = svc_now(), cancelled_by = ${by}
    where id = ${id} and site_id = ${siteId} and finished_at is null returning ${columns}`.execute(trx);
  return rows[0] ?? null;
}

/** A replay that this worker does; another term is another worker's. */
export interface ReplayClaim {
  id: string;
  siteId: number;
  groupId: number;
  asked: ThresholdChoices;
  /** Null until they are listed. */
  list: string[] | null;
  done: number;
  term: number;
  attempts: number;
}

/** The oldest that no worker does; `skip locked` lets workers pass one another. */
export async function claimReplay(db: Queryable, claimSeconds: number): Promise<ReplayClaim | null> {
  const { rows } = await sql<ReplayClaim>`
    update protection_replays set term = term + 1, attempts = attempts + 1,
      claimed_until = svc_now() + ${claimSeconds} * interval '1 second'
    where id = (
      select id from protection_replays
      where finished_at is null and (claimed_until is null or claimed_until <= svc_now())
      order by asked_at, id limit 1 for update skip locked)
    returning id, site_id::float8 as site_id, group_id::float8 as group_id, asked, addresses as list, done, term::float8 as term, attempts`.execute(
    db,
  );
  return rows[0] ?? null;
}

const isOwn = ({ id, term }: Pick<ReplayClaim, 'id' | 'term'>) =>
  sql`id = ${id} and term = ${term} and finished_at is null`;

/** False: it was cancelled, or is another worker's. */
export async function setAddresses(db: Queryable, claim: ReplayClaim, addresses: readonly string[]) {
  const { rows } = await sql`
    update protection_replays set addresses = ${[...addresses]}::text[]
    where ${isOwn(claim)} returning 1`.execute(db);
  return rows.length === 1;
}

/** Stores an address and counts it, in one transaction of the caller. False: nothing was stored, for the claim is lost. */
export async function addReplayed(
  trx: Queryable,
  claim: ReplayClaim,
  one: ReplayedAddress,
  claimSeconds: number,
): Promise<boolean> {
  const { rows } = await sql`
    update protection_replays set done = done + 1, attempts = 0,
      claimed_until = svc_now() + ${claimSeconds} * interval '1 second'
    where ${isOwn(claim)} returning 1`.execute(trx);
  if (rows.length === 0) return false;
  await sql`
    insert into protection_replay_addresses (replay_id, address, minutes, fired, certain, present, lost, added, strongest)
    values (${claim.id}, ${one.address}, ${one.minutes}, ${one.fired}, ${one.certain}, ${one.present}, ${one.lost}, ${one.added},
      ${one.strongest === null ? null : JSON.stringify(one.strongest)}::jsonb)`.execute(trx);
  return true;
}

export async function finishReplay(db: Queryable, claim: ReplayClaim, failure: string | null): Promise<void> {
  await sql`
    update protection_replays set finished_at = svc_now(), failure = ${failure}
    where ${isOwn(claim)}`.execute(db);
}

/** Gives it back, to be tried again after a while. */
export async function releaseReplay(db: Queryable, claim: ReplayClaim, restSeconds: number): Promise<void> {
  await sql`
    update protection_replays set claimed_until = svc_now() + ${restSeconds} * interval '1 second'
    where ${isOwn(claim)}`.execute(db);
}
