/**
 * The calls of the customer API and their bodies. Made by tools/generate-client.ts out of the OpenAPI document: change the
 * contract and make it anew, not this file.
 */
import { type CallOptions, Caller, List } from '../caller.ts';

export type Account = {
  id: number;
  name: string;
  status: 'active' | 'suspended' | 'closed';
  currency: string;
  /** Decimal text. */
  credit_balance: string;
  hourly_billing: {
    /** Another hourly-billed server could be deployed now. */
    eligible: boolean;
    reason: string | null;
  };
  limits: {
    servers: {
      max: number | null;
      used: number;
    };
    networks: {
      max: number | null;
      used: number;
    };
    keys: {
      max: number | null;
      used: number;
    };
    deploys_per_hour: {
      max: number | null;
      used: number;
    };
  };
  api_usage: Usage;
  /** Earned by servers beyond the first, up to now. */
  extra_server_allowance_tb: number;
  /** The same as `extra_server_allowance_tb`. */
  instance_earned_tb: number;
  /** What a server beyond the first earns in a full month, in GB. */
  extra_per_additional_server_gb: number;
  /** What the servers beyond the first would earn in the rest of the month; not spendable. */
  instance_potential_tb: number;
  /** What is left of `instance_earned_tb`; the free part is used up first. */
  instance_remaining_tb: number;
  /** What `allowance_tb` will be at the end of the month if the servers run on; not spendable. */
  potential_allowance_tb: number;
  /** Of every account, each month. */
  base_allowance_tb: number;
  /** For the full years since the account was opened. */
  tenure_bonus_tb: number;
  /** `base_allowance_tb` and `tenure_bonus_tb`. */
  free_allowance_tb: number;
  /** What may be used up to now: the free part and what was earned. */
  allowance_tb: number;
  /** When the next month’s allowance begins. */
  reset_at: string;
  bandwidth: {
    period: string;
    source: 'hypervisor' | 'telemetry';
    /** Which bytes count against the pool. */
    pool_counts: 'outbound' | 'total';
    /** Bytes of one TB here. */
    tb_bytes: number;
    used_bytes: number;
    remaining_bytes: number;
    /** If the month goes on as it began. */
    projected_bytes: number;
    /** The running month only; destroyed servers that existed in it are among them. */
    servers: BandwidthRow[];
  };
  as_of: string;
};

export type AccountEventData = {
  tenant_id: number;
  reason: 'account_suspended' | 'account_closed';
  /** Path of the API where the thing can be read. */
  href: string;
};

export type ActionEventData = {
  action_id: number;
  server_id: number;
  tenant_id: number;
  /** Path of the API where the thing can be read. */
  href: string;
};

export type ActionRequest = {
  /** `start`, `shutdown` (ACPI halt), `stop` (power off), `reboot` (ACPI) or `reset` (hard reset); the others are names of theirs. */
  action: 'start' | 'shutdown' | 'stop' | 'reboot' | 'reset' | 'power_on' | 'poweron' | 'boot' | 'power_off' | 'poweroff' | 'power_cycle';
  /** Of a shutdown: how long the guest may take, 120 where absent; 0 only asks it. */
  timeout_s?: number | undefined;
  /** Of a shutdown: what comes when the guest did not halt; `stop` cuts its power. */
  on_timeout?: 'fail' | 'stop' | undefined;
};

export type AttachmentList = {
  networks: PrivateNetworkAttachment[];
  pagination: Pagination;
};

export type AttachRequest = {
  network_id: number;
  /** An address of the network; absent: the lowest free one. */
  ip?: string | undefined;
};

export type BandwidthRow = {
  server_id: number;
  server_name: string;
  /** A UTC month such as `2025-11`, or a day such as `2025-11-03`. */
  period: string;
  period_start: string;
  period_end: string;
  inbound_bytes: number;
  outbound_bytes: number;
  total_bytes: number;
  /** What of it counts against the account’s pool. */
  pool_bytes: number;
  /** Its part of what all servers of the account used of the pool in the period. */
  pool_share: number;
  /** False: nothing was measured, and the zeros mean unknown. */
  sampled: boolean;
  last_sampled_at: string | null;
  server_deleted: boolean;
};

export type ChangeNetworkRequest = {
  name?: string | undefined;
  description?: string | null | undefined;
  /** Merged with those that are there; null takes one away. */
  labels?: Record<string, string | null> | undefined;
};

