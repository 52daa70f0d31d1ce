/** Bodies about servers and their actions. */
import { type Static, Type } from 'typebox';
import { consoleKinds } from '../capabilities.ts';
import { Nullable, Strict } from '../scalars.ts';
import { FirewallSummary } from './firewall.ts';
import { PrivateNetworkAttachment } from './networks.ts';
import {
  hostnamePattern,
  Id,
  Labels,
  LabelValue,
  Moment,
  Money,
  Name,
  OneOf,
  Optional,
  PageOf,
  pageQuery,
  RequestBody,
  SlugOrId,
  Titled,
} from './schema-kit.ts';

export const provisioningStates = ['queued', 'provisioning', 'ready', 'failed', 'deleting'] as const;
export const powerStates = ['unknown', 'starting', 'running', 'stopping', 'stopped', 'rebooting'] as const;
export const serverStatuses = ['queued', 'provisioning', 'failed', 'deleting', ...powerStates] as const;
export const actionNames = ['start', 'shutdown', 'stop', 'reboot', 'reset'] as const;
export const actionCommands = [
  'create',
  'destroy',
  ...actionNames,
  'rebuild',
  'resize',
  'reset_password',
  'attach_address',
  'detach_address',
  'create_snapshot',
  'restore_snapshot',
  'rescue',
  'unrescue',
  'attach_iso',
  'detach_iso',
] as const;
/** Other names that are understood; answers carry the name that they stand for. */
export const actionAliases: Readonly<Record<string, (typeof actionNames)[number]>> = {
  power_on: 'start',
  poweron: 'start',
  boot: 'start',
  power_off: 'stop',
  poweroff: 'stop',
  power_cycle: 'reset',
};
const aliasNames = ['power_on', 'poweron', 'boot', 'power_off', 'poweroff', 'power_cycle'] as const;
const oneStatus = `(${serverStatuses.join('|')})`;
const statusListPattern = `${oneStatus}( ?, ?${oneStatus})*`;

export const ServerAction = Titled('ServerAction', {
  id: Id,
  command: OneOf(actionCommands),
  server_id: Id,
  status: OneOf(['queued', 'running', 'success', 'error']),
  progress: Type.Integer({ minimum: 0, maximum: 100, description: 'Percent.' }),
  changed: Type.Boolean({ description: 'False when the server was already in the requested state.' }),
  outcome: Nullable(
    OneOf(
      ['stopped', 'signal_sent', 'timeout', 'next_boot'],
      'Result of a shutdown: the server halted, the signal was sent without waiting, or the server did not halt within the timeout. `next_boot`: a new root password holds, or an ISO is there, from the next start.',
    ),
  ),
  requested_by_key: Nullable(Type.String()),
  created_at: Moment,
  started_at: Nullable(Moment),
  finished_at: Nullable(Moment),
  error: Nullable(Type.Object({ code: Type.String(), message: Type.String() })),
});
export type ServerAction = Static<typeof ServerAction>;

export const ConsoleRequest = RequestBody('ConsoleRequest', {
  protocol: Type.Optional(
    OneOf(consoleKinds, 'The screen, or the serial port as text. By default what the server usually has.'),
  ),
});

export const ConsoleTicket = Titled('ConsoleTicket', {
  url: Type.String({
    description: 'Of a WebSocket, with the ticket. It connects once; treat it like a password.',
  }),
  protocol: OneOf(
    consoleKinds,
    'What its binary messages carry: RFB, the protocol of VNC, or the text of a terminal in UTF-8.',
  ),
  expires_at: Moment,
});

export const PasswordAction = Titled('PasswordAction', {
  ...ServerAction.properties,
  root_password: Type.String({
    description:
      'The new one. Only in this answer, and in repetitions by the same key with the same `Idempotency-Key` within 24 hours.',
  }),
});

