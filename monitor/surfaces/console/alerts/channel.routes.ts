/** `/alerts/channels`: the forms of notification channels, and what operators may do to one. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { Id } from '#contracts/scalars.ts';
import {
  alertKinds,
  type Channel,
  type ChannelField,
  type ChannelInput,
  type ChannelKindName,
  channelKindOf,
  channelKinds,
} from '#monitor/alerts/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import {
  actionButton,
  askButton,
  badge,
  type Content,
  field,
  fieldGroup,
  form,
  hiddenField,
  html,
  link,
  pageHeader,
  section,
  tabs,
} from '#service-kit/pages/index.ts';
import { ageColumn, dataTable } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, notFound, sendConsolePage } from '../frame.ts';
import { type Viewer, viewerOf } from '../guard.ts';
import { done } from './alert.routes.ts';

const ChannelParams = Type.Object({ channelId: Id });
const Kind = Type.Object({ kind: Type.Optional(Type.String({ maxLength: 40 })) });
/** A field for each setting, site and kind of alert: which there are is the kind's and the installation's. */
const ChannelForm = Type.Record(Type.String({ maxLength: 80 }), Type.String({ maxLength: 20_000 }), {
  maxProperties: 1000,
});
const faults = ['alerts.invalid', 'alerts.limit', 'webhooks.invalid'] as const;

/** `showAlerts` answers a new webhook: only this answer contains its signing secret. */
export function registerChannels(
  app: App,
  deps: ConsoleDeps,
  showAlerts: (reply: FastifyReply, secret: string) => Promise<FastifyReply>,
): void {
  app.get('/alerts/channels/new', { schema: { querystring: Kind } }, (request, reply) =>
    showChannel(deps, reply, { kind: request.query.kind ?? 'email' }),
  );
  app.get('/alerts/channels/:channelId', { schema: { params: ChannelParams } }, (request, reply) =>
    showChannel(deps, reply, { channelId: request.params.channelId }),
  );
  app.post('/alerts/channels', { schema: { body: ChannelForm } }, async (request, reply) => {
    const { body: typed } = request;
    try {
      const { secret } = await deps.alerts.addChannel(viewerOf(request).actor, {
        ...inputOf(typed),
        kind: typed.kind ?? '',
      });
      if (secret === null) return await reply.redirect('/alerts?saved=1#channels', 303);
      return await showAlerts(reply, secret);
    } catch (error) {
      const refused = { fault: faultText(error, ...faults), typed };
      return showChannel(deps, reply, { kind: typed.kind ?? 'email', refused });
    }
  });
  app.post(
    '/alerts/channels/:channelId',
    { schema: { params: ChannelParams, body: ChannelForm } },
    async (request, reply) => {
      const { body: typed } = request;
      const { channelId } = request.params;
      try {
        if (!(await deps.alerts.changeChannel(viewerOf(request).actor, channelId, inputOf(typed))))
          throw noChannel();
        return await reply.redirect('/alerts?saved=1#channels', 303);
      } catch (error) {
        if (error instanceof HttpError) throw error;
        const refused = { fault: faultText(error, ...faults), typed };
        return showChannel(deps, reply, { channelId, refused });
      }
    },
  );
  const actions: Record<string, (request: FastifyRequest, channelId: number) => Promise<boolean>> = {
    test: (request, id) => deps.alerts.sendTest(viewerOf(request).actor, id),
    enable: (request, id) => deps.alerts.setChannelEnabled(viewerOf(request).actor, id, true),
    disable: (request, id) => deps.alerts.setChannelEnabled(viewerOf(request).actor, id, false),
    delete: (request, id) => deps.alerts.deleteChannel(viewerOf(request).actor, id),
  };
  for (const [name, act] of Object.entries(actions)) {
    app.post(
      `/alerts/channels/:channelId/${name}`,
      { schema: { params: ChannelParams } },
      async (request, reply) => {
        await done(act(request, request.params.channelId), 'channel').catch((error: unknown) => {
          const message = faultText(error, 'alerts.test_limit');
          throw new HttpError(429, { code: 'test_limit', message }, { 'retry-after': '300' });
        });
        return reply.redirect('/alerts?saved=1#channels', 303);
      },
    );
  }
}

