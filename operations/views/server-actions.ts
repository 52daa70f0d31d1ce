import type { ServerAction } from '#operations/servers/index.ts';
import { badge, type Content, code, type Html, moment, type Tone, table } from '#service-kit/pages/index.ts';

/** Commands in words: what was asked, and what goes on meanwhile. */
export const actionWords: Record<ServerAction['command'], { name: string; going: string }> = {
  create: { name: 'Deploy', going: 'Being deployed' },
  start: { name: 'Start', going: 'Starting' },
  shutdown: { name: 'Shut down', going: 'Waiting for the guest to halt' },
  stop: { name: 'Power off', going: 'Switching off' },
  reboot: { name: 'Reboot', going: 'Rebooting' },
  reset: { name: 'Reset', going: 'Resetting' },
  destroy: { name: 'Destroy', going: 'Being destroyed' },
};

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
    caption: 'What was done',
    columns: [
      {
        key: 'command',
        header: 'Action',
        cell: (action) =>
          options.withIds
            ? `${actionWords[action.command].name} #${action.id}`
            : actionWords[action.command].name,
      },
      { key: 'status', header: 'Status', cell: (action) => badge(actionTones[action.status], action.status) },
      { key: 'outcome', header: 'What came of it', kind: 'prose', cell: outcomeOf },
      {
        key: 'by',
        header: 'Asked by',
        cell: (action) => (action.requestedByKey ? ['key ', code(action.requestedByKey)] : 'a person'),
      },
      { key: 'asked', header: 'Asked', cell: (action) => moment(Date.parse(action.createdAt), nowMs) },
      {
        key: 'finished',
        header: 'Finished',
        cell: (action) => (action.finishedAt ? moment(Date.parse(action.finishedAt), nowMs) : 'not yet'),
      },
    ],
    rows: actions,
    empty: { title: 'Nothing yet', text: options.emptyText },
  });
}

function outcomeOf(action: ServerAction): Content {
  if (action.error !== null) return action.error.message;
  if (action.status !== 'success') return `${action.progress} %`;
  if (!action.changed) return 'It was so already.';
  const outcomes: Record<string, string> = {
    stopped: 'The guest halted.',
    signal_sent: 'The guest was asked to halt.',
    timeout: 'The guest did not halt in its time, so its power was cut.',
  };
  return outcomes[action.outcome ?? ''] ?? 'Done.';
}
