/** What a mail about newly open ports says, and to whom. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { isMailable } from './attack-mail-store.ts';

export interface DuePortMail {
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
  address: string;
  finishedAt: Date;
  /** The first of them. */
  opened: { transport: string; port: number; service: string | null; product: string | null }[];
  openedCount: number;
  nowMs: number;
}

/** A mail that is due, with what its reader is told; null when it is sent or not due. */
export async function findDuePortMail(db: Queryable, mailId: number): Promise<DuePortMail | null> {
  const { rows } = await sql<DuePortMail>`
    select m.public_id as "publicId", m.attempts, m.created_at as "createdAt", p.email, p.name as "personName",
      ${isMailable} and exists (select 1 from memberships b
          where b.organization_id = t.organization_id and b.person_id = p.id)
        and coalesce(c.views_on and c.port_mail, false) as "isWanted",
      s.id as "serverId", s.name as "serverName", o.name as "organizationName", i.address,
      i.finished_at as "finishedAt", i.opened, i.opened_count as "openedCount",
      (extract(epoch from svc_now()) * 1000)::float8 as "nowMs"
    from port_mails m join port_scans i on i.scan_id = m.scan_id
      join servers s on s.id = i.server_id join tenants t on t.id = s.tenant_id
      join organizations o on o.id = t.organization_id join people p on p.id = m.person_id
      left join protect_settings c on c.server_id = s.id
    where m.id = ${mailId} and m.status = 'pending' and m.next_attempt_at <= svc_now()`.execute(db);
  return rows[0] ?? null;
}
