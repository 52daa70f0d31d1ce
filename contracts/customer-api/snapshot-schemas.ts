/** Bodies about snapshots of servers. */
import { type Static, Type } from 'typebox';
import { Nullable } from '../scalars.ts';
import { Id, Moment, Name, OneOf, Pagination, TenantSelector } from './schema-kit.ts';
import { DryRun } from './server-schemas.ts';

export const Snapshot = Type.Object(
  {
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
  },
  { title: 'Snapshot' },
);
export type Snapshot = Static<typeof Snapshot>;

export const SnapshotList = Type.Object(
  {
    snapshots: Type.Array(Snapshot),
    limits: Type.Object({ max: Type.Integer({ description: 'Maximum number of snapshots of one server.' }) }),
    pagination: Pagination,
  },
  { title: 'SnapshotList' },
);

export const CreateSnapshotRequest = Type.Object(
  { name: Type.Optional(Name), tenant: Type.Optional(TenantSelector) },
  { title: 'CreateSnapshotRequest', additionalProperties: false },
);
export type CreateSnapshotRequest = Static<typeof CreateSnapshotRequest>;

export const RestoreSnapshotRequest = Type.Object(
  { dry_run: DryRun, tenant: Type.Optional(TenantSelector) },
  { title: 'RestoreSnapshotRequest', additionalProperties: false },
);
export type RestoreSnapshotRequest = Static<typeof RestoreSnapshotRequest>;
