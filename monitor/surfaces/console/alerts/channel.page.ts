/** The page of one notification channel: its target, which alerts it receives, and when. */
import {
  alertKinds,
  type Channel,
  type ChannelField,
  type ChannelKindName,
  channelKinds,
} from '#monitor/alerts/index.ts';
import {
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
import type { Viewer } from '../guard.ts';

/** What stands in the form's fields, by their names. */
export type TypedChannel = Readonly<Record<string, string>>;

interface ChannelPage {
  kind: ChannelKindName;
  /** Null: a new one. */
  channel: Channel | null;
  hasMail: boolean;
  viewer: Viewer;
  /** A refused form. */
  refused?: { fault: string; typed: TypedChannel };
}

const newPath = '/alerts/channels/new';

export function channelPage({ kind, channel, hasMail, viewer, refused }: ChannelPage): Content {
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