export type CreatedServer = {
  id: number;
  tenant_id: number;
  order_id: number;
  name: string;
  hostname: string;
  /** The one state to poll. */
  status: 'queued' | 'provisioning' | 'failed' | 'deleting' | 'unknown' | 'starting' | 'running' | 'stopping' | 'stopped' | 'rebooting';
  /** `ready` means that the guest is addressable. */
  provisioning_state: 'queued' | 'provisioning' | 'ready' | 'failed' | 'deleting';
  power_state: 'unknown' | 'starting' | 'running' | 'stopping' | 'stopped' | 'rebooting';
  /** True while `current_action` runs. */
  locked: boolean;
  status_changed_at: string;
  plan: {
    id: number;
    slug: string;
    name: string;
    vcpus: number;
    memory_mb: number;
    disk_gb: number;
  };
  location: {
    id: number;
    slug: string;
    name: string;
    country: string;
  };
  image: {
    id: number;
    slug: string;
    name: string;
    family: string;
  };
  public_ips: {
    address: string;
    family: 4 | 6;
    prefix_length: number;
    gateway: string;
    primary: boolean;
    reverse_dns: string | null;
  }[];
  private_networks: PrivateNetworkAttachment[];
  firewall: {
    /** False: nothing is filtered. */
    enabled: boolean;
    /** Whether the hypervisor has this version. */
    status: 'applied' | 'pending' | 'failed';
    rule_count: number;
  };
  billing: {
    cycle: 'hourly';
    /** Decimal text. */
    price_hourly: string;
    /** Decimal text. */
    price_monthly_cap: string;
    currency: string;
    started_at: string | null;
  };
  current_action: ServerAction | null;
  failure: {
    code: string;
    message: string;
    at: string;
    operator_action_required: boolean;
  } | null;
  labels: Record<string, string>;
  created_at: string;
  provisioned_at: string | null;
  updated_at: string;
  /** Only in this answer, and in its replays to the same key under the same `Idempotency-Key` within 24 hours. */
  root_password: string;
};

export type CreateNetworkRequest = {
  name: string;
  /** A block of /16 to /29 within 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16 that no other network of the account touches. Absent: the next free /24. */
  cidr?: string | undefined;
  /** The location; needed where there is more than one, by slug or id. */
  location?: string | number | undefined;
  description?: string | null | undefined;
  labels?: Record<string, string> | undefined;
};

export type CreateServerRequest = {
  /** The plan, by slug or id. */
  plan: string | number;
  /** The image, by slug or id. */
  image: string | number;
  /** The location; needed where there is more than one, by slug or id. */
  location?: string | number | undefined;
  name?: string | undefined;
  hostname?: string | undefined;
  /** Public keys as text, as in `authorized_keys`. */
  ssh_keys?: string[] | undefined;
  /** For cloud-init; at most 64 KiB as UTF-8. */
  user_data?: string | undefined;
  /** One existing private network of the workspace and location, joined from the first boot on. */
  network_id?: number | undefined;
  /** Its address there; absent: the lowest free one. */
  network_ip?: string | undefined;
  /** `false`: no public address; reached through `network_id`, which is then required. */
  public_ip?: boolean | undefined;
  labels?: Record<string, string> | undefined;
  /** What absence means, too. */
  billing_cycle?: 'hourly' | undefined;
  /** Says in a 200 what the call would do and cost, and does nothing; takes no deployment. */
  dry_run?: boolean | undefined;
};

export type ErrorBody = {
  error: {
    /** Branch on this. */
    code: 'bad_request' | 'unauthorized' | 'payment_required' | 'forbidden' | 'not_found' | 'method_not_allowed' | 'conflict' | 'precondition_failed' | 'payload_too_large' | 'unsupported_media_type' | 'validation_failed' | 'rate_limited' | 'internal_error' | 'unavailable';
    reason?: string | undefined;
    request_id: string;
    retryable: boolean;
    /** Of a 402 or `order_refused`: the order that buys nothing. */
    order_id?: number | undefined;
    /** Of a 402 or `order_refused`: the charge, absent when there was none. */
    payment_attempt_id?: number | undefined;
    details?: Record<string, unknown> | undefined;
    fields?: {
      path: string;
      code: string;
      message: string;
      allowed?: unknown[] | undefined;
    }[] | undefined;
    message: string;
    doc_url: string;
  };
};