function inputOf(typed: TypedChannel): Omit<ChannelInput, 'kind'> {
  const after = (prefix: string) =>
    Object.keys(typed).flatMap((name) => (name.startsWith(prefix) ? [name.slice(prefix.length)] : []));
  return {
    name: typed.name ?? '',
    settings: Object.fromEntries(after('setting_').map((name) => [name, typed[`setting_${name}`]])),
    siteIds: after('site_').map(Number).filter(Number.isSafeInteger),
    kinds: after('kind_'),
    isCriticalOnly: typed.critical_only !== undefined,
    quietFrom: typed.quiet_from ?? '',
    quietTo: typed.quiet_to ?? '',
    quietZone: typed.quiet_zone ?? '',
  };
}

const noChannel = () => notFound('This channel no longer exists.');

async function showChannel(
  deps: ConsoleDeps,
  reply: FastifyReply,
  shown: { kind?: string; channelId?: number; refused?: { fault: string; typed: TypedChannel } },
): Promise<FastifyReply> {
  const { request } = reply;
  const { channelId, refused } = shown;
  if (!viewerOf(request).canChange)
    throw new HttpError(403, { code: 'read_only', message: 'Your role is read-only.' });
  const channels = channelId === undefined ? [] : await deps.alerts.listChannels();
  const channel = channels.find(({ id }) => id === channelId) ?? null;
  if (channelId !== undefined && !channel) throw noChannel();
  const kind = channel?.kind ?? shown.kind ?? '';
  if (!channelKindOf(kind)) throw notFound('No such kind of channel.');
  return sendConsolePage(
    reply,
    { title: channel?.name ?? 'New channel', status: refused ? 422 : 200 },
    channelPage({
      ...{ kind: kind as ChannelKindName, channel, hasMail: deps.alerts.hasMail, viewer: viewerOf(request) },
      ...(refused ? { refused } : {}),
    }),
  );
}

/** What stands in the form's fields, by their names. */
type TypedChannel = Readonly<Record<string, string>>;

interface ChannelPage {
  kind: ChannelKindName;
  /** Null: a new one. */
  channel: Channel | null;
  hasMail: boolean;
  viewer: Viewer;
  /** A refused form. */
  refused?: { fault: string; typed: TypedChannel };
}

/** The page of one notification channel: its target, which alerts it receives, and when. */
const newPath = '/alerts/channels/new';

function channelPage({ kind, channel, hasMail, viewer, refused }: ChannelPage): Content {
  const { label, hint, fields } = channelKinds[kind];
  const typed = refused?.typed ?? (channel ? typedOf(channel) : {});
  const action = channel ? `/alerts/channels/${channel.id}` : '/alerts/channels';
  return [
    pageHeader({
      title: channel ? channel.name : `New channel: ${label}`,
      state: { tone: 'neutral', text: channel ? `${label}. ${hint}` : hint },
      actions: link('/alerts#channels', 'All channels', { kind: 'button' }),
    }),
    !channel &&
      tabs(
        'Kind of channel',
        Object.entries(channelKinds).map(([name, one]) => ({
          label: one.label,
          href: `${newPath}?kind=${name}`,
          current: name === kind,
        })),
      ),
    kind === 'email' &&
      !hasMail &&
      html`<p class="hint">No mail server is configured: mails fail until SVC_SMTP_URL is set.</p>`,
    section(
      { title: refused ? 'The channel was not saved' : 'Channel' },
      form(
        {
          action,
          csrfToken: viewer.csrfToken,
          submit: channel ? 'Save channel' : 'Add channel',
          error: refused?.fault,
        },
        [
          hiddenField('kind', kind),
          field({
            name: 'name',
            label: 'Name',
            required: true,
            maxLength: 80,
            value: typed.name,
            placeholder: 'Night shift',
          }),
          fields.map((one) => settingField(one, typed, channel !== null)),
          routingFields(typed, viewer),
        ],
      ),
    ),
  ];
}

