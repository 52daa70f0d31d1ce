/** Who is mailed about an attack on a server, and what a mail says. */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** People who may be mailed: active, at an address that they have proved. */
export const isMailable = sql`p.deactivated_at is null and p.email_verified_at is not null`;

/** The members of the organization of a server who may be mailed, as a query of their ids. */
export const mailableMembers = (serverId: number): RawBuilder<unknown> => sql`
  select p.id from servers s join tenants t on t.id = s.tenant_id
    join memberships m on m.organization_id = t.organization_id join people p on p.id = m.person_id
  where s.id = ${serverId} and ${isMailable}`;

export interface DueAttackMail {
  publicId: string;
  moment: 'started' | 'ended';
  attempts: number;
  createdAt: Date;
  email: string;
  personName: string;
  /** False when the reader has left, or the customer has switched these mails off since. */
  isWanted: boolean;
  incidentId: string;
  serverId: number;
  serverName: string;
  organizationName: string;
  address: string;
  direction: 'inbound' | 'outbound';
  class: string;
  isDrill: boolean;
  startedAt: Date;
  recoveredAt: Date | null;
  peakBps: number;
  peakPps: number;
  nowMs: number;
}

/** A mail that is due, with what its reader is told; null when it is sent or not due. */
export async function findDueMail(db: Queryable, mailId: number): Promise<DueAttackMail | null> {
  const { rows } = await sql<DueAttackMail>`
    select a.public_id as "publicId", a.moment, a.attempts, a.created_at as "createdAt", p.email, p.name as "personName",
      ${isMailable} and exists (select 1 from memberships m
          where m.organization_id = t.organization_id and m.person_id = p.id)
        and coalesce(c.views_on and c.attack_mail, true) as "isWanted",
      i.incident_id as "incidentId", s.id as "serverId", s.name as "serverName", o.name as "organizationName", i.address,
      i.direction, i.class, i.is_drill as "isDrill", i.started_at as "startedAt", i.recovered_at as "recoveredAt", i.peak_bps as "peakBps",
      i.peak_pps as "peakPps", (extract(epoch from svc_now()) * 1000)::float8 as "nowMs"
    from attack_mails a join protect_incidents i on i.incident_id = a.incident_id
      join servers s on s.id = i.server_id join tenants t on t.id = s.tenant_id
      join organizations o on o.id = t.organization_id join people p on p.id = a.person_id
      left join protect_settings c on c.server_id = s.id
    where a.id = ${mailId} and a.status = 'pending' and a.next_attempt_at <= svc_now()`.execute(db);
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
