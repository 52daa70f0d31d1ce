/** Notification channels of the whole installation. */
import type { FastifyRequest } from 'fastify';
import { type Channel, channelKindOf } from '#monitor/alerts/index.ts';
import {
  actionButton,
  askButton,
  badge,
  type Content,
  html,
  link,
  section,
} from '#service-kit/pages/index.ts';
import { ageColumn, dataTable } from '#service-kit/web/index.ts';
import type { Viewer } from '../guard.ts';

interface Options {
  channels: readonly Channel[];
  viewer: Viewer;
  nowMs: number;
}

export function channelsSection(request: FastifyRequest, options: Options): Content {
  const { viewer } = options;
  return section(
    {
      id: 'channels',
      title: 'Channels',
      description: 'Each channel is notified when an alert opens and when it is resolved.',
      actions: viewer.canChange && link('/alerts/channels/new', 'Add channel', { kind: 'button' }),
    },
    channelTable(request, options),
  );
}

function channelTable(request: FastifyRequest, { channels, viewer, nowMs }: Options) {
  return dataTable<Channel>(request, {
    id: 'channels',
    caption: 'Channels',
    card: { line: ['state', 'delivered', 'target'] },
    isStacked: true,
    rows: channels,
    columns: [
      {
        key: 'name',
        header: 'Channel',
        cell: (row) => (viewer.canChange ? link(`/alerts/channels/${row.id}`, row.name) : row.name),
        value: (row) => row.name,
      },
      { key: 'kind', header: 'Kind', cell: labelOf, value: (row) => row.kind },
      {
        key: 'target',
        header: 'Target',
        kind: 'prose',
        cell: (row) => [targetOf(row), routingOf(row) && html` <span class="hint">${routingOf(row)}</span>`],
        value: targetOf,
      },
      {
        key: 'state',
        header: 'State',
        kind: 'prose',
        cell: stateOf,
        value: (row) => (row.isEnabled ? (row.lastError ?? 'ok') : 'off'),
      },
      ageColumn('delivered', 'Last delivered', (row) => row.lastDeliveredAtMs, nowMs, {
        field: 'last_delivered_at',
      }),
      {
        key: 'waiting',
        header: 'Waiting',
        kind: 'figure',
        cell: (row) => row.waiting,
        value: (row) => row.waiting,
      },
      ...(viewer.canChange
        ? [
            {
              key: 'actions',
              header: 'Actions',
              kind: 'actions' as const,
              cell: (row: Channel) => actions(row, viewer),
            },
          ]
        : []),
    ],
    empty: {
      title: 'No channels yet',
      text: 'Add mail, a chat, a pager or a webhook. Without a channel, alerts appear on this page only.',
    },
  });
}

const labelOf = ({ kind }: Channel) => channelKindOf(kind)?.label ?? kind;
const targetOf = ({ kind, settings }: Channel) => channelKindOf(kind)?.targetOf(settings) ?? '–';

/** Its routing in words; blank: all alerts, at any time. */
function routingOf({ siteIds, kinds, isCriticalOnly, quiet }: Channel): string {
  return [
    siteIds && (siteIds.length === 1 ? 'one site' : `${siteIds.length} sites`),
    kinds && (kinds.length === 1 ? 'one kind of alert' : `${kinds.length} kinds of alerts`),
    isCriticalOnly && 'critical only',
    quiet && 'quiet hours',
  ]
    .filter((part) => typeof part === 'string')
    .join(', ');
}

function stateOf(channel: Channel): Content {
  if (!channel.isEnabled) return badge('neutral', 'off');
  if (channel.lastError)
    return [badge('bad', 'failing'), html` <span class="hint">${channel.lastError}</span>`];
  return channel.lastDeliveredAtMs === null ? badge('neutral', 'not used yet') : badge('good', 'works');
}

function actions(channel: Channel, { csrfToken }: Viewer): Content {
  const button = (name: string, label: string) =>
    actionButton({ action: `/alerts/channels/${channel.id}/${name}`, csrfToken, label });
  return html`<div class="actions">${channel.isEnabled && button('test', 'Send a test')}${
    channel.isEnabled ? button('disable', 'Disable') : button('enable', 'Enable')
  }${askButton(
    {
      id: `delete-channel-${channel.id}`,
      label: 'Delete',
      title: 'Delete this channel?',
      action: `/alerts/channels/${channel.id}/delete`,
      csrfToken,
    },
    'It receives no further alerts. Sent notifications stay in the list.',
  )}</div>`;
}
