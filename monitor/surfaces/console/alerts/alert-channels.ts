/** Notification channels of the whole installation. */
import type { FastifyRequest } from 'fastify';
import type { Channel } from '#monitor/alerts/index.ts';
import {
  actionButton,
  age,
  askButton,
  badge,
  type Content,
  drawer,
  field,
  form,
  hiddenField,
  html,
  isoTime,
  section,
} from '#service-kit/pages/index.ts';
import { dataTable } from '#service-kit/web/index.ts';
import type { Viewer } from '../guard.ts';

export interface TypedChannel {
  kind: string;
  name: string;
  recipients?: string;
  url?: string;
}

interface Options {
  channels: readonly Channel[];
  viewer: Viewer;
  nowMs: number;
  /** A mail server is configured. */
  hasMail: boolean;
  /** Input of a refused form. */
  typed: TypedChannel | undefined;
}

export function channelsSection(request: FastifyRequest, options: Options): Content {
  const { viewer } = options;
  return section(
    {
      id: 'channels',
      title: 'Channels',
      description: 'Each channel is notified once when an alert opens and once when it is resolved.',
      actions: viewer.canChange && addForms(options),
    },
    channelTable(request, options),
  );
}

function addForms({ viewer, hasMail, typed }: Options): Content {
  const { csrfToken } = viewer;
  const of = (kind: string) => (typed?.kind === kind ? typed : undefined);
  const mail = form({ action: '/alerts/channels', csrfToken, submit: 'Add channel' }, [
    !hasMail && html`<p class="hint">No mail server is configured: mails fail until SVC_SMTP_URL is set.</p>`,
    hiddenField('kind', 'email'),
    field({
      id: 'mail-name',
      name: 'name',
      label: 'Name',
      required: true,
      maxLength: 80,
      value: of('email')?.name,
      placeholder: 'Night shift',
    }),
    field({
      kind: 'textarea',
      name: 'recipients',
      label: 'Mail addresses',
      required: true,
      rows: 3,
      value: of('email')?.recipients,
      hint: 'Separated by commas or lines, at most 20.',
    }),
  ]);
  const webhook = form({ action: '/alerts/channels', csrfToken, submit: 'Add channel' }, [
    hiddenField('kind', 'webhook'),
    field({
      id: 'hook-name',
      name: 'name',
      label: 'Name',
      required: true,
      maxLength: 80,
      value: of('webhook')?.name,
      placeholder: 'Pager',
    }),
    field({
      kind: 'url',
      name: 'url',
      label: 'URL',
      required: true,
      isCode: true,
      value: of('webhook')?.url,
      placeholder: 'https://example.com/hook',
      hint: 'Must be https and on the public internet. Deliveries are signed as in Standard Webhooks; the secret is shown once.',
    }),
  ]);
  return [
    drawer({ id: 'add-mail', open: 'Add mail', title: 'Notify by mail' }, mail),
    drawer({ id: 'add-webhook', open: 'Add webhook', title: 'Notify by webhook' }, webhook),
  ];
}

function channelTable(request: FastifyRequest, { channels, viewer, nowMs }: Options) {
  return dataTable<Channel>(request, {
    id: 'channels',
    caption: 'Channels',
    card: { line: ['state', 'delivered', 'target'] },
    isStacked: true,
    rows: channels,
    columns: [
      { key: 'name', header: 'Channel', cell: (row) => row.name, value: (row) => row.name },
      {
        key: 'target',
        header: 'Tells',
        kind: 'prose',
        cell: (row) => (row.kind === 'email' ? row.recipients.join(', ') : row.url),
        value: (row) => (row.kind === 'email' ? row.recipients.join(' ') : row.url),
      },
      {
        key: 'state',
        header: 'State',
        kind: 'prose',
        cell: stateOf,
        value: (row) => (row.isEnabled ? (row.lastError ?? 'ok') : 'off'),
      },
      {
        key: 'delivered',
        header: 'Last delivered',
        kind: 'figure',
        field: 'last_delivered_at',
        cell: (row) => age(row.lastDeliveredAtMs, nowMs),
        value: (row) => isoTime(row.lastDeliveredAtMs),
      },
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
      text: 'Add mail addresses or a webhook. Without a channel, alerts appear on this page only.',
    },
  });
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
