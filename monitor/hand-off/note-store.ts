/** Which incidents an action is for, written in the transactions that change incidents. */
import { sql } from 'kysely';
import type { IncidentAction } from '#monitor/incidents/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type Action, toldKinds } from './action.ts';
import type { RuleKind } from './rule.ts';

/** These incidents are over. An action all of whose incidents are over is released: its hold time begins. */
export async function leaveIncidents(trx: Queryable, incidentIds: readonly string[]): Promise<void> {
  await sql`
    with left_now as (
      update hand_off_incidents set left_at = svc_now()
      where incident_id = any(${[...incidentIds]}::uuid[]) and left_at is null returning action_id, incident_id)
    update hand_off_actions a set released_at = svc_now()
    where a.id in (select action_id from left_now) and a.ended_at is null and a.released_at is null
      and not exists (
        select 1 from hand_off_incidents j where j.action_id = a.id and j.left_at is null
          and not exists (select 1 from left_now l where l.action_id = j.action_id
            and l.incident_id = j.incident_id))`.execute(trx);
}

/** An attack and a rule that is for it. */
export interface Match
  extends Pick<
    Action,
    'ruleId' | 'siteId' | 'kind' | 'isDryRun' | 'address' | 'target' | 'holdSeconds' | 'attack'
  > {
  incidentId: string;
  targetKey: string;
  /** An operator has to start it. */
  needsApproval: boolean;
}

/**
 * Makes the actions of these matches, one for each rule and address; an action that waits or is active is joined. What an
 * operator ended for this incident, or what failed, is not begun again. Filters become those of the latest vectors. Returns incidents that joined a started action.
 */
export async function joinActions(trx: Queryable, matches: readonly Match[]): Promise<string[]> {
  const given = JSON.stringify(matches);
  const wanted = sql`
    select g.* from jsonb_to_recordset(${given}::jsonb) as g("ruleId" bigint, "siteId" bigint, "incidentId" uuid, kind text,
      "isDryRun" boolean, address text, "targetKey" text, target jsonb, "holdSeconds" int, attack jsonb, "needsApproval" boolean)
    where not exists (
      select 1 from hand_off_incidents j join hand_off_actions a on a.id = j.action_id
      where j.incident_id = g."incidentId" and a.rule_id = g."ruleId" and (a.stopped_by is not null or a.has_failed))`;
  await sql`
    insert into hand_off_actions (site_id, rule_id, incident_id, kind, is_dry_run, address, target_key, target, hold_seconds, attack,
      needs_approval, last_error)
    select distinct on ("ruleId", "targetKey") "siteId", "ruleId", "incidentId", kind, "isDryRun", address, "targetKey", target,
      "holdSeconds", attack, "needsApproval", case when "needsApproval" then ${waitsForApproval} end
    from (${wanted}) w order by "ruleId", "targetKey", "needsApproval", "incidentId"
    on conflict do nothing`.execute(trx);
  await sql`
    update hand_off_actions a set needs_approval = false, last_error = null from (${wanted}) w
    where a.rule_id = w."ruleId" and a.target_key = w."targetKey" and a.state = 'waiting' and a.needs_approval
      and not w."needsApproval"`.execute(trx);
  // Filters follow the attack: what is announced is read from here.
  await sql`
    update hand_off_actions a
    set attack = a.attack || jsonb_build_object('class', w.attack -> 'class', 'vectors', w.attack -> 'vectors')
    from (${wanted}) w
    where a.rule_id = w."ruleId" and a.target_key = w."targetKey" and a.kind in ('flowspec', 'filter') and a.state in ('waiting', 'active')
      and a.attack ->> 'incidentId' = w."incidentId"::text
      and (a.attack -> 'vectors' is distinct from w.attack -> 'vectors' or a.attack -> 'class'
      is distinct from w.attack -> 'class')`.execute(trx);
  const { rows } = await sql<{ incidentId: string }>`
    with joined as (
      insert into hand_off_incidents as held (action_id, incident_id)
      select a.id, w."incidentId" from (${wanted}) w
      join hand_off_actions a on a.rule_id = w."ruleId" and a.target_key = w."targetKey" and a.state in ('waiting', 'active')
      on conflict (action_id, incident_id) do update set left_at = null where held.left_at is not null
      returning action_id, incident_id),
    held_again as (
      update hand_off_actions set released_at = null
      where id in (select action_id from joined) and released_at is not null)
    select distinct j.incident_id from joined j join hand_off_actions a on a.id = j.action_id
    where a.started_at is not null and not a.is_dry_run`.execute(trx);
  return rows.map(({ incidentId }) => incidentId);
}

/** Why an action waits. */
export const waitsForApproval =
  'waits for you: no server on the node that reports the attack has this address';

/** Of operations' wire. */
const toldMax = 8;

/** What operations and customers are told that was done against these incidents: no dry run and no filter that only counts, the newest eight. */
export async function listTold(
  trx: Queryable,
  incidentIds: readonly string[],
): Promise<{ id: string; actions: IncidentAction[] }[]> {
  const { rows } = await sql<{ id: string; kind: RuleKind; atMs: number; endedAtMs: number | null }>`
    select j.incident_id as id, a.kind,
      floor(extract(epoch from case when a.kind = 'filter' then greatest(a.started_at, a.drop_at) else a.started_at end) * 1000)::float8 as at_ms,
      floor(extract(epoch from a.ended_at) * 1000)::float8 as ended_at_ms
    from hand_off_incidents j join hand_off_actions a on a.id = j.action_id
    where j.incident_id = any(${[...incidentIds]}::uuid[]) and a.started_at is not null and not a.is_dry_run
      and (a.kind <> 'filter' or a.drop_at <= least(svc_now(), coalesce(a.ended_at, 'infinity')))
    order by a.started_at, a.id`.execute(trx);
  const byIncident = Map.groupBy(rows, ({ id }) => id);
  return incidentIds.map((id) => ({
    id,
    actions: (byIncident.get(id) ?? [])
      .slice(-toldMax)
      .map(({ kind, atMs, endedAtMs }) => ({ kind: toldKinds[kind], atMs, endedAtMs })),
  }));
}

/** Those of these incidents against which a filter works: it may have begun to drop. */
export async function listFiltered(trx: Queryable, incidentIds: readonly string[]): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select distinct j.incident_id as id from hand_off_incidents j join hand_off_actions a on a.id = j.action_id
    where j.incident_id = any(${[...incidentIds]}::uuid[]) and a.kind = 'filter' and a.state = 'active' and not a.is_dry_run`.execute(
    trx,
  );
  return rows.map(({ id }) => id);
}

/** Incidents of an action. */
export async function listIncidentsOf(trx: Queryable, actionId: number): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select incident_id as id from hand_off_incidents where action_id = ${actionId} order by 1`.execute(trx);
  return rows.map(({ id }) => id);
}