export const RescueAction = Titled('RescueAction', {
  ...ServerAction.properties,
  root_password: Nullable(
    Type.String({
      description:
        'Of the rescue system; null if the server was in rescue already. Only in this answer, and in repetitions by the same key with the same `Idempotency-Key` within 24 hours.',
    }),
  ),
});

const PublicIp = Type.Object({
  address: Type.String(),
  family: Type.Integer({ enum: [4, 6] }),
  prefix_length: Type.Integer(),
  gateway: Type.String(),
  primary: Type.Boolean(),
  reverse_dns: Nullable(Type.String()),
});

const serverFields = {
  id: Id,
  tenant_id: Id,
  order_id: Id,
  name: Type.String(),
  hostname: Type.String(),
  status: OneOf(serverStatuses, 'The status to poll.'),
  provisioning_state: OneOf(provisioningStates, '`ready` means that the server is addressable.'),
  power_state: OneOf(powerStates),
  locked: Type.Boolean({ description: 'True while `current_action` runs.' }),
  rescue: Type.Boolean({ description: 'True while the server starts from a rescue image.' }),
  status_changed_at: Moment,
  plan: Type.Object({
    id: Id,
    slug: Type.String(),
    name: Type.String(),
    vcpus: Type.Integer(),
    memory_mb: Type.Integer(),
    disk_gb: Type.Integer(),
  }),
  location: Type.Object({ id: Id, slug: Type.String(), name: Type.String(), country: Type.String() }),
  image: Type.Object({ id: Id, slug: Type.String(), name: Type.String(), family: Type.String() }),
  iso: Nullable(
    Type.Object({ id: Id, slug: Type.String(), name: Type.String() }, { description: 'In its CD drive.' }),
  ),
  public_ips: Type.Array(PublicIp),
  private_networks: Type.Array(PrivateNetworkAttachment),
  firewall: FirewallSummary,
  billing: Type.Object({
    cycle: OneOf(['hourly']),
    price_hourly: Money,
    price_monthly_cap: Money,
    currency: Type.String(),
    started_at: Nullable(Moment),
  }),
  current_action: Nullable(ServerAction),
  failure: Nullable(
    Type.Object({
      code: Type.String(),
      message: Type.String(),
      at: Moment,
      operator_action_required: Type.Boolean(),
    }),
  ),
  labels: Type.Record(Type.String(), Type.String()),
  created_at: Moment,
  provisioned_at: Nullable(Moment),
  updated_at: Moment,
};

export const Server = Titled('Server', serverFields);
export type Server = Static<typeof Server>;

export const CreatedServer = Titled('CreatedServer', {
  ...serverFields,
  root_password: Type.String({
    description:
      'Only in this answer, and in repetitions by the same key with the same `Idempotency-Key` within 24 hours.',
  }),
});
export type CreatedServer = Static<typeof CreatedServer>;

export const ServerList = PageOf('ServerList', 'servers', Server);
export const ServerActionList = PageOf('ServerActionList', 'actions', ServerAction);

const SshKeyRef = Type.Union([Type.String({ minLength: 1, maxLength: 8192 }), Id], {
  'x-resource': 'ssh-key',
});

