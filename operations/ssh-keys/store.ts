/** Every statement on SSH keys. Each names the workspace: a key of another one is not there. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface SshKey {
  id: number;
  tenantId: number;
  name: string;
  publicKey: string;
  fingerprint: string;
  createdAt: Date;
  updatedAt: Date;
}

const columns = sql`id, tenant_id, name, public_key, fingerprint, created_at,
  updated_at`;

/** By name. */
export async function listKeys(db: Queryable, tenantId: number): Promise<SshKey[]> {
  const { rows } = await sql<SshKey>`
    select ${columns} from ssh_keys where tenant_id = ${tenantId} order by lower(name), id`.execute(db);
  return rows;
}

export async function findKey(db: Queryable, tenantId: number, id: number): Promise<SshKey | null> {
  const { rows } = await sql<SshKey>`
    select ${columns} from ssh_keys where tenant_id = ${tenantId} and id = ${id}`.execute(db);
  return rows[0] ?? null;
}

/** The same with its row locked until the transaction ends. */
export async function lockKey(tx: Queryable, tenantId: number, id: number): Promise<SshKey | null> {
  const { rows } = await sql<SshKey>`
    select ${columns} from ssh_keys where tenant_id = ${tenantId} and id = ${id} for update`.execute(tx);
  return rows[0] ?? null;
}

/** The keys of the workspace, locked against two additions beside each other, so that the limit holds. */
export async function lockKeys(tx: Queryable, tenantId: number): Promise<SshKey[]> {
  await sql`select pg_advisory_xact_lock(hashtextextended('ssh_keys', ${tenantId}::bigint))`.execute(tx);
  return listKeys(tx, tenantId);
}

export async function insertKey(
  tx: Queryable,
  key: Pick<SshKey, 'tenantId' | 'name' | 'publicKey' | 'fingerprint'>,
): Promise<SshKey> {
  const { rows } = await sql<SshKey>`
    insert into ssh_keys (tenant_id, name, public_key, fingerprint)
    values (${key.tenantId}, ${key.name}, ${key.publicKey}, ${key.fingerprint}) returning ${columns}`.execute(
    tx,
  );
  return rows[0]!;
}

export async function renameKey(tx: Queryable, tenantId: number, id: number, name: string): Promise<SshKey> {
  const { rows } = await sql<SshKey>`
    update ssh_keys set name = ${name}, updated_at = svc_now()
    where tenant_id = ${tenantId} and id = ${id} returning ${columns}`.execute(tx);
  return rows[0]!;
}

export async function deleteKey(tx: Queryable, tenantId: number, id: number): Promise<void> {
  await sql`delete from ssh_keys where tenant_id = ${tenantId} and id = ${id}`.execute(tx);
}
