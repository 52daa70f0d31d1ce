/** Every statement on the actions of servers. */
import { sql } from 'kysely';
import { type ActionCommand, actionFields, type ServerAction } from '#operations/views/server-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { MovedAddress } from './server-addresses.ts';
import type { SnapshotRequest } from './snapshots.ts';

export interface NewAction {
  serverId: number;
  command: ActionCommand;
  requestedByKey: string | null;
  requestedByPersonId: number | null;
  /** A finished one is recorded as such: the server was in the wanted state already. */
  isUnchanged?: boolean;
  /** Of a shutdown: how long the guest may take, and what comes then. */
  timeoutSeconds?: number;
  onTimeout?: 'fail' | 'stop';
  /** What the command needs to know besides. */
  request?: NewImage | NewPlan | MovedAddress | SnapshotRequest;
  /** Of a rebuild, a rescue and of `reset_password`. */
  rootPassword?: string;
}

/** What a rebuild, a rescue and `attach_iso` ask for. */
export interface NewImage {
  imageId: number;
  imageSlug: string;
}

/** What a resize asks for, at the prices of that moment. */
export interface NewPlan {
  planId: number;
  vcpus: number;
  memoryMb: number;
  /** Of the server, which may be less than the plan's. */
  diskGb: number;
  hourlyQuanta: number;
  monthlyCapQuanta: number;
}

export async function insertAction(tx: Queryable, action: NewAction): Promise<ServerAction> {
  const isDone = action.isUnchanged ?? false;
  const { rows } = await sql<ServerAction>`
    insert into server_actions (server_id, command, requested_by_key, requested_by_person_id, status, progress,
      changed, timeout_seconds, on_timeout, request, root_password, started_at, finished_at)
    values (${action.serverId}, ${action.command}, ${action.requestedByKey}, ${action.requestedByPersonId},
      ${isDone ? 'success' : 'queued'}, ${isDone ? 100 : 0}, ${!isDone},
      ${action.timeoutSeconds ?? 0}, ${action.onTimeout ?? null},
      ${action.request === undefined ? null : JSON.stringify(action.request)}::jsonb, ${action.rootPassword ?? null},
      case when ${isDone} then svc_now() end, case when ${isDone} then svc_now() end)
    returning ${sql.raw(actionFields)}`.execute(tx);
  return rows[0]!;
}

export async function findUnfinishedAction(db: Queryable, serverId: number): Promise<ServerAction | null> {
  const { rows } = await sql<ServerAction>`
    select ${sql.raw(actionFields)} from server_actions
    where server_id = ${serverId} and status in ('queued', 'running')`.execute(db);
  return rows[0] ?? null;
}

/** What an action asks of the hypervisor. */
export interface ActionRequest {
  actionId: number;
  serverId: number;
  command: ActionCommand;
  request: NewImage | NewPlan | MovedAddress | SnapshotRequest | null;
  rootPassword: string | null;
  timeoutSeconds: number;
  onTimeout: 'fail' | 'stop' | null;
}

/** Null once the action has finished. */
export async function findActionRequest(db: Queryable, actionId: number): Promise<ActionRequest | null> {
  const { rows } = await sql<ActionRequest>`
    select id as action_id, server_id, command, request, root_password, timeout_seconds, on_timeout
    from server_actions where id = ${actionId} and status in ('queued', 'running')`.execute(db);
  return rows[0] ?? null;
}

/** The password that an action sets; null for one without, and a day after it was asked for. */
export async function findActionPassword(db: Queryable, actionId: number): Promise<string | null> {
  const { rows } = await sql<{ password: string | null }>`
    select root_password as password from server_actions where id = ${actionId}`.execute(db);
  return rows[0]?.password ?? null;
}

/** Clears the passwords of finished actions a day after they were asked for: an idempotency key has expired by then. */
export async function clearActionPasswords(db: Queryable): Promise<void> {
  await sql`update server_actions set root_password = null
    where root_password is not null and created_at <= svc_now() - interval '24 hours' and finished_at is not null`.execute(
    db,
  );
}

/** True when the server was given another root password since this action. */
export async function isPasswordNewer(db: Queryable, serverId: number, actionId: number): Promise<boolean> {
  const { rows } = await sql`
    select 1 from server_actions where server_id = ${serverId} and id > ${actionId}
      and command in ('reset_password', 'rebuild') and status = 'success' limit 1`.execute(db);
  return rows.length > 0;
}

