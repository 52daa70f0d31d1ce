/** Snapshots of a server, on its Settings tab. */
import { monthlyMaxQuanta } from '#operations/servers/index.ts';
import type { Server } from '#operations/views/server-store.ts';
import type { Snapshot } from '#operations/views/snapshot-store.ts';
import {
  actionsColumn,
  askButton,
  badge,
  type Content,
  cellColumn,
  confirm,
  field,
  form,
  formatBytes,
  formatMoney,
  formatTime,
  link,
  section,
  table,
} from '#service-kit/pages/index.ts';
import type { Visitor } from '../guard.ts';
import { deployFromPath } from './deploy.routes.ts';

/** What a refused form held, and why. */
export interface SnapshotState {
  form: 'create' | 'restore' | 'delete';
  error: string;
  name?: string;
  snapshot?: string;
}

function priceOf(gbQuanta: number, diskGb: number): string {
  if (gbQuanta === 0) return 'they cost nothing';
  const most = formatMoney(monthlyMaxQuanta(diskGb, gbQuanta));
  return `each costs ${formatMoney(gbQuanta)} a month for each GB that it takes, at most ${most} for this disk`;
}

export function snapshotSection({
  visitor,
  server,
  snapshots,
  snapshotsMax,
  snapshotGbQuanta,
  snapshot: state,
}: {
  visitor: Visitor;
  server: Server;
  snapshots: readonly Snapshot[];
  snapshotsMax: number;
  /** Price of 10^9 bytes for a month. */
  snapshotGbQuanta: number;
  snapshot?: SnapshotState | undefined;
}): Content {
  const { csrfToken } = visitor;
  const path = `/client/servers/${server.id}/snapshots`;
  const ready = snapshots.filter((one) => one.state === 'ready');
  const errorOf = (name: SnapshotState['form']) => (state?.form === name ? state.error : undefined);
  const description = `Copies of the disk, at most ${snapshotsMax}; ${priceOf(snapshotGbQuanta, server.diskGb)}. They are deleted with the server. Stop the server first to be sure that its operating system has written everything.`;
  return section({ title: 'Snapshots', id: 'snapshots', description }, [
    table<Snapshot>({
      caption: 'Snapshots of this server',
      card: { line: ['state', 'size', 'created'] },
      columns: [
        cellColumn('name', 'Name', (one) => one.name),
        cellColumn('state', 'State', (one) => badge(one.state === 'ready' ? 'good' : 'info', one.state)),
        cellColumn('image', 'Image', (one) => one.imageName),
        {
          key: 'size',
          header: 'Size',
          kind: 'figure',
          cell: (one) => (one.sizeBytes === null ? '' : formatBytes(one.sizeBytes)),
        },
        cellColumn('created', 'Taken', (one) => formatTime(one.createdAt.getTime(), 'minutes')),
        actionsColumn(
          'actions',
          (one) =>
            one.state === 'ready' && [
              link(deployFromPath(one), 'Deploy', { kind: 'button' }),
              askButton(
                {
                  ...{ id: `delete-snapshot-${one.id}`, label: 'Delete', title: `Delete ${one.name}?` },
                  ...{ openKind: 'button' as const, csrfToken, fields: { snapshot: one.id } },
                  action: `${path}/delete`,
                },
                'It can’t be restored any more. The disk of the server stays as it is.',
              ),
            ],
        ),
      ],
      rows: snapshots,
      empty: { title: 'No snapshots yet', text: 'Take one before you change much.' },
    }),
    form(
      {
        action: path,
        csrfToken,
        submit: 'Take a snapshot',
        submitKind: 'button',
        error: errorOf('create') ?? errorOf('delete'),
      },
      field({
        name: 'name',
        id: 'snapshot-name',
        label: 'Name',
        hint: 'Leave blank for a number.',
        maxLength: 64,
        value: state?.name,
      }),
    ),
    ready.length > 0 &&
      confirm({
        ...{ action: `${path}/restore`, csrfToken, name: server.name, submit: 'Restore snapshot' },
        consequence:
          'Everything written to the disk since is lost. A running server is switched off and started again; its passwords and keys are those of the snapshot.',
        content: field({
          kind: 'select',
          name: 'snapshot',
          label: 'Snapshot',
          required: true,
          value: state?.snapshot ?? String(ready.at(-1)!.id),
          options: ready.map(({ id, name, createdAt }) => ({
            value: String(id),
            label: `${name}, ${formatTime(createdAt.getTime(), 'minutes')}`,
          })),
        }),
        error: errorOf('restore'),
      }),
  ]);
}
