/** Who is mailed about a server, and what a mail about an attack or about newly open ports says. */
import { type RawBuilder, sql } from 'kysely';
import { mailedSeverities } from '#contracts/findings.ts';
import type { AttackDirection } from '#contracts/incidents.ts';
import type { ScanTransport } from '#contracts/port-scan/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** People who may be mailed: active, at an address that they have proved. */
const isMailable = sql`p.deactivated_at is null and p.email_verified_at is not null`;

/** The members of the organization of a server who may be mailed, as a query of their ids. */
export const mailableMembers = (serverId: number): RawBuilder<unknown> => sql`
  select p.id from servers s join tenants t on t.id = s.tenant_id
    join memberships m on m.organization_id = t.organization_id join people p on p.id = m.person_id
  where s.id = ${serverId} and ${isMailable}`;

/** The members of an account's organization who may be mailed. */
export async function listMailable(
  db: Queryable,
  tenantId: number,
): Promise<{ personId: number; email: string }[]> {
  const { rows } = await sql<{ personId: number; email: string }>`
    select p.id as person_id, p.email from tenants t join memberships m on m.organization_id = t.organization_id
      join people p on p.id = m.person_id
    where t.id = ${tenantId} and ${isMailable} order by p.id`.execute(db);
  return rows;
}

/** What every mail about a server has. */
export interface DueAlertMail {
  publicId: string;
  attempts: number;
  createdAt: Date;
  email: string;
  personName: string;
  /** False when the reader has left, or the customer has switched these mails off since. */
  isWanted: boolean;
  serverId: number;
  serverName: string;
  organizationName: string;
  nowMs: number;
}

/** Columns of `DueAlertMail`, of the mail `m`; `isOn`: the customer wants such mails, by the settings `c`. */
const dueColumns = (isOn: RawBuilder<unknown>) => sql`
  m.public_id, m.attempts, m.created_at, p.email, p.name as person_name,
  ${isMailable} and exists (select 1 from memberships b
      where b.organization_id = t.organization_id and b.person_id = p.id) and ${isOn} as is_wanted, s.id as server_id,
  s.name as server_name, o.name as organization_name,
  (extract(epoch from svc_now()) * 1000)::float8 as now_ms`;

/** After the mail `m` and what it is about, `i`. */
const dueJoins = sql`
  join servers s on s.id = i.server_id join tenants t on t.id = s.tenant_id
  join organizations o on o.id = t.organization_id join people p on p.id = m.person_id
  left join protect_settings c on c.server_id = s.id`;

const isDue = (mailId: number) =>
  sql`m.id = ${mailId} and m.status = 'pending' and m.next_attempt_at <= svc_now()`;

export interface DueAttackMail extends DueAlertMail {
  moment: 'started' | 'ended';
  incidentId: string;
  address: string;
  direction: AttackDirection;
  class: string;
  isDrill: boolean;
  startedAt: Date;
  recoveredAt: Date | null;
  peakBps: number;
  peakPps: number;
}

/** A mail that is due, with what its reader is told; null when it is sent or not due. */
export async function findDueAttackMail(db: Queryable, mailId: number): Promise<DueAttackMail | null> {
  const { rows } = await sql<DueAttackMail>`
    select ${dueColumns(sql`coalesce(c.views_on and c.attack_mail, true)`)}, m.moment, i.incident_id, i.address,
      i.direction, i.class, i.is_drill, i.started_at, i.recovered_at, i.peak_bps, i.peak_pps
    from attack_mails m join protect_incidents i on i.incident_id = m.incident_id ${dueJoins}
    where ${isDue(mailId)}`.execute(db);
  return rows[0] ?? null;
}

export interface DuePortMail extends DueAlertMail {
  address: string;
  finishedAt: Date;
  /** The first of them. */
  opened: { transport: string; port: number; service: string | null; product: string | null }[];
  openedCount: number;
}

/** As `findDueAttackMail`, about newly open ports. */
export async function findDuePortMail(db: Queryable, mailId: number): Promise<DuePortMail | null> {
  const { rows } = await sql<DuePortMail>`
    select ${dueColumns(sql`coalesce(c.views_on and c.port_mail, false)`)}, i.address, i.finished_at, i.opened,
      i.opened_count
    from port_mails m join port_scans i on i.scan_id = m.scan_id ${dueJoins}
    where ${isDue(mailId)}`.execute(db);
  return rows[0] ?? null;
}

/** A line of a mail about potential vulnerabilities. */
export interface ListedInMail {
  cveId: string;
  severity: string | null;
  score: number | null;
  transport: ScanTransport;
  port: number;
  product: string | null;
  version: string | null;
  isKnownExploited: boolean;
}

export interface DueFindingMail extends DueAlertMail {
  address: string;
  checkedAt: Date;
  /** The first of them. */
  listed: ListedInMail[];
  total: number;
}

const severities = sql`${[...mailedSeverities]}::text[]`;

/** As `findDueAttackMail`, about potential vulnerabilities. */
export async function findDueFindingMail(db: Queryable, mailId: number): Promise<DueFindingMail | null> {
  // Wanted while the most severe one reaches what the customer chose.
  const { rows } = await sql<DueFindingMail>`
    select ${dueColumns(sql`coalesce(c.views_on and c.finding_mail <> 'off'
        and array_position(${severities}, i.severity) >= array_position(${severities}, c.finding_mail), false)`)},
      i.address, i.checked_at, i.listed, i.total
    from finding_mails m join finding_notices i on i.id = m.notice_id ${dueJoins}
    where ${isDue(mailId)}`.execute(db);
  return rows[0] ?? null;
}

/** Whether an enabled webhook endpoint of the server's organization chose this event. */
export async function hasSubscriber(db: Queryable, serverId: number, type: string): Promise<boolean> {
  const { rows } = await sql<{ exists: boolean }>`
    select exists (select 1 from servers s join tenants t on t.id = s.tenant_id
      join webhook_endpoints e on e.organization_id = t.organization_id
        and (e.tenant_id is null or e.tenant_id = t.id)
      where s.id = ${serverId} and ${type} = any(e.event_types) and e.disabled_at is null) as exists`.execute(
    db,
  );
  return rows[0]!.exists;
}
