/**
 * The bodies of the customer API, versions 1 and 2.
 *
 * `snake_case`, UTC RFC 3339, integer ids, money as decimal text with its currency. Every documented field is always
 * there, `null` when unknown. What these schemas don't name can't leave the server.
 */
import { type Static, type TSchema, Type } from 'typebox';

const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const OneOf = <const V extends readonly string[]>(values: V, description?: string) =>
  Type.Unsafe<V[number]>({ type: 'string', enum: [...values], ...(description ? { description } : {}) });
const Id = Type.Integer({ minimum: 1 });
const Moment = Type.String({ format: 'date-time' });
const Money = Type.String({ pattern: '^-?\\d+\\.\\d{2,4}$', description: 'Decimal text.' });

export const provisioningStates = ['queued', 'provisioning', 'ready', 'failed', 'deleting'] as const;
export const powerStates = ['unknown', 'starting', 'running', 'stopping', 'stopped', 'rebooting'] as const;
export const serverStatuses = ['queued', 'provisioning', 'failed', 'deleting', ...powerStates] as const;
export const actionNames = ['start', 'shutdown', 'stop', 'reboot', 'reset'] as const;
export const actionCommands = ['create', 'destroy', ...actionNames] as const;
/** Other names that are understood; answers carry the name that they stand for. */
export const actionAliases: Readonly<Record<string, (typeof actionNames)[number]>> = {
  power_on: 'start',
  poweron: 'start',
  boot: 'start',
  power_off: 'stop',
  poweroff: 'stop',
  power_cycle: 'reset',
};

export const ServerAction = Type.Object(
  {
    id: Id,
    command: OneOf(actionCommands),
    server_id: Id,
    status: OneOf(['queued', 'running', 'success', 'error']),
    progress: Type.Integer({ minimum: 0, maximum: 100, description: 'Percent.' }),
    changed: Type.Boolean({ description: 'False when the server was in the wanted state already.' }),
    outcome: Nullable(Type.String({ description: 'Of a shutdown: `stopped`.' })),
    requested_by_key: Nullable(Type.String()),
    created_at: Moment,
    started_at: Nullable(Moment),
    finished_at: Nullable(Moment),
    error: Nullable(Type.Object({ code: Type.String(), message: Type.String() })),
  },
  { title: 'ServerAction' },
);
export type ServerAction = Static<typeof ServerAction>;

const PublicIp = Type.Object({
  address: Type.String(),
  family: Type.Integer({ enum: [4, 6] }),
  prefix_length: Type.Integer(),
  gateway: Type.String(),
  primary: Type.Boolean(),
  reverse_dns: Nullable(Type.String()),
});

const PrivateNetworkAttachment = Type.Object({
  network_id: Id,
  name: Type.String(),
  cidr: Type.String(),
  ip: Type.String(),
  mac_address: Type.String(),
  state: OneOf(['attaching', 'attached', 'detaching', 'error']),
  is_last_interface: Type.Boolean(),
  attached_at: Nullable(Moment),
});