export type Key = {
  /** The public part of the token. */
  key_id: string;
  name: string;
  /** How the token begins. */
  prefix: string;
  /** A read key may use safe methods only. */
  scope: 'read' | 'full';
  /** `all`: also workspaces that are made later. */
  tenant_access: 'all' | 'selected';
  /** Workspaces that the key may act on now, the default one first. */
  tenants: number[];
  default_tenant_id: number;
  organization_id: number;
  created_at: string;
  expires_at: string | null;
  last_used_at: string | null;
  rate_limit: {
    /** Requests within any window. */
    limit: number;
    window_s: number;
    /** After this call. */
    remaining: number;
  };
};

export type KeyEventData = {
  key_id: string;
  organization_id: number;
  /** Path of the API where the thing can be read. */
  href: string;
};

export type Network = {
  id: number;
  tenant_id: number;
  name: string;
  description: string | null;
  cidr: string;
  /** A private network has no router; the first address is kept free. */
  gateway: null;
  location: {
    id: number;
    slug: string;
  };
  state: 'active';
  sync: {
    state: 'pending' | 'synced' | 'error';
    last_synced_at: string | null;
    error: {
      code: string;
      message: string;
      at: string;
    } | null;
  };
  /** Servers on it, those on their way out included. */
  member_count: number;
  available_ips: number;
  labels: Record<string, string>;
  created_at: string;
  updated_at: string;
  members: {
    server_id: number;
    name: string;
    ip: string;
    mac_address: string;
    state: 'attaching' | 'attached' | 'detaching' | 'error';
  }[];
};

export type NetworkEventData = {
  network_id: number;
  tenant_id: number;
  /** Path of the API where the thing can be read. */
  href: string;
};

export type NetworkList = {
  networks: NetworkSummary[];
  limits: {
    /** Networks that the account may have. */
    max: number;
    used: number;
  };
  pagination: Pagination;
};

export type NetworkSummary = {
  id: number;
  tenant_id: number;
  name: string;
  description: string | null;
  cidr: string;
  /** A private network has no router; the first address is kept free. */
  gateway: null;
  location: {
    id: number;
    slug: string;
  };
  state: 'active';
  sync: {
    state: 'pending' | 'synced' | 'error';
    last_synced_at: string | null;
    error: {
      code: string;
      message: string;
      at: string;
    } | null;
  };
  /** Servers on it, those on their way out included. */
  member_count: number;
  available_ips: number;
  labels: Record<string, string>;
  created_at: string;
  updated_at: string;
};

export type Pagination = {
  limit: number;
  total: number;
  has_more: boolean;
  next_cursor: string | null;
};

export type PrivateNetworkAttachment = {
  network_id: number;
  name: string;
  cidr: string;
  ip: string;
  mac_address: string;
  state: 'attaching' | 'attached' | 'detaching' | 'error';
  /** The guest sees the change after its next reboot only. */
  requires_reboot: boolean;
  /** Nothing else leads to the server, so this card can’t be detached. */
  is_last_interface: boolean;
  attached_at: string | null;
};

export type Problem = {
  /** Where this kind of error is described. */
  type: string;
  title: string;
  status: number;
  detail: string;
  /** The request id. */
  instance: string;
  /** Branch on this. */
  code: 'bad_request' | 'unauthorized' | 'payment_required' | 'forbidden' | 'not_found' | 'method_not_allowed' | 'conflict' | 'precondition_failed' | 'payload_too_large' | 'unsupported_media_type' | 'validation_failed' | 'rate_limited' | 'internal_error' | 'unavailable';
  reason?: string | undefined;
  request_id: string;
  retryable: boolean;
  /** Of a 402 or `order_refused`: the order that buys nothing. */
  order_id?: number | undefined;
  /** Of a 402 or `order_refused`: the charge, absent when there was none. */
  payment_attempt_id?: number | undefined;
  details?: Record<string, unknown> | undefined;
  fields?: {
    path: string;
    code: string;
    message: string;
    allowed?: unknown[] | undefined;
  }[] | undefined;
  /** Of a 429: the policies of `RateLimit` that were used up. */
  'violated-policies'?: string[] | undefined;
};

export type SelectionRequest = Record<string, never>;