function settingField(one: ChannelField, typed: TypedChannel, isStored: boolean): Content {
  const { name, label, kind = 'text', isSecret, isOptional, preset, placeholder, hint } = one;
  const isKept = isSecret === true && isStored;
  const common = {
    ...{ name: `setting_${name}`, label, isCode: true },
    required: !isOptional && !isKept && preset === undefined,
    // A secret is never written into a page, not even one that was just typed.
    value: isSecret ? '' : (typed[`setting_${name}`] ?? preset ?? ''),
    ...(placeholder ? { placeholder } : {}),
    ...(isKept ? { hint: 'Leave empty to keep the present one.' } : hint ? { hint } : {}),
  };
  if (kind === 'textarea') return field({ ...common, kind, rows: 4 });
  return field({ ...common, kind: isSecret ? 'password' : kind, autocomplete: 'off' });
}

function routingFields(typed: TypedChannel, { sites }: Viewer): Content {
  return [
    sites.length > 1 &&
      fieldGroup(
        {
          legend: 'Sites',
          hint: 'None ticked: all. Alerts that concern the whole installation go to every channel.',
        },
        sites.map(({ id, name }) =>
          field({
            kind: 'checkbox',
            name: `site_${id}`,
            label: name,
            checked: typed[`site_${id}`] !== undefined,
          }),
        ),
      ),
    field({
      kind: 'checkbox',
      name: 'critical_only',
      label: 'Critical alerts only',
      hint: Object.values(alertKinds)
        .flatMap((one) => (one.severity === 'critical' ? [one.label] : []))
        .join(', '),
      checked: typed.critical_only !== undefined,
    }),
    fieldGroup(
      { legend: 'Alerts', hint: 'None ticked: all.' },
      Object.entries(alertKinds)
        .sort(([, a], [, b]) => (a.label < b.label ? -1 : 1))
        .map(([name, { label }]) =>
          field({
            kind: 'checkbox',
            name: `kind_${name}`,
            label,
            checked: typed[`kind_${name}`] !== undefined,
          }),
        ),
    ),
    fieldGroup(
      {
        legend: 'Quiet hours',
        hint: 'Alerts that are not critical wait until they end, and are left out if they are over by then. Leave empty for none.',
      },
      [
        field({ name: 'quiet_from', label: 'From', placeholder: '22:00', value: typed.quiet_from }),
        field({ name: 'quiet_to', label: 'To', placeholder: '07:00', value: typed.quiet_to }),
        field({
          name: 'quiet_zone',
          label: 'Time zone',
          placeholder: 'Europe/Berlin',
          value: typed.quiet_zone,
        }),
      ],
    ),
  ];
}

function typedOf({ name, settings, siteIds, kinds, isCriticalOnly, quiet }: Channel): TypedChannel {
  const time = (minutes: number) =>
    `${String(Math.floor(minutes / 60)).padStart(2, '0')}:${String(minutes % 60).padStart(2, '0')}`;
  return {
    name,
    ...Object.fromEntries(Object.entries(settings).map(([key, value]) => [`setting_${key}`, value])),
    ...Object.fromEntries([
      ...(siteIds ?? []).map((id) => [`site_${id}`, 'on']),
      ...(kinds ?? []).map((kind) => [`kind_${kind}`, 'on']),
    ]),
    ...(isCriticalOnly ? { critical_only: 'on' } : {}),
    ...(quiet ? { quiet_from: time(quiet.from), quiet_to: time(quiet.to), quiet_zone: quiet.zone } : {}),
  };
}

// Notification channels of the whole installation.

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
