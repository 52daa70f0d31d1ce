/** Rules of hand-off, and the limit of each site. */
import { sql } from 'kysely';
import { CodedError } from '#common/errors/index.ts';
import { isUniqueViolation, type Queryable } from '#service-kit/postgres/index.ts';
import type { SecretColumn } from '#service-kit/secrets/index.ts';
import { addressesMaxDefault, type Rule, type RuleMode, type RuleSettings } from './rule.ts';

/** Signs the deliveries of a webhook; other kinds have none. */
export const ruleSecret: SecretColumn = {
  table: 'hand_off_rules',
  key: 'id',
  sealed: 'sealed_secret',
  clear: 'clear_secret',
};

const columns = sql`r.id, r.site_id, r.name, r.kind, r.mode, r.prefixes, r.direction, r.min_pps, r.min_bps,
  r.hold_seconds, r.target, r.revision, (extract(epoch from r.changed_at) * 1000)::float8 as changed_at_ms,
  r.changed_by`;

/** A rule, and how many of its actions are not ended. */
export interface ListedRule extends Rule {
  openActions: number;
}

export async function listRules(db: Queryable, siteId: number): Promise<ListedRule[]> {
  const { rows } = await sql<ListedRule>`
    select ${columns}, (select count(*)::int from hand_off_actions a where a.rule_id = r.id and a.ended_at is null) as open_actions
    from hand_off_rules r where r.site_id = ${siteId} and r.removed_at is null
    order by lower(r.name), r.id`.execute(db);
  return rows;
}

export async function findRule(db: Queryable, siteId: number, id: number): Promise<Rule | null> {
  const { rows } = await sql<Rule>`
    select ${columns} from hand_off_rules r
    where r.site_id = ${siteId} and r.id = ${id} and r.removed_at is null`.execute(db);
  return rows[0] ?? null;
}

/** Rules of these sites that act, or say what they would do. */
export async function listWatching(db: Queryable, siteIds: readonly number[]): Promise<Rule[]> {
  const { rows } = await sql<Rule>`
    select ${columns} from hand_off_rules r
    where r.site_id = any(${[...siteIds]}::bigint[]) and r.mode <> 'off'
      and r.removed_at is null order by r.id`.execute(db);
  return rows;
}

/** A rule that acts, and its actions that fail. */
export interface FailingRule {
  id: number;
  siteId: number;
  name: string;
  /** Actions that are tried again or wait for room, and those that failed in the last hour. */
  failing: number;
  /** Of the newest of them. */
  lastError: string | null;
}

/** Every rule that acts; one whose actions go well has none that fails. */
export async function listFailing(db: Queryable): Promise<FailingRule[]> {
  const { rows } = await sql<FailingRule>`
    select r.id, r.site_id, r.name, count(a.id)::int as failing,
      (array_agg(a.last_error order by a.id desc) filter (where a.last_error is not null))[1] as last_error
    from hand_off_rules r left join hand_off_actions a on a.rule_id = r.id and not a.is_dry_run and not a.needs_approval
      and (a.ended_at is null and a.last_error is not null or a.state = 'failed' and a.ended_at > svc_now() - interval '1 hour')
    where r.mode = 'on' and r.removed_at is null group by r.id order by r.id`.execute(db);
  return rows;
}

/** Also of a removed rule, because its actions have to end. */
export async function readSealedSecret(db: Queryable, id: number): Promise<Buffer | null> {
  const { rows } = await sql<{ sealedSecret: Buffer | null }>`
    select sealed_secret from hand_off_rules where id = ${id}`.execute(db);
  return rows[0]?.sealedSecret ?? null;
}

/** Id for a new rule, reserved because its secret is sealed for this row. */
export async function nextRuleId(trx: Queryable): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    select nextval(pg_get_serial_sequence('hand_off_rules', 'id')) as id`.execute(trx);
  return rows[0]!.id;
}

/** A new rule is off. */
export async function insertRule(
  trx: Queryable,
  siteId: number,
  rule: RuleSettings & { id: number; sealedSecret: Buffer | null },
  by: string,
): Promise<void> {
  await namedOnce(rule.name, () =>
    sql`
    insert into hand_off_rules (id, site_id, name, kind, mode, prefixes, direction, min_pps, min_bps, hold_seconds, target,
      sealed_secret, changed_by)
    overriding system value values (${rule.id}, ${siteId}, ${rule.name}, ${rule.kind}, 'off', ${rule.prefixes}, ${rule.direction},
      ${rule.minPps}, ${rule.minBps}, ${rule.holdSeconds}, ${JSON.stringify(rule.target)}, ${rule.sealedSecret}, ${by})`.execute(
      trx,
    ),
  );
}

/** Its kind and its secret stay as they are. */
export async function updateRule(trx: Queryable, id: number, rule: RuleSettings, by: string): Promise<void> {
  await namedOnce(rule.name, () =>
    sql`
    update hand_off_rules set name = ${rule.name}, prefixes = ${rule.prefixes}, direction = ${rule.direction},
      min_pps = ${rule.minPps}, min_bps = ${rule.minBps}, hold_seconds = ${rule.holdSeconds},
      target = ${JSON.stringify(rule.target)}, revision = nextval('hand_off_revisions'), changed_at = svc_now(),
      changed_by = ${by}
    where id = ${id}`.execute(trx),
  );
}

async function namedOnce<Result>(name: string, write: () => Promise<Result>): Promise<Result> {
  try {
    return await write();
  } catch (error) {
    if (!isUniqueViolation(error, 'hand_off_rules_name')) throw error;
    const message = `This site already has a rule named "${name}". Choose another name.`;
    throw new CodedError('hand_off.invalid', message, { fields: { name: message } });
  }
}

export async function setMode(trx: Queryable, id: number, mode: RuleMode, by: string): Promise<void> {
  await sql`
    update hand_off_rules set mode = ${mode}, revision = nextval('hand_off_revisions'), changed_at = svc_now(), changed_by = ${by}
    where id = ${id}`.execute(trx);
}

export async function removeRule(trx: Queryable, id: number, by: string): Promise<void> {
  await sql`
    update hand_off_rules set removed_at = svc_now(), mode = 'off', changed_at = svc_now(), changed_by = ${by}
    where id = ${id}`.execute(trx);
}

/** How many addresses of a site may have an action at once. */
export interface SiteLimit {
  addressesMax: number;
  /** 0: the default. */
  revision: number;
}

export async function readLimit(db: Queryable, siteId: number): Promise<SiteLimit> {
  const { rows } = await sql<SiteLimit>`
    select addresses_max, revision from hand_off_sites
    where site_id = ${siteId}`.execute(db);
  return rows[0] ?? { addressesMax: addressesMaxDefault, revision: 0 };
}

export async function writeLimit(trx: Queryable, siteId: number, addressesMax: number, by: string) {
  await sql`
    insert into hand_off_sites (site_id, addresses_max, changed_by) values (${siteId}, ${addressesMax}, ${by})
    on conflict (site_id) do update set addresses_max = excluded.addresses_max, revision = excluded.revision,
      changed_at = svc_now(), changed_by = excluded.changed_by`.execute(trx);
}