export const CreateServerRequest = RequestBody('CreateServerRequest', {
  plan: SlugOrId('The plan'),
  ...Optional({
    image: SlugOrId('The image; required without `snapshot`'),
    snapshot: Type.Integer({
      minimum: 1,
      'x-resource': 'snapshot',
      description:
        'A complete snapshot of the workspace in place of `image`. The server gets a copy of that disk in the same location; the disk of its plan must be at least as large.',
    }),
    location: SlugOrId(
      'The location; required if there are several. With `snapshot`, by default the one of that',
    ),
    name: Name,
    hostname: Type.String({ maxLength: 253, pattern: hostnamePattern }),
    ssh_keys: Type.Array(SshKeyRef, {
      maxItems: 20,
      'x-resource': 'ssh-key',
      description:
        'Public keys as text, as in `authorized_keys`, or ids or names of SSH keys of the workspace.',
    }),
    user_data: Type.String({ maxLength: 65_536, description: 'For cloud-init; at most 64 KiB as UTF-8.' }),
    network_id: Type.Integer({
      minimum: 1,
      'x-resource': 'network',
      description: 'An existing private network of the workspace and location, attached from the first boot.',
    }),
    network_ip: Type.String({
      maxLength: 15,
      description: 'Address in the private network. Default: the lowest free one.',
    }),
    public_ip: Type.Boolean({
      default: true,
      description: '`false`: no public address; reached through `network_id`, which is then required.',
    }),
    labels: Labels,
    billing_cycle: OneOf(['hourly'], 'The default.'),
    dry_run: Type.Boolean({
      description:
        'Returns 200 with the result and cost that the call would have, without executing it. Does not count as a deployment.',
    }),
  }),
});
export type CreateServerRequest = Static<typeof CreateServerRequest>;

const { snapshot: _, ...v1Fields } = CreateServerRequest.properties;
/** v1 stays as it was specified: it knows images only. */
export const CreateServerRequestV1 = Type.Object(
  { ...v1Fields, image: SlugOrId('The image') },
  { title: 'CreateServerRequestV1', additionalProperties: false },
);

/** What a create with `dry_run` is answered. */
export const ServerForecast = Titled('ServerForecast', {
  would_create: Type.Boolean(),
  eligible: Type.Boolean({ description: 'Whether the account may deploy this plan.' }),
  reason: Nullable(Type.String({ description: 'Why it would not be created: the error of the real call.' })),
  due_now: Nullable(Type.String({ description: 'Charge to the saved card, which is added to the credit.' })),
  price_hourly: Money,
  price_monthly_cap: Money,
  currency: Type.String(),
  credit_after_first_day: Nullable(
    Type.String({ description: 'Decimal text; remaining credit after this order.' }),
  ),
});
export type ServerForecast = Static<typeof ServerForecast>;

export const UpdateServerRequest = RequestBody('UpdateServerRequest', {
  ...Optional({
    name: Name,
    hostname: Type.String({
      maxLength: 253,
      pattern: hostnamePattern,
      description: 'Displayed name; the operating system of the server is not changed.',
    }),
    labels: Type.Record(Type.String({ pattern: '^[A-Za-z0-9._/-]{1,63}$' }), Nullable(LabelValue), {
      additionalProperties: false,
      description: 'Merged with the present labels; null removes one.',
    }),
  }),
});
export type UpdateServerRequest = Static<typeof UpdateServerRequest>;

export const ActionRequest = RequestBody('ActionRequest', {
  action: OneOf(
    [...actionNames, ...aliasNames],
    '`start`, `shutdown` (ACPI halt), `stop` (power off), `reboot` (ACPI) or `reset` (hard reset); the others are aliases.',
  ),
  ...Optional({
    timeout_s: Type.Integer({
      minimum: 0,
      maximum: 3_600,
      description: 'For shutdown: timeout in seconds, default 120; with 0 only the signal is sent.',
    }),
    on_timeout: OneOf(
      ['fail', 'stop'],
      'For shutdown: the action after the timeout; `stop` switches the power off.',
    ),
  }),
});
export type ActionRequest = Static<typeof ActionRequest>;

const shutdownTimeout = {
  timeout_s: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 3_600,
      description: 'How long the operating system of a running server may take to shut down, default 120.',
    }),
  ),
  on_timeout: Type.Optional(
    OneOf(
      ['fail', 'stop'],
      'If it has not shut down by then: nothing is changed, the default, or `stop` switches the power off.',
    ),
  ),
};
export const DryRun = Type.Optional(
  Type.Boolean({
    description: 'Returns 200 with what the call would do and cost, or its error, without executing it.',
  }),
);