export type Server = {
  id: number;
  tenant_id: number;
  order_id: number;
  name: string;
  hostname: string;
  /** The one state to poll. */
  status: 'queued' | 'provisioning' | 'failed' | 'deleting' | 'unknown' | 'starting' | 'running' | 'stopping' | 'stopped' | 'rebooting';
  /** `ready` means that the guest is addressable. */
  provisioning_state: 'queued' | 'provisioning' | 'ready' | 'failed' | 'deleting';
  power_state: 'unknown' | 'starting' | 'running' | 'stopping' | 'stopped' | 'rebooting';
  /** True while `current_action` runs. */
  locked: boolean;
  status_changed_at: string;
  plan: {
    id: number;
    slug: string;
    name: string;
    vcpus: number;
    memory_mb: number;
    disk_gb: number;
  };
  location: {
    id: number;
    slug: string;
    name: string;
    country: string;
  };
  image: {
    id: number;
    slug: string;
    name: string;
    family: string;
  };
  public_ips: {
    address: string;
    family: 4 | 6;
    prefix_length: number;
    gateway: string;
    primary: boolean;
    reverse_dns: string | null;
  }[];
  private_networks: PrivateNetworkAttachment[];
  firewall: {
    /** False: nothing is filtered. */
    enabled: boolean;
    /** Whether the hypervisor has this version. */
    status: 'applied' | 'pending' | 'failed';
    rule_count: number;
  };
  billing: {
    cycle: 'hourly';
    /** Decimal text. */
    price_hourly: string;
    /** Decimal text. */
    price_monthly_cap: string;
    currency: string;
    started_at: string | null;
  };
  current_action: ServerAction | null;
  failure: {
    code: string;
    message: string;
    at: string;
    operator_action_required: boolean;
  } | null;
  labels: Record<string, string>;
  created_at: string;
  provisioned_at: string | null;
  updated_at: string;
};

export type ServerAction = {
  id: number;
  command: 'create' | 'destroy' | 'start' | 'shutdown' | 'stop' | 'reboot' | 'reset';
  server_id: number;
  status: 'queued' | 'running' | 'success' | 'error';
  /** Percent. */
  progress: number;
  /** False when the server was in the wanted state already. */
  changed: boolean;
  outcome: 'stopped' | 'signal_sent' | 'timeout' | null;
  requested_by_key: string | null;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  error: {
    code: string;
    message: string;
  } | null;
};

export type ServerActionList = {
  actions: ServerAction[];
  pagination: Pagination;
};

export type ServerBandwidth = {
  server_id: number;
  granularity: 'month' | 'day';
  /** Where the figures come from. */
  source: 'hypervisor' | 'telemetry';
  current: BandwidthRow;
  /** Newest first. */
  history: BandwidthRow[];
  /** Bandwidth is attributed to servers; the pool is the account’s, and no server has a cap. */
  attribution_only: boolean;
};

export type ServerEventData = {
  server_id: number;
  tenant_id: number;
  /** Path of the API where the thing can be read. */
  href: string;
};

export type ServerFirewall = {
  server_id: number;
  /** False: nothing is filtered. */
  enabled: boolean;
  /** What becomes of traffic that no rule fits. */
  policies: {
    inbound: 'accept' | 'drop';
    outbound: 'accept' | 'drop';
  };
  /** Whether the hypervisor has this version. */
  status: 'applied' | 'pending' | 'failed';
  applied_at: string | null;
  /** Rises with every change. */
  version: number;
  /** The same for the same filtering. */
  fingerprint: string;
  groups: {
    id: number;
    name: string;
  }[];
  /** In their order: the first that fits decides. */
  rules: {
    id: number;
    position: number;
    direction: 'inbound' | 'outbound';
    action: 'accept' | 'drop';
    protocol: 'any' | 'tcp' | 'udp' | 'icmp';
    ports: string | null;
    sources: string[];
    destinations: string[];
    description: string;
    group_id: number | null;
    /** In the portal. */
    editable: boolean;
  }[];
  /** Rules of the platform, applied before all others. They cannot be edited. */
  implicit_rules: {
    direction: 'inbound' | 'outbound';
    action: 'accept' | 'drop';
    protocol: 'any' | 'tcp' | 'udp' | 'icmp';
    description: string;
  }[];
};

export type ServerForecast = {
  would_create: boolean;
  /** Whether the account may deploy this plan. */
  eligible: boolean;
  reason: string | null;
  due_now: string | null;
  /** Decimal text. */
  price_hourly: string;
  /** Decimal text. */
  price_monthly_cap: string;
  currency: string;
  credit_after_first_day: string | null;
};

