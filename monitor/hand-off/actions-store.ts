/** Actions: claimed by the process that carries them out, and fenced by the term of the claim. */
import { sql } from 'kysely';
import { type Claim, isUnclaimed, setClaim } from '#service-kit/outbox/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Action } from './action.ts';
import type { RuleKind } from './rule.ts';

const ms = (column: string) => sql`(extract(epoch from ${sql.ref(column)}) * 1000)::float8`;
const columns = sql`a.id, a.public_id, a.site_id, a.rule_id, r.name as rule_name, r.removed_at is not null as is_rule_removed,
  a.incident_id, a.kind, a.is_dry_run, a.address, a.target, a.hold_seconds, a.attack, a.state,
  ${ms('a.created_at')} as created_at_ms, ${ms('a.started_at')} as started_at_ms,
  ${ms('a.released_at')} as released_at_ms, ${ms('a.ended_at')} as ended_at_ms, a.stopped_by, a.was_tried,
  a.has_failed, a.attempts, ${ms('a.next_attempt_at')} as next_attempt_at_ms, a.output, a.last_error,
  a.needs_approval, ${ms('a.drop_at')} as drop_at_ms,
  a.drop_by`;
const tables = sql`hand_off_actions a join hand_off_rules r on r.id = a.rule_id`;

/** A filter has lasted as long as its rule allows. */
const isAtItsEnd = sql<boolean>`(
  a.kind = 'filter' and a.started_at + (a.target ->> 'maxSeconds')::int * interval '1 second' <= svc_now())`;

/** An action has a step to do: its start, its end, or neither any more because the attack ended before. */
const isDue = sql<boolean>`(
  a.state in ('waiting', 'ending') and not a.needs_approval and a.next_attempt_at <= svc_now() or a.state = 'waiting' and a.released_at is not null
  or a.state = 'active' and (a.released_at + a.hold_seconds * interval '1 second' <= svc_now() or ${isAtItsEnd}))`;

/** The action that waited longest. The end of one comes before the start of the next of its rule and address. */
export async function claimAction(
  db: Queryable,
  claimSeconds: number,
  which: { kinds: readonly RuleKind[]; hasDryRuns: boolean },
): Promise<Claim | null> {
  const { rows } = await sql<Claim>`
    with due as (
      select a.id from hand_off_actions a
      where a.ended_at is null and ${isUnclaimed('a')} and ${isDue}
        and (a.is_dry_run and ${which.hasDryRuns} or not a.is_dry_run and a.kind = any(${[...which.kinds]}::text[]))
        and not (a.state = 'waiting' and exists (
          select 1 from hand_off_actions e where e.rule_id = a.rule_id and e.target_key = a.target_key and e.state = 'ending'))
      order by a.next_attempt_at, a.id limit 1 for update of a skip locked)
    update hand_off_actions a set ${setClaim(claimSeconds)} from due where a.id = due.id
    returning a.id, a.term`.execute(db);
  return rows[0] ?? null;
}

/**
 * Moves an action to the step that is due: from active to its end; from waiting to its end where the start may have had an
 * effect, else to ended. Returns it when a step is due.
 */
export async function nextStep(db: Queryable, { id, term }: Claim): Promise<Action | null> {
  await sql`
    update hand_off_actions a set attempts = 0, next_attempt_at = svc_now(),
      last_error = case when a.state = 'waiting' and a.was_tried then a.last_error end,
      state = case when a.state = 'active' or a.was_tried then 'ending' else 'ended' end,
      has_failed = a.has_failed or a.state = 'waiting' and a.was_tried,
      ended_at = case when a.state = 'waiting' and not a.was_tried then svc_now() end,
      has_room = a.state = 'active' or a.was_tried,
      stopped_by = case when a.state = 'active' and a.released_at is null then 'the time limit of its rule' else a.stopped_by end
    where a.id = ${id} and a.term = ${term} and (a.state = 'waiting' and a.released_at is not null
      or a.state = 'active' and (a.released_at + a.hold_seconds * interval '1 second' <= svc_now() or ${isAtItsEnd}))`.execute(
    db,
  );
  const { rows } = await sql<Action>`
    select ${columns} from ${tables}
    where a.id = ${id} and a.term = ${term} and a.state in ('waiting', 'ending') and not a.needs_approval
      and a.next_attempt_at <= svc_now()`.execute(db);
  return rows[0] ?? null;
}

