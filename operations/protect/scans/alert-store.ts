/** Mails about newly open ports that wait to be sent (`alert-mails`). */
import { sql } from 'kysely';
import { mailableMembers } from '#operations/views/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** A mail about a scan for each member who may be mailed. */
export async function queueMails(tx: Queryable, scanId: string, serverId: number): Promise<void> {
  await sql`
    insert into port_mails (scan_id, person_id)
    select ${scanId}::uuid, reader.id from (${mailableMembers(serverId)}) reader
    on conflict do nothing`.execute(tx);
}