export type ServerList = {
  servers: Server[];
  pagination: Pagination;
};

export type Tenant = {
  id: number;
  name: string;
  slug: string;
  status: 'active' | 'suspended' | 'closed' | 'no_billing_profile';
  /** Used by v1 and by v2 without `tenant`. */
  is_default: boolean;
  billing_account_id: number;
  currency: string;
  server_count: number;
  /** Private networks. */
  network_count: number;
  api_access: {
    allowed: boolean;
    code: string | null;
    reason: string | null;
  };
  created_at: string;
};

export type TenantList = {
  tenants: Tenant[];
  pagination: Pagination;
};

export type TestEventData = {
  endpoint_id: number;
  href: string | null;
};

export type UpdateServerRequest = {
  name?: string | undefined;
  /** As it is shown here; the guest itself is not touched. */
  hostname?: string | undefined;
  /** Merged into what there is; null takes a label away. */
  labels?: Record<string, string | null> | undefined;
};

export type Usage = {
  tenant_id: number;
  period: string;
  /** Open while the month runs. */
  state: 'open' | 'closed';
  /** Counted requests of all keys of the account, this call included. */
  count: number;
  /** Free requests of the month. */
  included_count: number;
  /** Requests above the free quota. */
  overage_count: number;
  /** Those of them that have been charged. */
  overage_charged_count: number;
  /** Decimal text. */
  overage_amount: string;
  /** The month’s requests if it goes on as it began. */
  projected_count: number;
  /** Decimal text. */
  projected_overage_amount: string;
  currency: string;
  price: {
    per_requests: number;
    /** Decimal text. */
    amount: string;
  };
  /** When the next month begins. */
  resets_at: string;
  as_of: string;
  /** Who called, most requests first. */
  keys: {
    key_id: string | null;
    name: string;
    count: number;
  }[];
  /** Every UTC day of the month up to now; a day without requests has 0. */
  days: {
    date: string;
    count: number;
  }[];
  group_by: 'day' | 'key' | null;
  groups: {
    group: string | null;
    name: string | null;
    count: number;
  }[] | null;
};

export type UsageEventData = {
  tenant_id: number;
  /** The UTC month. */
  period: string;
  /** Of the free requests of the month: 50, 80 or 100. */
  percent: number;
  /** Path of the API where the thing can be read. */
  href: string;
};

/** What kind of error it is; the list is closed. */
export const errorCodes = ['bad_request', 'unauthorized', 'payment_required', 'forbidden', 'not_found', 'method_not_allowed', 'conflict', 'precondition_failed', 'payload_too_large', 'unsupported_media_type', 'validation_failed', 'rate_limited', 'internal_error', 'unavailable'] as const;
export type ErrorCode = (typeof errorCodes)[number];

/** Which case it was, as far as it is known today; new ones may appear. */
export type ErrorReason =
  | 'account_closed'
  | 'account_suspended'
  | 'already_attached'
  | 'auth_rate'
  | 'billing_cycle_not_supported'
  | 'capacity_unavailable'
  | 'charge_declined'
  | 'charge_unconfirmed'
  | 'cidr_not_allowed'
  | 'cidr_overlap'
  | 'credit_required'
  | 'deploy_rate'
  | 'etag_mismatch'
  | 'hourly_not_eligible'
  | 'idempotency_in_progress'
  | 'idempotency_key_reused'
  | 'immutable_field'
  | 'internal_error'
  | 'invalid_cursor'
  | 'invalid_fields'
  | 'invalid_header'
  | 'invalid_json'
  | 'ip_in_use'
  | 'key_rate'
  | 'last_interface'
  | 'limit_exceeded'
  | 'network_in_use'
  | 'no_billing_profile'
  | 'not_found'
  | 'order_refused'
  | 'payload_too_large'
  | 'provisioning_failed'
  | 'read_only_key'
  | 'server_busy'
  | 'server_not_ready'
  | 'tenant_conflict'
  | 'unauthorized'
  | 'unavailable'
  | 'unsupported_action'
  | 'unsupported_media_type';

