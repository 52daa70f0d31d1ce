/** Addresses of networks that orders hold until they are paid. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export async function insertHold(
  tx: Queryable,
  hold: { networkId: number; serverId: number; ip: string },
): Promise<void> {
  await sql`insert into network_holds (network_id, ip, server_id)
    values (${hold.networkId}, ${hold.ip}::inet, ${hold.serverId})`.execute(tx);
}

/** Ends a server's hold; the address that it held, or null when it held none. */
export async function takeHold(tx: Queryable, serverId: number): Promise<string | null> {
  const { rows } = await sql<{ ip: string }>`
    delete from network_holds where server_id = ${serverId} returning host(ip) as ip`.execute(tx);
  return rows[0]?.ip ?? null;
}

export async function countHolds(tx: Queryable, networkId: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from network_holds where network_id = ${networkId}`.execute(tx);
  return rows[0]!.count;
}
