import { guardReasonTitle } from '#contracts/guard-reasons.ts';
import type { Guard, SpoofingAttempt } from '#operations/guards/index.ts';
import type { Server } from '#operations/views/index.ts';
import {
  actionButton,
  askButton,
  badge,
  type Content,
  code,
  formatCount,
  type Html,
  html,
  moment,
  section,
  table,
} from '#service-kit/pages/index.ts';
import type { Staff } from '../guard.ts';

export interface GuardSectionOptions {
  staff: Staff;
  server: Server;
  guard: Guard;
  /** The newest first. */
  attempts: readonly SpoofingAttempt[];
  nowMs: number;
}

/** What the server may send, and what it tried to. */
export function guardSection(options: GuardSectionOptions): Html {
  const { guard, server, nowMs } = options;
  return section(
    {
      title: 'Spoofing guard',
      id: 'guard',
      description:
        'The hypervisor drops what this server sends from MACs and addresses that are not its own.',
      actions: switchButton(options),
    },
    [
      html`<p>${stateOf(options)}</p>`,
      guard.support === 'counted' &&
        table({
          caption: 'Spoofed traffic',
          card: { title: 'reason', line: ['packets', 'last'] },
          columns: [
            { key: 'reason', header: 'Dropped', cell: ({ reason }) => guardReasonTitle(reason) },
            { key: 'sources', header: 'Claimed sources', cell: (attempt) => sourcesOf(attempt) },
            { key: 'interface', header: 'Interface', cell: (attempt) => interfaceOf(attempt, server) },
            {
              key: 'packets',
              header: 'Packets',
              kind: 'figure',
              cell: ({ packets }) => formatCount(packets),
            },
            { key: 'began', header: 'First', cell: ({ beganAt }) => moment(beganAt.getTime(), nowMs) },
            { key: 'last', header: 'Last', cell: ({ lastAt }) => moment(lastAt.getTime(), nowMs) },
          ],
          rows: options.attempts,
          empty: { title: 'None', text: 'Packets that the guard drops appear here within 15 seconds.' },
        }),
    ],
  );
}

function stateOf({ guard, nowMs }: GuardSectionOptions): Content {
  if (guard.support === 'none') return badge('warn', 'The hypervisor has no guard');
  const since = guard.changedAt === null ? '' : [' since ', moment(guard.changedAt.getTime(), nowMs)];
  const state = guard.isOn
    ? badge('good', 'On')
    : badge('warn', 'Off: this server may send from any MAC and address');
  const notYet = {
    applied: '',
    pending: ' The hypervisor has not been told yet.',
    failed: ' The hypervisor could not be told. Switch it again.',
  };
  const isCounted = guard.support === 'counted' ? '' : ' This hypervisor does not count what it drops.';
  return [state, since, notYet[guard.status], isCounted];
}

function switchButton({ staff, server, guard }: GuardSectionOptions): Content {
  if (!staff.canChange || guard.support === 'none' || server.provisioningState !== 'ready') return '';
  const action = `/console/servers/${server.id}/guard`;
  const { csrfToken } = staff;
  if (!guard.isOn)
    return actionButton({ action, csrfToken, label: 'Switch on', kind: 'primary', fields: { state: 'on' } });
  return askButton(
    {
      ...{ id: 'guard-off', label: 'Switch off', title: 'Switch the spoofing guard off?' },
      ...{ openKind: 'button' as const, action, csrfToken, fields: { state: 'off' } },
    },
    'This server can then send from the addresses of other servers, on all its interfaces. Routers of private networks need this.',
  );
}

function sourcesOf({ sources }: SpoofingAttempt): Content {
  return sources.length === 0 ? '–' : sources.map((source) => html`<div>${code(source)}</div>`);
}

function interfaceOf({ networkId }: SpoofingAttempt, server: Server): Content {
  if (networkId === null) return 'public';
  return server.privateNetworks.find((one) => one.networkId === networkId)?.name ?? `network ${networkId}`;
}