/** What a webhook delivers, once its signature has been verified. */
export type WebhookEvent =
  /** A server was ordered; provisioning begins. */
  | {
    type: 'server.created';
    /** When it happened, not when it was sent. */
    timestamp: string;
    data: ServerEventData;
  }
  /** A server is ready and addressable. */
  | {
    type: 'server.provisioned';
    /** When it happened, not when it was sent. */
    timestamp: string;
    data: ServerEventData;
  }
  /** Provisioning failed; an operator has to look at it. */
  | {
    type: 'server.provisioning_failed';
    /** When it happened, not when it was sent. */
    timestamp: string;
    data: ServerEventData;
  }
  /** A server was started or stopped. */
  | {
    type: 'server.power_changed';
    /** When it happened, not when it was sent. */
    timestamp: string;
    data: ServerEventData;
  }
  /** A server is gone, its addresses are released. */
  | {
    type: 'server.destroyed';
    /** When it happened, not when it was sent. */
    timestamp: string;
    data: ServerEventData;
  }
  /** The hypervisors have the network as it is described. */
  | {
    type: 'network.synced';
    /** When it happened, not when it was sent. */
    timestamp: string;
    data: NetworkEventData;
  }
  /** The hypervisors could not be brought in line with the network. */
  | {
    type: 'network.sync_failed';
    /** When it happened, not when it was sent. */
    timestamp: string;
    data: NetworkEventData;
  }
  /** An action of a server ended, well or badly. */
  | {
    type: 'action.finished';
    /** When it happened, not when it was sent. */
    timestamp: string;
    data: ActionEventData;
  }
  /** The account has used half, 80 % or all of its free requests of the month. */
  | {
    type: 'usage.threshold';
    /** When it happened, not when it was sent. */
    timestamp: string;
    data: UsageEventData;
  }
  /** An API key was created. */
  | {
    type: 'key.created';
    /** When it happened, not when it was sent. */
    timestamp: string;
    data: KeyEventData;
  }
  /** An API key was revoked. */
  | {
    type: 'key.revoked';
    /** When it happened, not when it was sent. */
    timestamp: string;
    data: KeyEventData;
  }
  /** The account was suspended or closed. */
  | {
    type: 'account.locked';
    /** When it happened, not when it was sent. */
    timestamp: string;
    data: AccountEventData;
  }
  /** A test event, sent with the test button of the endpoint. */
  | {
    type: 'webhook.test';
    /** When it happened, not when it was sent. */
    timestamp: string;
    data: TestEventData;
  };

