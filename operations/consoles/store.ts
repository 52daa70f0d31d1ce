import { sql } from 'kysely';
import type { ConsoleKind } from '#contracts/capabilities.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface Ticket {
  serverId: number;
  personId: number;
  /** One of them is null. */
  sessionId: string | null;
  keyId: string | null;
  /** Null in tickets of earlier programs. */
  kind: ConsoleKind | null;
}

/** Keeps a ticket for a minute; returns when it expires. Forgets those that have expired. */
export async function insertTicket(tx: Queryable, digest: Buffer, ticket: Ticket): Promise<Date> {
  await sql`delete from console_tickets where expires_at <= svc_now()`.execute(tx);
  const { rows } = await sql<{ expiresAt: Date }>`
    insert into console_tickets (digest, server_id, person_id, session_id, key_id, kind, expires_at)
    values (${digest}, ${ticket.serverId}, ${ticket.personId}, ${ticket.sessionId}, ${ticket.keyId}, ${ticket.kind},
      svc_now() + interval '60 seconds')
    returning expires_at`.execute(tx);
  return rows[0]!.expiresAt;
}

/** The ticket, for one caller alone: of several at once, one deletes the row. */
export async function takeTicket(db: Queryable, digest: Buffer): Promise<Ticket | null> {
  const { rows } = await sql<Ticket & { isValid: boolean }>`
    delete from console_tickets where digest = ${digest}
    returning server_id, person_id, session_id, key_id, kind, expires_at > svc_now() as is_valid`.execute(db);
  const [found] = rows;
  if (!found?.isValid) return null;
  const { isValid: _, ...ticket } = found;
  return ticket;
}