const serverFields = {
  id: Id,
  tenant_id: Id,
  order_id: Id,
  name: Type.String(),
  hostname: Type.String(),
  status: OneOf(serverStatuses, 'The one state to poll.'),
  provisioning_state: OneOf(provisioningStates, '`ready` means that the guest is addressable.'),
  power_state: OneOf(powerStates),
  locked: Type.Boolean({ description: 'True while `current_action` runs.' }),
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
  public_ips: Type.Array(PublicIp),
  private_networks: Type.Array(PrivateNetworkAttachment),
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

export const Server = Type.Object(serverFields, { title: 'Server' });
export type Server = Static<typeof Server>;

export const CreatedServer = Type.Object(
  {
    ...serverFields,
    root_password: Type.String({
      description: 'Only in this answer; it is not stored anywhere that could be asked for it again.',
    }),
  },
  { title: 'CreatedServer' },
);
export type CreatedServer = Static<typeof CreatedServer>;

export const Pagination = Type.Object(
  {
    limit: Type.Integer(),
    total: Type.Integer(),
    has_more: Type.Boolean(),
    next_cursor: Nullable(Type.String()),
  },
  { title: 'Pagination' },
);

export const ServerList = Type.Object(
  { servers: Type.Array(Server), pagination: Pagination },
  { title: 'ServerList' },
);
export const ServerActionList = Type.Object(
  { actions: Type.Array(ServerAction), pagination: Pagination },
  { title: 'ServerActionList' },
);

export const Tenant = Type.Object(
  {
    id: Id,
    name: Type.String(),
    slug: Type.String(),
    status: OneOf(['active', 'suspended', 'closed', 'no_billing_profile']),
    is_default: Type.Boolean({ description: 'Used by v1 and by v2 without `tenant`.' }),
    billing_account_id: Id,
    currency: Type.String(),
    server_count: Type.Integer(),
    api_access: Type.Object({
      allowed: Type.Boolean(),
      code: Nullable(Type.String()),
      reason: Nullable(Type.String()),
    }),
    created_at: Moment,
  },
  { title: 'Tenant' },
);
export type Tenant = Static<typeof Tenant>;
export const TenantList = Type.Object(
  { tenants: Type.Array(Tenant), pagination: Pagination },
  { title: 'TenantList' },
);

/** A workspace by id or slug. */
export const TenantSelector = Type.Union([Id, Type.String({ minLength: 1, maxLength: 64 })], {
  description: 'A workspace that the key may act on, by id or slug (v2; v1 ignores it).',
});

const SlugOrId = (what: string) =>
  Type.Union([Type.String({ minLength: 1, maxLength: 64 }), Id], { description: `${what}, by slug or id.` });

export const CreateServerRequest = Type.Object(
  {
    plan: SlugOrId('The plan'),
    image: SlugOrId('The image'),
    location: Type.Optional(SlugOrId('The location; needed where there is more than one')),
    name: Type.Optional(Type.String({ minLength: 1, maxLength: 64, pattern: '^\\S(.*\\S)?$' })),
    hostname: Type.Optional(
      Type.String({
        maxLength: 253,
        pattern: '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$',
      }),
    ),
    ssh_keys: Type.Optional(
      Type.Array(Type.String({ minLength: 16, maxLength: 8192 }), {
        maxItems: 20,
        description: 'Public keys as text.',
      }),
    ),
    user_data: Type.Optional(Type.String({ maxLength: 65_536 })),
    labels: Type.Optional(
      Type.Record(Type.String({ pattern: '^[A-Za-z0-9._/-]{1,63}$' }), Type.String({ maxLength: 255 }), {
        maxProperties: 32,
        additionalProperties: false,
      }),
    ),
    billing_cycle: Type.Optional(Type.String({ description: '`hourly`, which is also what absence means.' })),
    tenant: Type.Optional(TenantSelector),
  },
  { title: 'CreateServerRequest', additionalProperties: false },
);
export type CreateServerRequest = Static<typeof CreateServerRequest>;

export const ActionRequest = Type.Object(
  {
    action: Type.String({
      description:
        '`start`, `shutdown` (ACPI halt), `stop` (power off), `reboot` (ACPI) or `reset` (hard reset).',
    }),
    tenant: Type.Optional(TenantSelector),
  },
  { title: 'ActionRequest', additionalProperties: false },
);
export type ActionRequest = Static<typeof ActionRequest>;

/** A body that may only select the workspace. */
export const SelectionRequest = Type.Object(
  { tenant: Type.Optional(TenantSelector) },
  { title: 'SelectionRequest', additionalProperties: false },
);

export const ListServersQuery = Type.Object(
  {
    status: Type.Optional(Type.String({ description: 'One or more of the statuses, separated by commas.' })),
    name: Type.Optional(Type.String({ maxLength: 64 })),
    plan: Type.Optional(Type.String({ maxLength: 64, description: 'Slug.' })),
    location: Type.Optional(Type.String({ maxLength: 64, description: 'Slug.' })),
    sort: Type.Optional(OneOf(['created_at', '-created_at'])),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
    cursor: Type.Optional(Type.String({ maxLength: 200 })),
  },
  { additionalProperties: false },
);
export type ListServersQuery = Static<typeof ListServersQuery>;

export const ErrorAnswer = Type.Object(
  {
    error: Type.Object({
      code: Type.String(),
      reason: Type.Optional(Type.String()),
      message: Type.String(),
      request_id: Type.String(),
      retryable: Type.Boolean(),
      doc_url: Type.String(),
      details: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
      fields: Type.Optional(
        Type.Array(
          Type.Object({
            path: Type.String(),
            code: Type.String(),
            message: Type.String(),
            allowed: Type.Optional(Type.Array(Type.Unknown())),
          }),
        ),
      ),
    }),
  },
  { title: 'Error' },
);