export const RebuildRequest = RequestBody('RebuildRequest', {
  image: Type.Optional(SlugOrId('The image, by default the present one')),
  dry_run: DryRun,
});
export type RebuildRequest = Static<typeof RebuildRequest>;

export const ResizeRequest = RequestBody('ResizeRequest', {
  plan: SlugOrId('The plan'),
  keep_disk: Type.Optional(
    Type.Boolean({
      default: false,
      description:
        '`true`: the disk stays as it is, so that the server can return to a smaller plan. A disk never shrinks.',
    }),
  ),
  ...shutdownTimeout,
  dry_run: DryRun,
});
export type ResizeRequest = Static<typeof ResizeRequest>;

export const ResetPasswordRequest = RequestBody('ResetPasswordRequest', {});

export const RescueRequest = RequestBody('RescueRequest', {
  rescue_image: Type.Optional(SlugOrId('The rescue image, by default the first one')),
});
export type RescueRequest = Static<typeof RescueRequest>;

export const AttachIsoRequest = RequestBody('AttachIsoRequest', { iso: SlugOrId('The ISO') });
export type AttachIsoRequest = Static<typeof AttachIsoRequest>;

/** What a rebuild, a resize or a restore with `dry_run` is answered. */
export const ActionForecast = Titled('ActionForecast', {
  command: OneOf(['rebuild', 'resize', 'restore_snapshot']),
  server_id: Id,
  changes: Type.Boolean({ description: 'False when the server has this plan already.' }),
  restarts: Type.Boolean({ description: 'Whether the server is down meanwhile.' }),
  erases_disk: Type.Boolean(),
  price_hourly: Money,
  price_monthly_cap: Money,
  due_now: Type.String({
    description: 'Decimal text; charged for the hour that has begun, unless the monthly cap is reached.',
  }),
  currency: Type.String(),
});
export type ActionForecast = Static<typeof ActionForecast>;

export const ListServersQuery = Type.Object(
  {
    status: Type.Optional(
      Type.String({
        maxLength: 200,
        pattern: `^${statusListPattern}$`,
        description: `One or more of ${serverStatuses.map((one) => `\`${one}\``).join(', ')}, separated by commas.`,
      }),
    ),
    name: Type.Optional(Type.String({ maxLength: 64 })),
    plan: Type.Optional(Type.String({ maxLength: 64, description: 'Slug.' })),
    location: Type.Optional(Type.String({ maxLength: 64, description: 'Slug.' })),
    network_id: Type.Optional(
      Type.Integer({ minimum: 1, description: 'Servers on this private network.', 'x-resource': 'network' }),
    ),
    label: Type.Optional(
      Type.String({
        maxLength: 1_000,
        description:
          'Terms such as `env=prod`, `tier!=test`, `owner` or `!old`, separated by commas; all must match.',
      }),
    ),
    created_after: Type.Optional(
      Type.String({
        maxLength: 40,
        pattern: '^\\d{4}-\\d{2}-\\d{2}',
        description: 'A time in RFC 3339 format with offset, or a UTC day.',
      }),
    ),
    sort: Type.Optional(OneOf(['created_at', '-created_at', 'name', '-name'])),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
    cursor: Type.Optional(Type.String({ maxLength: 600 })),
  },
  { additionalProperties: false },
);
export type ListServersQuery = Static<typeof ListServersQuery>;

export const ListActionsQuery = pageQuery(50);
export type ListActionsQuery = Static<typeof ListActionsQuery>;

export const ReadServerQuery = Strict({
  wait_for: Type.Optional(
    Type.String({
      maxLength: 200,
      pattern: `^status:${statusListPattern}$`,
      description:
        'For example `status:running`: the answer is sent when the server has this status, when it has failed, or after 30 seconds (`Prefer: wait=N` for less).',
    }),
  ),
});
export type ReadServerQuery = Static<typeof ReadServerQuery>;
