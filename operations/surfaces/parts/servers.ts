import type { Server, ServerAction, ServerStatus } from '#operations/views/server-store.ts';
import {
  badge,
  type Content,
  cellColumn,
  code,
  type Html,
  moment,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';

/** Commands in words: what was asked, and what goes on meanwhile. */
export const actionWords: Record<ServerAction['command'], { name: string; going: string }> = {
  create: { name: 'Deploy', going: 'Being deployed' },
  start: { name: 'Start', going: 'Starting' },
  shutdown: { name: 'Shut down', going: 'Waiting for the operating system to shut down' },
  stop: { name: 'Power off', going: 'Switching off' },
  reboot: { name: 'Reboot', going: 'Rebooting' },
  reset: { name: 'Reset', going: 'Resetting' },
  rebuild: { name: 'Rebuild', going: 'Being rebuilt' },
  resize: { name: 'Resize', going: 'Being resized' },
  reset_password: { name: 'New root password', going: 'Setting a new root password' },
  attach_address: { name: 'Attach an address', going: 'Attaching an address' },
  detach_address: { name: 'Detach an address', going: 'Detaching an address' },
  create_snapshot: { name: 'Take a snapshot', going: 'Taking a snapshot' },
  restore_snapshot: { name: 'Restore a snapshot', going: 'Restoring a snapshot' },
  rescue: { name: 'Rescue', going: 'Starting the rescue system' },
  unrescue: { name: 'End the rescue', going: 'Starting from its own disk' },
  attach_iso: { name: 'Attach an ISO', going: 'Attaching an ISO' },
  detach_iso: { name: 'Detach the ISO', going: 'Detaching the ISO' },
  destroy: { name: 'Destroy', going: 'Being destroyed' },
};

/** What a server starts from in place of its disk, or before it; nothing for most. */
export function bootFacts({ isRescued, iso }: Server): { term: string; value: Content }[] {
  return [
    ...(isRescued ? [{ term: 'Starts from', value: badge('warn', 'a rescue system') }] : []),
    ...(iso === null ? [] : [{ term: 'CD drive', value: iso.name }]),
  ];
}

const actionTones: Record<ServerAction['status'], Tone> = {
  queued: 'info',
  running: 'info',
  success: 'good',
  error: 'bad',
};

/** What was asked of a server, newest first; `withIds` for those who look for one in a log. */
export function serverActionsTable(
  { actions, nowMs }: { actions: readonly ServerAction[]; nowMs: number },
  options: { withIds?: boolean; emptyText: string },
): Html {
  return table<ServerAction>({
    caption: 'Activity',
    card: { line: ['status', 'outcome', 'asked'] },
    columns: [
      cellColumn('command', 'Action', (action) =>
        options.withIds
          ? `${actionWords[action.command].name} #${action.id}`
          : actionWords[action.command].name,
      ),
      cellColumn('status', 'Status', (action) => badge(actionTones[action.status], action.status)),
      { key: 'outcome', header: 'Result', kind: 'prose', cell: outcomeOf },
      cellColumn('by', 'By', ({ requestedByKey, requestedByPerson }) =>
        requestedByKey ? ['key ', code(requestedByKey)] : (requestedByPerson ?? 'System'),
      ),
      cellColumn('asked', 'Requested', (action) => moment(Date.parse(action.createdAt), nowMs)),
      cellColumn('finished', 'Finished', (action) =>
        action.finishedAt ? moment(Date.parse(action.finishedAt), nowMs) : 'not yet',
      ),
    ],
    rows: actions,
    empty: { title: 'Nothing yet', text: options.emptyText },
  });
}

function outcomeOf(action: ServerAction): Content {
  if (action.error !== null) return action.error.message;
  if (action.status !== 'success') return `${action.progress} %`;
  if (!action.changed) return 'No change was needed.';
  const outcomes: Record<string, string> = {
    stopped: 'The operating system shut down.',
    signal_sent: 'The operating system was asked to shut down.',
    timeout: 'The operating system did not shut down in time, so the power was cut.',
    next_boot: 'It holds from the next boot. Reboot the server within 24 hours.',
  };
  return outcomes[action.outcome ?? ''] ?? 'Done.';
}

/** Those of a server that is on its way to another one. */
export const changingStatuses: readonly ServerStatus[] = [
  'queued',
  'provisioning',
  'starting',
  'stopping',
  'rebooting',
  'deleting',
];
