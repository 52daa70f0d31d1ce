/** Bodies about snapshots of servers. */
import { type Static, Type } from 'typebox';
import { Nullable } from '../scalars.ts';
import { type EndpointDeclaration, ok, page, queued } from './endpoint.ts';
import {
  Id,
  Moment,
  Money,
  Name,
  OneOf,
  Pagination,
  RequestBody,
  SelectionRequest,
  ShortListQuery,
  Titled,
} from './schema-kit.ts';
import { ActionForecast, DryRun, ServerAction } from './server-schemas.ts';

export const Snapshot = Titled('Snapshot', {
  id: Id,
  tenant_id: Id,
  server_id: Id,
  name: Type.String(),
  state: OneOf(
    ['creating', 'ready'],
    'It can be restored when it is `ready`. One that fails is not listed any more; its action says why.',
  ),
  action_id: Type.Integer({ minimum: 1, description: 'The action that takes it.' }),
  image: Type.Object({ id: Id, slug: Type.String(), name: Type.String() }),
  disk_gb: Type.Integer({ description: 'Disk of the server at that time.' }),
  size_bytes: Nullable(Type.Integer({ description: 'Bytes that it takes; null until it is complete.' })),
  created_at: Moment,
});
export type Snapshot = Static<typeof Snapshot>;

export const SnapshotList = Titled('SnapshotList', {
  snapshots: Type.Array(Snapshot),
  limits: Type.Object({ max: Type.Integer({ description: 'Maximum number of snapshots of one server.' }) }),
  pagination: Pagination,
});

export const CreateSnapshotRequest = RequestBody('CreateSnapshotRequest', {
  name: Type.Optional(Name),
  dry_run: DryRun,
});
export type CreateSnapshotRequest = Static<typeof CreateSnapshotRequest>;

/** What taking one with `dry_run` is answered. */
export const SnapshotForecast = Titled('SnapshotForecast', {
  server_id: Id,
  disk_gb: Type.Integer({ description: 'Disk of the server.' }),
  price_per_gb_month: Money,
  price_monthly_max: Type.String({
    ...Money,
    description: 'Decimal text; what it costs in 730 hours if the disk is full.',
  }),
  currency: Type.String(),
});
export type SnapshotForecast = Static<typeof SnapshotForecast>;

export const RestoreSnapshotRequest = RequestBody('RestoreSnapshotRequest', { dry_run: DryRun });
export type RestoreSnapshotRequest = Static<typeof RestoreSnapshotRequest>;

const onSnapshot = { id: 'snapshot' } as const;
const actionErrors = ['unsupported_action', 'server_busy', 'server_not_ready'];

/** Copies of the disks of servers. */
export const snapshotEndpoints = [
  {
    id: 'listSnapshots',
    call: 'GET /snapshots',
    summary: 'List snapshots',
    description: 'The snapshots of all servers of the workspace, oldest first.',
    query: ShortListQuery,
    responses: page(SnapshotList, 'The snapshots.'),
  },
  {
    id: 'listServerSnapshots',
    call: 'GET /servers/{id}/snapshots',
    summary: 'List snapshots of a server',
    description: 'The snapshots of the server, oldest first.',
    params: { id: 'server' },
    query: ShortListQuery,
    responses: page(SnapshotList, 'The snapshots.'),
  },
  {
    id: 'createSnapshot',
    call: 'POST /servers/{id}/snapshots',
    summary: 'Take a snapshot',
    description:
      'Copies the disk of the server, running or stopped, as it is at the beginning of the action. A running server goes on: what its operating system has not written to the disk yet is missing, as after a power failure; stop the server first to be sure. Other actions are refused until the copy is complete. What it takes is charged by the hour, at the price that `GET /prices` has; unless they cost nothing, that needs credit above zero. Snapshots are deleted with their server. `If-Match` takes the tag of the server.',
    params: { id: 'server' },
    body: CreateSnapshotRequest,
    isBodyOptional: true,
    headers: ['Idempotency-Key', 'If-Match'],
    responses: {
      200: { description: 'The forecast, with `dry_run`.', schema: SnapshotForecast },
      202: {
        description: 'The snapshot, in the state `creating`. Wait for its action, or for `snapshot.created`.',
        schema: Snapshot,
        headers: ['Location', 'Idempotent-Replayed'],
      },
    },
    errors: [...actionErrors, 'limit_exceeded', 'credit_required'],
  },
  {
    id: 'readSnapshot',
    call: 'GET /snapshots/{id}',
    summary: 'Read a snapshot',
    description: 'One snapshot of a server of the workspace.',
    params: onSnapshot,
    responses: ok(Snapshot, 'The snapshot.'),
  },
  {
    id: 'restoreSnapshot',
    call: 'POST /snapshots/{id}/restore',
    summary: 'Restore a snapshot',
    description:
      'Gives the server of the snapshot the disk that it had, with its passwords and keys. Everything written since is lost, unless it is in another snapshot. A running server is switched off and started again. Addresses, private networks, firewall, plan and price stay; the disk keeps its present size. `If-Match` takes the tag of the server.',
    params: onSnapshot,
    body: RestoreSnapshotRequest,
    isBodyOptional: true,
    headers: ['Idempotency-Key', 'If-Match'],
    destroys: true,
    responses: {
      200: { description: 'The forecast, with `dry_run`.', schema: ActionForecast },
      ...queued(ServerAction),
    },
    errors: actionErrors,
  },
  {
    id: 'deleteSnapshot',
    call: 'DELETE /snapshots/{id}',
    summary: 'Delete a snapshot',
    description:
      'The snapshot can’t be restored any more. A server that was restored or made from it keeps its disk.',
    params: onSnapshot,
    body: SelectionRequest,
    destroys: true,
    responses: { 204: { description: 'Deleted.' } },
    errors: ['server_busy'],
  },
] as const satisfies readonly EndpointDeclaration[];