/** True when the unfinished action of a server was begun at least so long ago. */
export async function isActionOlder(db: Queryable, serverId: number, seconds: number): Promise<boolean> {
  const { rows } = await sql`
    select 1 from server_actions where server_id = ${serverId} and status in ('queued', 'running')
      and started_at + make_interval(secs => ${seconds}) <= svc_now()`.execute(db);
  return rows.length > 0;
}

/** For how many seconds the unfinished action of a server has been under way; 0 where there is none. */
export async function ageOfAction(db: Queryable, serverId: number): Promise<number> {
  const { rows } = await sql<{ seconds: number }>`
    select ceil(extract(epoch from svc_now() - started_at))::int as seconds from server_actions
    where server_id = ${serverId} and status in ('queued', 'running') and started_at is not null`.execute(db);
  return rows[0]?.seconds ?? 0;
}

/** An action by its own id, of a server of the scope, also of one that is gone by now. */
export async function findAction(
  db: Queryable,
  scope: readonly number[] | 'all',
  actionId: number,
): Promise<ServerAction | null> {
  const isOwned = scope === 'all' ? sql`true` : sql`s.tenant_id = any(${[...scope]}::bigint[])`;
  const { rows } = await sql<ServerAction>`
    select ${sql.raw(actionFields)} from server_actions where id = ${actionId}
      and exists (select 1 from servers s where s.id = server_actions.server_id and ${isOwned})`.execute(db);
  return rows[0] ?? null;
}

/** Actions of a server, newest first; only those older than `beforeId` where there is one. */
export async function listActions(
  db: Queryable,
  serverId: number,
  limit: number,
  beforeId: number | null = null,
): Promise<ServerAction[]> {
  const { rows } = await sql<ServerAction>`
    select ${sql.raw(actionFields)} from server_actions
    where server_id = ${serverId} and (${beforeId}::bigint is null or id < ${beforeId})
    order by id desc limit ${limit}`.execute(db);
  return rows;
}

export async function countActions(db: Queryable, serverId: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from server_actions where server_id = ${serverId}`.execute(db);
  return rows[0]!.count;
}

/** Marks an action as begun; false when it has finished, or another has taken its place. */
export async function beginAction(db: Queryable, actionId: number): Promise<boolean> {
  const { rows } = await sql`update server_actions set status = 'running', progress = greatest(progress, 10),
      started_at = coalesce(started_at, svc_now())
    where id = ${actionId} and status in ('queued', 'running') returning 1`.execute(db);
  return rows.length > 0;
}

/**
 * Ends an action that has not begun, or a shutdown that waits for its guest; false for every other. An address is the server's, or on
 * its way, from the request on, so the other command takes that back; a snapshot is deleted.
 */
export async function cancelAction(
  tx: Queryable,
  actionId: number,
  error: { code: string; message: string },
): Promise<boolean> {
  const { rows } = await sql`update server_actions set status = 'error', finished_at = svc_now(),
      error = ${JSON.stringify(error)}::jsonb
    where id = ${actionId} and (status = 'queued' and command not in ('create', 'destroy', 'attach_address', 'detach_address', 'create_snapshot')
      or status = 'running' and command = 'shutdown') returning 1`.execute(tx);
  return rows.length > 0;
}

export async function noteProgress(db: Queryable, serverId: number, progress: number): Promise<void> {
  await sql`update server_actions set status = 'running', progress = greatest(progress, ${progress}),
      started_at = coalesce(started_at, svc_now())
    where server_id = ${serverId} and status in ('queued', 'running')`.execute(db);
}

/** Ends the unfinished action of a server; its id, null where there is none. */
export async function finishAction(
  tx: Queryable,
  serverId: number,
  result: { outcome?: string | null; error?: { code: string; message: string } },
): Promise<number | null> {
  const { rows } = await sql<{ id: number }>`update server_actions set
      status = ${result.error ? 'error' : 'success'}, finished_at = svc_now(),
      progress = case when ${result.error !== undefined} then progress else 100 end,
      started_at = coalesce(started_at, svc_now()), outcome = ${result.outcome ?? null},
      error = ${result.error ? JSON.stringify(result.error) : null}::jsonb
    where server_id = ${serverId} and status in ('queued', 'running') returning id`.execute(tx);
  return rows[0]?.id ?? null;
}