/** Only one process at a time counts the addresses of a site. */
export async function lockRoom(trx: Queryable, siteId: number): Promise<void> {
  await sql`select pg_advisory_xact_lock(7318207, ${siteId}::int)`.execute(trx);
}

/** False: the site has its maximum of addresses at once; the action waits some seconds more. */
export async function takeRoom(trx: Queryable, { id, term }: Claim, addressesMax: number): Promise<boolean> {
  const { rows } = await sql<{ hasRoom: boolean }>`
    with counted as (
      select a.id, a.has_room or exists (
          select 1 from hand_off_actions o where o.site_id = a.site_id and o.is_dry_run = a.is_dry_run and o.has_room
            and o.ended_at is null and o.target_key = a.target_key)
        or (select count(distinct o.target_key) from hand_off_actions o
          where o.site_id = a.site_id and o.is_dry_run = a.is_dry_run and o.has_room and o.ended_at is null) < ${addressesMax}::int as fits
      from hand_off_actions a where a.id = ${id} and a.term = ${term} and a.state = 'waiting')
    update hand_off_actions a set has_room = c.fits,
      next_attempt_at = case when c.fits then a.next_attempt_at else svc_now() + interval '5 seconds' end,
      last_error = case when c.fits then a.last_error
        else 'waits: the site has actions for its maximum of ' || ${addressesMax}::int || ' addresses' end
    from counted c where a.id = c.id returning c.fits as has_room`.execute(trx);
  return rows[0]?.hasRoom ?? false;
}

/** Before a start is tried: from here on it may have had an effect. False when another worker has the claim. */
export async function noteTried(db: Queryable, { id, term }: Claim): Promise<boolean> {
  const { rows } = await sql`
    update hand_off_actions set was_tried = true where id = ${id} and term = ${term} and state in ('waiting', 'ending')
    returning 1`.execute(db);
  return rows.length === 1;
}

/** What an attempt made of an action. */
export interface Recorded {
  state: Action['state'];
  hasFailed: boolean;
  attempts: number;
  retrySeconds: number;
  output: string;
  error: string | null;
}

/**
 * Records an attempt. False when another worker has the claim. An action that was ended by hand or with its rule during the
 * attempt to start it ends next.
 */
export async function recordAttempt(trx: Queryable, { id, term }: Claim, given: Recorded): Promise<boolean> {
  const isOver = given.state === 'ended' || given.state === 'failed';
  const { rows } = await sql`
    update hand_off_actions a set state = case when a.state = 'ending' and ${given.state}::text in ('waiting', 'active') then 'ending' else ${given.state} end,
      started_at = case when ${given.state === 'active'} then coalesce(a.started_at, svc_now()) else a.started_at end,
      drop_at = case when ${given.state === 'active'} and a.kind = 'filter' and not a.is_dry_run
        then coalesce(a.drop_at, svc_now() + (a.target ->> 'countSeconds')::int * interval '1 second') else a.drop_at end,
      ended_at = case when ${isOver} then svc_now() end, has_room = a.has_room and ${!isOver}, has_failed = ${given.hasFailed},
      attempts = ${given.attempts}, next_attempt_at = svc_now() + make_interval(secs => ${given.retrySeconds}::float8),
      output = ${given.output},
      last_error = coalesce(${given.error}, case when ${given.hasFailed} then a.last_error end)
    where a.id = ${id} and a.term = ${term} and a.ended_at is null returning 1`.execute(trx);
  return rows.length === 1;
}

/**
 * Ends actions now, without the hold time: what had no effect yet is ended, all others end by their next step. Returns their
 * addresses.
 */
export async function endActions(
  trx: Queryable,
  which: { ruleId: number; addresses?: readonly string[] } | { id: number; siteId: number },
  stoppedBy: string | null,
): Promise<string[]> {
  const {
    ruleId = null,
    addresses = null,
    id = null,
    siteId = null,
  } = { ...{ ruleId: null, addresses: null, id: null, siteId: null }, ...which };
  const { rows } = await sql<{ address: string }>`
    update hand_off_actions a set stopped_by = ${stoppedBy}, attempts = 0, next_attempt_at = svc_now(), last_error = null,
      has_failed = a.has_failed or a.state = 'waiting' and a.was_tried,
      state = case when a.was_tried or a.state <> 'waiting' then 'ending' else 'ended' end,
      ended_at = case when a.was_tried or a.state <> 'waiting' then null else svc_now() end
    where a.state in ('waiting', 'active') and (a.rule_id = ${ruleId}::bigint or a.id = ${id}::bigint and a.site_id = ${siteId}::bigint)
      and (${addresses}::text[] is null or a.address = any(${addresses}::text[]))
      returning a.address`.execute(trx);
  return rows.map(({ address }) => address);
}