export interface ListServersQuery {
  /** One or more of `queued`, `provisioning`, `failed`, `deleting`, `unknown`, `starting`, `running`, `stopping`, `stopped`, `rebooting`, separated by commas. */
  status?: string | undefined;
  name?: string | undefined;
  /** Slug. */
  plan?: string | undefined;
  /** Slug. */
  location?: string | undefined;
  /** Servers on this private network. */
  network_id?: number | undefined;
  /** Terms such as `env=prod`, `tier!=test`, `owner` or `!old`, separated by commas; all must hold. */
  label?: string | undefined;
  /** A moment as RFC 3339 with its offset, or a UTC day. */
  created_after?: string | undefined;
  sort?: 'created_at' | '-created_at' | 'name' | '-name' | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface ReadServerQuery {
  /** Such as `status:running`: answers when the server has that status, when it has failed, or after 30 seconds (`Prefer: wait=N` shortens that). */
  wait_for?: string | undefined;
}

export interface ListServerActionsQuery {
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface ListNetworksQuery {
  name?: string | undefined;
  /** Terms such as `env=prod`, `tier!=test`, `owner` or `!old`, separated by commas; all must hold. */
  label?: string | undefined;
  /** Networks of this server. */
  server_id?: number | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface ReadServerBandwidthQuery {
  /** A UTC month or day. */
  from?: string | undefined;
  /** A UTC month or day. */
  to?: string | undefined;
  /** Default `month`. */
  granularity?: 'month' | 'day' | undefined;
}

export interface ReadUsageQuery {
  /** A UTC calendar month such as `2025-11`; the running one when left out. */
  period?: string | undefined;
  /** What `groups` counts by, and what the lines of `Accept: text/csv` are (there `day` when left out). */
  group_by?: 'day' | 'key' | undefined;
}

/** A method for each call of the API. */
export class Api extends Caller {
  /** List workspaces. The workspaces that the key may act on, the default one first. `api_access` says whether a call on one would pass its account gate, and why not. */
  listTenants(options: CallOptions = {}): List<TenantList, Tenant> {
    return new List(this, { method: 'GET', path: `/api/v2/tenants`, options }, 'tenants');
  }

  /** List servers. The servers of the workspace, newest first unless `sort` says otherwise. */
  listServers(options: ListServersQuery & CallOptions = {}): List<ServerList, Server> {
    return new List(this, { method: 'GET', path: `/api/v2/servers`, query: ['status', 'name', 'plan', 'location', 'network_id', 'label', 'created_after', 'sort', 'limit', 'cursor'], options }, 'servers');
  }

  /** Deploy a server. Orders one hourly-billed server and starts provisioning at once. Every call is a new order, unless an `Idempotency-Key` says that it is the same one. The answer is the only one that carries `root_password`. Read the server with `wait_for=status:running` until it runs. */
  createServer(body: CreateServerRequest & { dry_run?: false | undefined }, options?: CallOptions): Promise<CreatedServer>;
  createServer(body: CreateServerRequest & { dry_run: true }, options?: CallOptions): Promise<ServerForecast>;
  createServer(body: CreateServerRequest, options: CallOptions = {}): Promise<ServerForecast | CreatedServer> {
    return this.call<ServerForecast | CreatedServer>({ method: 'POST', path: `/api/v2/servers`, body, takesIdempotencyKey: true, options });
  }

  /** Read a server. One server of the workspace. With `wait_for` the answer comes when the server has got there, so that one call takes the place of many. */
  readServer(id: number, options: ReadServerQuery & CallOptions = {}): Promise<Server> {
    return this.call<Server>({ method: 'GET', path: `/api/v2/servers/${encodeURIComponent(id)}`, query: ['wait_for'], options });
  }

  /** Rename or label a server. Changes what is given and leaves the rest. Labels are merged; null takes one away. The guest itself is not touched. */
  updateServer(id: number, body: UpdateServerRequest, options: CallOptions = {}): Promise<Server> {
    return this.call<Server>({ method: 'PATCH', path: `/api/v2/servers/${encodeURIComponent(id)}`, body, options });
  }

  /** Destroy a server. Removes the guest and its disk and gives its addresses back. Asked again while it runs, it answers with the same action; afterwards the server is not found. */
  destroyServer(id: number, options: CallOptions = {}): Promise<ServerAction> {
    return this.call<ServerAction>({ method: 'DELETE', path: `/api/v2/servers/${encodeURIComponent(id)}`, options });
  }

  /** List actions of a server. What was asked of the server, newest first. */
  listServerActions(id: number, options: ListServerActionsQuery & CallOptions = {}): List<ServerActionList, ServerAction> {
    return new List(this, { method: 'GET', path: `/api/v2/servers/${encodeURIComponent(id)}/actions`, query: ['limit', 'cursor'], options }, 'actions');
  }

  /** Start, stop or restart a server. `shutdown` is the ACPI halt, `stop` switches the power off. A server that is in the wanted state already is left alone: 200 with `changed: false`. */
  actOnServer(id: number, body: ActionRequest, options: CallOptions = {}): Promise<ServerAction> {
    return this.call<ServerAction>({ method: 'POST', path: `/api/v2/servers/${encodeURIComponent(id)}/actions`, body, takesIdempotencyKey: true, options });
  }

  /** Read an action. One action, also of a server that is gone by now. With `Prefer: wait=N` the answer comes when it has finished. */
  readAction(id: number, options: CallOptions = {}): Promise<ServerAction> {
    return this.call<ServerAction>({ method: 'GET', path: `/api/v2/actions/${encodeURIComponent(id)}`, options });
  }

  /** List private networks. The private networks of the workspace, oldest first, and how many more it may have. */
  listNetworks(options: ListNetworksQuery & CallOptions = {}): List<NetworkList, NetworkSummary> {
    return new List(this, { method: 'GET', path: `/api/v2/networks`, query: ['name', 'label', 'server_id', 'limit', 'cursor'], options }, 'networks');
  }

  /** Create a private network. A network belongs to one location and reaches the servers of this account alone. Its `cidr` never changes. It is usable at once; `sync.state` turns `synced` when the hypervisors have it. */
  createNetwork(body: CreateNetworkRequest, options: CallOptions = {}): Promise<Network> {
    return this.call<Network>({ method: 'POST', path: `/api/v2/networks`, body, takesIdempotencyKey: true, options });
  }

  /** Read a private network. One network with its members. */
  readNetwork(id: number, options: CallOptions = {}): Promise<Network> {
    return this.call<Network>({ method: 'GET', path: `/api/v2/networks/${encodeURIComponent(id)}`, options });
  }

  /** Change a private network. Changes name, description and labels. Labels are merged; a label of null is taken away. `cidr` and `location` never change. */
  changeNetwork(id: number, body: ChangeNetworkRequest, options: CallOptions = {}): Promise<Network> {
    return this.call<Network>({ method: 'PATCH', path: `/api/v2/networks/${encodeURIComponent(id)}`, body, options });
  }

  /** Delete a private network. Deletes a network without members. A server that is just being detached still counts: then the 409 is `retryable` and says when in `Retry-After`. */
  deleteNetwork(id: number, options: CallOptions = {}): Promise<undefined> {
    return this.call<undefined>({ method: 'DELETE', path: `/api/v2/networks/${encodeURIComponent(id)}`, answersNothing: true, options });
  }

  /** Sync a private network. Applies the stored membership to the hypervisors again. Calls while one sync waits are the same sync; how it ends stands in `sync`. */
  syncNetwork(id: number, options: CallOptions = {}): Promise<Network> {
    return this.call<Network>({ method: 'POST', path: `/api/v2/networks/${encodeURIComponent(id)}/sync`, isIdempotent: true, options });
  }

  /** List private networks of a server. The cards of the server on private networks, as in its `private_networks`. */
  listServerNetworks(id: number, options: CallOptions = {}): List<AttachmentList, PrivateNetworkAttachment> {
    return new List(this, { method: 'GET', path: `/api/v2/servers/${encodeURIComponent(id)}/networks`, options }, 'networks');
  }

  /** Attach a server to a private network. Gives the server a card on the network, with the address you name or the lowest free one. Poll the server until the card’s `state` is `attached`. Asked again with the same or no address, it answers 200 with the card that is there. */
  attachServer(id: number, body: AttachRequest, options: CallOptions = {}): Promise<PrivateNetworkAttachment> {
    return this.call<PrivateNetworkAttachment>({ method: 'POST', path: `/api/v2/servers/${encodeURIComponent(id)}/networks`, body, isIdempotent: true, options });
  }

  /** Detach a server from a private network. Takes the card away. Poll the server until it is not in `private_networks` any more. A server without a public address keeps its last card. */
  detachServer(id: number, networkId: number, options: CallOptions = {}): Promise<PrivateNetworkAttachment> {
    return this.call<PrivateNetworkAttachment>({ method: 'DELETE', path: `/api/v2/servers/${encodeURIComponent(id)}/networks/${encodeURIComponent(networkId)}`, options });
  }

  /** Read the account. Credit, limits, counted requests and the bandwidth pool of the running month. Allowances are the account’s: servers share them, and none has one of its own. */
  readAccount(options: CallOptions = {}): Promise<Account> {
    return this.call<Account>({ method: 'GET', path: `/api/v2/account`, options });
  }

  /** Read the bandwidth of a server. What the server used, by UTC month or day, newest first; the last twelve months unless `from` and `to` say otherwise. The running month is always there: zeros with `sampled: false` while nothing has been measured. */
  readServerBandwidth(id: number, options: ReadServerBandwidthQuery & CallOptions = {}): Promise<ServerBandwidth> {
    return this.call<ServerBandwidth>({ method: 'GET', path: `/api/v2/servers/${encodeURIComponent(id)}/bandwidth`, query: ['from', 'to', 'granularity'], options });
  }

  /** Read the firewall of a server. What is filtered at the public card of the server: policies, rules in their order, the platform’s own rules, and whether the hypervisor has the newest version. Rules are edited in the portal. */
  readServerFirewall(id: number, options: CallOptions = {}): Promise<ServerFirewall> {
    return this.call<ServerFirewall>({ method: 'GET', path: `/api/v2/servers/${encodeURIComponent(id)}/firewall`, options });
  }

  /** Read the calling key. What the key of this very call may do, when it expires and what is left of its requests per minute. It says nothing about other keys. */
  readKey(options: CallOptions = {}): Promise<Key> {
    return this.call<Key>({ method: 'GET', path: `/api/v2/key`, options });
  }

  /** Read the requests of a month. Counted requests of the workspace’s account in a UTC calendar month: by key, by day, and the cost of those above the free quota. Going over never blocks a call. */
  readUsage(options: ReadUsageQuery & CallOptions = {}): Promise<Usage> {
    return this.call<Usage>({ method: 'GET', path: `/api/v2/usage`, query: ['period', 'group_by'], options });
  }
}
