/** Statements on servers' network interfaces. Constraints of the table decide between concurrent callers. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { AttachmentState } from './network.ts';

export {
  findNic,
  findNicOf,
  hasServer,
  listAttachments,
  listNetworkMembers as listMembers,
  listNicsOf,
  type Nic,
} from '#operations/views/index.ts';

/** Those of servers, and those that orders hold until they are paid. */
export async function listTakenAddresses(tx: Queryable, networkId: number): Promise<string[]> {
  const { rows } = await sql<{ ip: string }>`
    select host(ip) as ip from network_attachments where network_id = ${networkId}
    union select host(ip) from network_holds where network_id = ${networkId}`.execute(tx);
  return rows.map((row) => row.ip);
}

/** The state of a network interface with its row locked; null when it is gone. */
export async function lockNicState(tx: Queryable, id: number): Promise<AttachmentState | null> {
  const { rows } = await sql<{ state: AttachmentState }>`
    select state from network_attachments where id = ${id} for update`.execute(tx);
  return rows[0]?.state ?? null;
}

/** A fresh id, drawn before the row exists, because the MAC is made from it. */
export async function nextAttachmentId(tx: Queryable): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    select nextval(pg_get_serial_sequence('network_attachments', 'id')) as id`.execute(tx);
  return rows[0]!.id;
}

export async function insertAttachment(
  tx: Queryable,
  nic: { id: number; networkId: number; serverId: number; ip: string; macAddress: string },
): Promise<void> {
  await sql`insert into network_attachments (id, network_id, server_id, ip, mac_address)
    overriding system value
    values (${nic.id}, ${nic.networkId}, ${nic.serverId}, ${nic.ip}::inet, ${nic.macAddress})`.execute(tx);
}

export async function setNicState(
  tx: Queryable,
  id: number,
  change: { state: AttachmentState; error?: { code: string; message: string }; requiresReboot?: boolean },
): Promise<void> {
  await sql`update network_attachments set state = ${change.state},
      error = ${change.error ? JSON.stringify(change.error) : null}::jsonb,
      requires_reboot = coalesce(${change.requiresReboot ?? null}, requires_reboot),
      attached_at = case when ${change.state} = 'attached' then coalesce(attached_at, svc_now()) else attached_at end
    where id = ${id}`.execute(tx);
}

/** Marks all network interfaces of a server for removal. */
export async function detachAll(tx: Queryable, serverId: number): Promise<void> {
  await sql`update network_attachments set state = 'detaching', error = null where server_id = ${serverId}`.execute(
    tx,
  );
}

/** Returns whether it had ever been attached. */
export async function deleteNic(tx: Queryable, id: number): Promise<boolean> {
  const { rows } = await sql<{ wasAttached: boolean }>`
    delete from network_attachments where id = ${id} returning attached_at is not null as "wasAttached"`.execute(
    tx,
  );
  return rows[0]?.wasAttached ?? false;
}

export async function deleteNicsOf(tx: Queryable, serverId: number): Promise<void> {
  await sql`delete from network_attachments where server_id = ${serverId}`.execute(tx);
}

/** The guest was created with its network interfaces. */
export async function markAttached(tx: Queryable, serverId: number): Promise<void> {
  await sql`update network_attachments set state = 'attached', error = null, attached_at = svc_now()
    where server_id = ${serverId} and state = 'attaching'`.execute(tx);
}