/** Starts an action that waits for an operator. Null: it does not. */
export async function approve(
  trx: Queryable,
  siteId: number,
  id: number,
): Promise<{ address: string } | null> {
  const { rows } = await sql<{ address: string }>`
    update hand_off_actions set needs_approval = false, last_error = null, next_attempt_at = svc_now()
    where id = ${id} and site_id = ${siteId} and state = 'waiting' and needs_approval
    returning address`.execute(trx);
  return rows[0] ?? null;
}

/** Lets a filter drop from now on. Null: it drops already, or it is none that is active. */
export async function startDropping(
  trx: Queryable,
  siteId: number,
  id: number,
  by: string,
): Promise<{ address: string } | null> {
  const { rows } = await sql<{ address: string }>`
    update hand_off_actions set drop_at = svc_now(), drop_by = ${by}
    where id = ${id} and site_id = ${siteId} and kind = 'filter' and state = 'active' and not is_dry_run
      and (drop_at is null or drop_at > svc_now()) returning address`.execute(trx);
  return rows[0] ?? null;
}

export type ActiveFilter = Pick<Action, 'address' | 'target' | 'attack' | 'dropAtMs' | 'isDryRun'> & {
  startedAtMs: number;
};

/** Every active filter of the site, those that may drop first; a dry run counts. */
export async function listActiveFilters(db: Queryable, siteId: number): Promise<ActiveFilter[]> {
  const { rows } = await sql<ActiveFilter>`
    select a.address, a.target, a.attack, ${ms('a.drop_at')} as drop_at_ms, a.is_dry_run,
      ${ms('a.started_at')} as started_at_ms
    from hand_off_actions a where a.site_id = ${siteId} and a.kind = 'filter' and a.state = 'active'
    order by a.is_dry_run, a.id`.execute(db);
  return rows;
}

/** Addresses of a rule's actions that wait or are active. */
export async function listOpenAddresses(trx: Queryable, ruleId: number): Promise<string[]> {
  const { rows } = await sql<{ address: string }>`
    select distinct address from hand_off_actions where rule_id = ${ruleId}
      and state in ('waiting', 'active')`.execute(trx);
  return rows.map(({ address }) => address);
}

/** An end that fails is given up by an operator: the action has failed. False: there is no such action that is ending. */
export async function giveUp(
  trx: Queryable,
  siteId: number,
  id: number,
  by: string,
): Promise<{ address: string } | null> {
  const { rows } = await sql<{ address: string }>`
    update hand_off_actions a set state = 'failed', ended_at = svc_now(), stopped_by = ${by}, has_room = false, term = a.term + 1
    where a.id = ${id} and a.site_id = ${siteId} and a.state = 'ending'
      and a.attempts > 0 returning a.address`.execute(trx);
  return rows[0] ?? null;
}

/** Of a site, or of one of its rules; those that are not ended first, then the newest. */
export async function listActions(
  db: Queryable,
  siteId: number,
  ruleId: number | null,
  limit: number,
): Promise<Action[]> {
  const { rows } = await sql<Action>`
    select ${columns} from ${tables}
    where a.site_id = ${siteId} and (${ruleId}::bigint is null or a.rule_id = ${ruleId}::bigint)
    order by a.ended_at is not null, a.id desc limit ${limit}`.execute(db);
  return rows;
}

/** What was done, or would have been done, against an incident; the oldest first. */
export async function listActionsOf(db: Queryable, incidentId: string, limit: number): Promise<Action[]> {
  const { rows } = await sql<Action>`
    select ${columns} from hand_off_incidents j join ${tables} on a.id = j.action_id
    where j.incident_id = ${incidentId}::uuid order by a.id limit ${limit}`.execute(db);
  return rows;
}
