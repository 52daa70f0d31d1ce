/**
 * The calls of the customer API, their bodies, errors and events.
 *
 * Made by tools/generate-client.ts out of the OpenAPI document: change the contract and generate it again.
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
      /** Null: no limit. */
      max: number | null;
      used: number;
    };
    networks: {
      /** Null: no limit. */
      max: number | null;
      used: number;
    };
    keys: {
      /** Null: no limit. */
      max: number | null;
      used: number;
    };
    deploys_per_hour: {
      /** Null: no limit. */
      max: number | null;
      used: number;
    };
  };
  api_usage: Usage;
  /** Allowance earned so far by servers after the first. */
  extra_server_allowance_tb: number;
  /** The same as `extra_server_allowance_tb`. */
  instance_earned_tb: number;
  /** Allowance of each server after the first for a full month, in GB. */
  extra_per_additional_server_gb: number;
  /** Allowance still accruing this month for servers after the first; not usable yet. */
  instance_potential_tb: number;
  /** Rest of `instance_earned_tb`; the free part is used first. */
  instance_remaining_tb: number;
  /** Expected `allowance_tb` at the end of the month if all servers keep running; not usable yet. */
  potential_allowance_tb: number;
  /** Base allowance of every account per month. */
  base_allowance_tb: number;
  /** Loyalty bonus for each full year of the account. */
  tenure_bonus_tb: number;
  /** `base_allowance_tb` and `tenure_bonus_tb`. */
  free_allowance_tb: number;
  /** Allowance so far: the free part and the earned part. */
  allowance_tb: number;
  /** Start of the next month’s allowance. */
  reset_at: string;
  bandwidth: {
    period: string;
    source: 'hypervisor' | 'telemetry';
    /** Direction of the bytes that count against the pool. */
    pool_counts: 'outbound' | 'total';
    /** Number of bytes in one TB. */
    tb_bytes: number;
    used_bytes: number;
    remaining_bytes: number;
    /** Projection at the present rate. */
    projected_bytes: number | null;
    /** Hours that the projection rests on: since the start of the month, the opening of the account or its first server. Null within the first hour. */
    projection_hours: number | null;
    /** Cost of this month’s traffic beyond the pool. It is charged once, at `charged_at`, by what was delivered. `per_tb` and `charged_at` are null while nothing is charged, `limited_since` while the servers are not limited. */
    overage: {
      /** Decimal text. */
      per_tb: string | null;
      /** Bytes beyond the pool so far. The pool grows until the month ends. */
      bytes: number;
      /** Decimal text. */
      amount: string;
      /** Decimal text. */
      projected_amount: string | null;
      charged_at: string | null;
      /** `charge`: traffic beyond the pool is charged. `limit`: once the pool is used up, the servers are limited in speed until the month ends, and traffic beyond it is not charged. */
      when_used_up: 'charge' | 'limit';
      /** Speed of each limited server in Mbit/s. Null: `limit` can’t be chosen. */
      limit_mbit: number | null;
      limited_since: string | null;
    };
    /** Present month only; includes servers destroyed in it. */
    servers: BandwidthRow[];
  };
  as_of: string;
};

export type AccountEventData = {
  tenant_id: number;
  reason: 'account_suspended' | 'account_closed';
  /** API path of the resource. */
  href: string;
};

export type ActionEventData = {
  action_id: number;
  server_id: number;
  tenant_id: number;
  /** API path of the resource. */
  href: string;
};

export type ActionForecast = {
  command: 'rebuild' | 'resize' | 'restore_snapshot';
  server_id: number;
  /** False when the server has this plan already. */
  changes: boolean;
  /** Whether the server is down meanwhile. */
  restarts: boolean;
  erases_disk: boolean;
  /** Decimal text. */
  price_hourly: string;
  /** Decimal text. */
  price_monthly_cap: string;
  /** Decimal text; charged for the hour that has begun, unless the monthly cap is reached. */
  due_now: string;
  currency: string;
};

export type ActionRequest = {
  /** `start`, `shutdown` (ACPI halt), `stop` (power off), `reboot` (ACPI) or `reset` (hard reset); the others are aliases. */
  action: 'start' | 'shutdown' | 'stop' | 'reboot' | 'reset' | 'power_on' | 'poweron' | 'boot' | 'power_off' | 'poweroff' | 'power_cycle';
  /** For shutdown: timeout in seconds, default 120; with 0 only the signal is sent. */
  timeout_s?: number | undefined;
  /** For shutdown: the action after the timeout; `stop` switches the power off. */
  on_timeout?: 'fail' | 'stop' | undefined;
};

export type AddFirewallRuleRequest = ReplaceFirewallRuleRequest & {
  /** Among the rules; at their end by default. */
  position?: number | undefined;
};

export type Address = {
  id: number;
  tenant_id: number;
  name: string;
  address: string;
  family: 4 | 6;
  prefix_length: number;
  gateway: string;
  location: {
    id: number;
    slug: string;
  };
  /** `available`: no server has it. While it is `detaching`, its server may still send from it. */
  state: 'available' | 'attaching' | 'attached' | 'detaching';
  /** The server that has it. */
  server_id: number | null;
  /** True for the first address of a server, which stays with it until the server is destroyed. */
  primary: boolean;
  created_at: string;
  updated_at: string;
};

export type AddressEventData = {
  address_id: number;
  address: string;
  /** The server that got or lost it. */
  server_id: number | null;
  tenant_id: number;
  /** API path of the resource. */
  href: string;
};

export type AddressList = {
  addresses: Address[];
  limits: {
    /** Maximum number of kept addresses of the account. */
    max: number;
    used: number;
  };
  pagination: Pagination;
};

export type ApiKey = {
  /** The public part of the token. */
  key_id: string;
  name: string;
  /** Beginning of the token. */
  prefix: string;
  /** A read key may use GET and HEAD only. */
  scope: 'read' | 'full';
  /** Workspaces of the key; null: all of the organization. */
  tenant_ids: number[] | null;
  organization_id: number;
  /** For whom the key acts. */
  person_id: number;
  /** Neither revoked nor expired. */
  active: boolean;
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
  last_used_at: string | null;
};

export type ApiKeyList = {
  keys: ApiKey[];
  pagination: Pagination;
};

export type AttachAddressRequest = {
  /** A server of the workspace, at the location of the address, with a public address. */
  server_id: number;
};

export type AttachIsoRequest = {
  /** The ISO, by slug or id. */
  iso: string | number;
};

export type AttachmentList = {
  networks: PrivateNetworkAttachment[];
  pagination: Pagination;
};

export type AttachRequest = {
  network_id: number;
  /** An address of the network. Default: the lowest free one. */
  ip?: string | undefined;
};

export type AttackEventData = {
  /** The same at the start and at the end. */
  incident_id: string;
  server_id: number;
  tenant_id: number;
  /** API path of the resource. */
  href: string;
};

export type BandwidthEventData = {
  tenant_id: number;
  /** The UTC month. */
  period: string;
  /** Percent of the bandwidth pool as it was at that time: 50, 80 or 100. */
  percent: number;
  /** API path of the resource. */
  href: string;
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
  /** Part of `inbound_bytes` that port scans by the provider caused. */
  provider_scan_inbound_bytes: number;
  /** Part of `outbound_bytes` that port scans by the provider caused. */
  provider_scan_outbound_bytes: number;
  /** Part of `inbound_bytes` that attacks on the server were, each of them one of its incidents. */
  attack_inbound_bytes: number;
  /** Part of `outbound_bytes` that attacks from the server were, each of them one of its incidents. */
  attack_outbound_bytes: number;
  /** Bytes that count against the account’s pool; those of attacks and of port scans by the provider do not. */
  pool_bytes: number;
  /** Part of the account’s pool usage in the period. */
  pool_share: number;
  /** False: no measurement yet; the zeros mean unknown. */
  sampled: boolean;
  last_sampled_at: string | null;
  server_deleted: boolean;
};

export type ChangeNetworkRequest = {
  name?: string | undefined;
  description?: string | null | undefined;
  /** Merged with the present labels; null removes one. */
  labels?: Record<string, string | null> | undefined;
};

export type ConsoleRequest = {
  /** The screen, or the serial port as text. By default what the server usually has. */
  protocol?: 'text' | 'vnc' | undefined;
};

export type ConsoleTicket = {
  /** Of a WebSocket, with the ticket. It connects once; treat it like a password. */
  url: string;
  /** What its binary messages carry: RFB, the protocol of VNC, or the text of a terminal in UTF-8. */
  protocol: 'text' | 'vnc';
  expires_at: string;
};

export type CreateApiKeyRequest = {
  name: string;
  /** A read key may use GET and HEAD only. */
  scope: 'read' | 'full';
  /** Workspaces of the new key, among those of the calling key. Default: the one of the call. */
  tenant_ids?: number[] | undefined;
  /** In the future, and at most the expiry of the calling key, which is the default. */
  expires_at?: string | null | undefined;
};

export type CreatedApiKey = ApiKey & {
  /** Only in this answer. */
  token: string;
};

export type CreatedServer = Server & {
  /** Only in this answer, and in repetitions by the same key with the same `Idempotency-Key` within 24 hours. */
  root_password: string;
};

export type CreatedWebhook = Webhook & {
  /** `whsec_…`, which signs deliveries. Only in this answer, and null in a repetition. */
  secret: string | null;
};

export type CreateNetworkRequest = {
  name: string;
  /** A block of /16 to /29 within 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16 that does not overlap with another network of the account. Default: the next free /24. */
  cidr?: string | undefined;
  /** The location; needed where there is more than one, by slug or id. */
  location?: string | number | undefined;
  description?: string | null | undefined;
  labels?: Record<string, string> | undefined;
};

export type CreateServerRequest = {
  /** The plan, by slug or id. */
  plan: string | number;
  /** The image; required without `snapshot`, by slug or id. */
  image?: string | number | undefined;
  /** A complete snapshot of the workspace in place of `image`. The server gets a copy of that disk in the same location; the disk of its plan must be at least as large. */
  snapshot?: number | undefined;
  /** The location; required if there are several. With `snapshot`, by default the one of that, by slug or id. */
  location?: string | number | undefined;
  name?: string | undefined;
  hostname?: string | undefined;
  /** Public keys as text, as in `authorized_keys`, or ids or names of SSH keys of the workspace. */
  ssh_keys?: (string | number)[] | undefined;
  /** For cloud-init; at most 64 KiB as UTF-8. */
  user_data?: string | undefined;
  /** An existing private network of the workspace and location, attached from the first boot. */
  network_id?: number | undefined;
  /** Address in the private network. Default: the lowest free one. */
  network_ip?: string | undefined;
  /** `false`: no public address; reached through `network_id`, which is then required. */
  public_ip?: boolean | undefined;
  labels?: Record<string, string> | undefined;
  /** The default. */
  billing_cycle?: 'hourly' | undefined;
  /** Returns 200 with the result and cost that the call would have, without executing it. Does not count as a deployment. */
  dry_run?: boolean | undefined;
};

export type CreateServerRequestV1 = {
  /** The plan, by slug or id. */
  plan: string | number;
  /** The image, by slug or id. */
  image: string | number;
  /** The location; required if there are several. With `snapshot`, by default the one of that, by slug or id. */
  location?: string | number | undefined;
  name?: string | undefined;
  hostname?: string | undefined;
  /** Public keys as text, as in `authorized_keys`, or ids or names of SSH keys of the workspace. */
  ssh_keys?: (string | number)[] | undefined;
  /** For cloud-init; at most 64 KiB as UTF-8. */
  user_data?: string | undefined;
  /** An existing private network of the workspace and location, attached from the first boot. */
  network_id?: number | undefined;
  /** Address in the private network. Default: the lowest free one. */
  network_ip?: string | undefined;
  /** `false`: no public address; reached through `network_id`, which is then required. */
  public_ip?: boolean | undefined;
  labels?: Record<string, string> | undefined;
  /** The default. */
  billing_cycle?: 'hourly' | undefined;
  /** Returns 200 with the result and cost that the call would have, without executing it. Does not count as a deployment. */
  dry_run?: boolean | undefined;
  /** A workspace of the key, by id or slug (v2; v1 ignores it). */
  tenant?: number | string | undefined;
};

export type CreateSnapshotRequest = {
  name?: string | undefined;
  /** Returns 200 with what the call would do and cost, or its error, without executing it. */
  dry_run?: boolean | undefined;
};

export type CreateSshKeyRequest = {
  name: string;
  /** The content of a file such as `~/.ssh/id_ed25519.pub`; white space around it is ignored. */
  public_key: string;
};

export type CreateWebhookRequest = {
  /** HTTPS, on the public internet. */
  url: string;
  /** Types of events. */
  events: ('server.created' | 'server.provisioned' | 'server.provisioning_failed' | 'server.power_changed' | 'server.rebuilt' | 'server.resized' | 'server.rescued' | 'server.unrescued' | 'server.iso_attached' | 'server.iso_detached' | 'snapshot.created' | 'snapshot.restored' | 'snapshot.deleted' | 'server.destroyed' | 'server.reverse_dns_applied' | 'address.reserved' | 'address.attached' | 'address.detached' | 'address.released' | 'firewall.applied' | 'server.attack_started' | 'server.attack_ended' | 'server.filter_started' | 'server.filter_ended' | 'server.port_opened' | 'server.port_closed' | 'server.scan_completed' | 'server.finding_new' | 'network.synced' | 'network.sync_failed' | 'action.finished' | 'usage.threshold' | 'bandwidth.threshold' | 'bandwidth.limited' | 'key.created' | 'key.revoked' | 'account.locked')[];
  description?: string | undefined;
};

export type ErrorBody = {
  error: {
    /** Error code for programs. */
    code: 'bad_request' | 'unauthorized' | 'payment_required' | 'forbidden' | 'not_found' | 'method_not_allowed' | 'conflict' | 'precondition_failed' | 'payload_too_large' | 'unsupported_media_type' | 'validation_failed' | 'rate_limited' | 'internal_error' | 'unavailable';
    reason?: string | undefined;
    request_id: string;
    retryable: boolean;
    /** For 402 and `order_refused`: the failed order. */
    order_id?: number | undefined;
    /** For 402 and `order_refused`: the charge, if there was one. */
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

export type Finding = {
  /** Address of the server. */
  address: string;
  transport: 'tcp' | 'udp';
  port: number;
  /** As the scan found it. */
  product: string | null;
  /** As the scan found it. */
  version: string | null;
  /** Identifies the software and its version. It changes when another version is found. */
  fingerprint: string;
  /** The scan that found this version. */
  scan_id: string;
  /** Observation of this version. */
  observed_at: string;
  /** The record of the database. */
  cve_id: string;
  /** `ignored`: by your choice. */
  state: 'active' | 'ignored';
  /** Rating of the database itself, else another of the record, by the newest version of CVSS. Null: not rated. */
  severity: 'none' | 'low' | 'medium' | 'high' | 'critical' | null;
  /** CVSS score. */
  score: number | null;
  /** Version of CVSS. */
  cvss_version: string | null;
  /** CVSS vector. */
  cvss_vector: string | null;
  /** Text of the record. */
  summary: string;
  /** Publication of the record. */
  published_at: string;
  /** Last change of the record. */
  modified_at: string;
  /** Null: the version alone decides. `platform`: something that scans do not see, such as the operating system, decides. `bounded`: record or version is not exact enough. */
  incomplete: 'platform' | 'bounded' | null;
  /** True: the record is disputed. */
  disputed: boolean;
  /** True: in the catalog of known exploited vulnerabilities of CISA. */
  known_exploited: boolean;
  /** The security tracker of the distribution calls this version of its package affected. */
  package: {
    /** The first version of the package with the fix. Null: none yet. */
    fixed_in: string | null;
  } | null;
  /** First check that found it for this version. */
  first_found_at: string | null;
  /** Newest check of the address. */
  checked_at: string;
  ignore: {
    reason: string;
    /** Begin. */
    created_at: string;
    /** End. Null: until it is ended. */
    until: string | null;
    /** The person. Null: deleted. */
    created_by: string | null;
    /** True: through the API. */
    by_key: boolean;
  } | null;
};

export type FindingEventData = {
  server_id: number;
  tenant_id: number;
  /** Address of the server. */
  address: string;
  transport: 'tcp' | 'udp';
  port: number;
  cve_id: string;
  /** The version for which it was found. */
  fingerprint: string;
  /** Null: the record is not rated yet. */
  severity: 'none' | 'low' | 'medium' | 'high' | 'critical' | null;
  /** API path of the resource. */
  href: string;
};

export type FindingList = {
  /** Known exploited ones first, then by score. */
  findings: Finding[];
  /** Services that can not be assessed. On every page. */
  unable: UnableService[];
  /** Independent of the filter of this call. */
  counts: {
    /** Active findings of all pages. */
    active: number;
    /** Ignored findings of all pages. */
    ignored: number;
    /** Services that can not be assessed. */
    unable: number;
    /** Findings that were left out, because a service has at most 500. */
    truncated: number;
  };
  /** Every address was checked at or after this time; null before the first check. */
  checked_at: string | null;
  /** The records are not older than this; null: unknown. */
  database_at: string | null;
  pagination: Pagination;
};

export type FirewallRule = {
  id: number;
  position: number;
  direction: 'inbound' | 'outbound';
  action: 'accept' | 'drop';
  protocol: 'any' | 'tcp' | 'udp' | 'icmp';
  /** Destination port: `80` or `8000-9000`; null: all. */
  ports: string | null;
  sources: string[];
  destinations: string[];
  description: string;
  group_id: number | null;
  /** Editable by you. */
  editable: boolean;
};

export type IgnoredFindings = {
  /** The finding at each of these addresses. */
  findings: Finding[];
};

export type IgnoreFindingRequest = {
  /** Absent: at every address of the server. */
  address?: string | undefined;
  transport: 'tcp' | 'udp';
  port: number;
  /** As in the finding. */
  fingerprint: string;
  /** As in the finding. */
  cve_id: string;
  /** Shown beside the finding. */
  reason: string;
  /** End, within five years. Absent or null: until it is ended. */
  until?: string | null | undefined;
};

export type Image = {
  id: number;
  slug: string;
  name: string;
  family: string;
  /** Servers are made from a `system`. A `rescue` is what a server starts from in place of its disk, an `iso` is for its CD drive. */
  kind: 'system' | 'rescue' | 'iso';
  /** False: servers still have it, and new ones can’t be ordered with it. */
  offered: boolean;
};

export type ImageList = {
  images: Image[];
  pagination: Pagination;
};

export type Incident = {
  id: string;
  server_id: number;
  /** Address of the server that is attacked, or that attacks. */
  address: string;
  /** `outbound`: the server sends the attack. */
  direction: 'inbound' | 'outbound';
  /** The largest part of the attack. `high_volume`: traffic above the threshold without a known pattern. */
  class: 'fragment_flood' | 'amplification' | 'reflector' | 'syn_flood' | 'synack_reflection' | 'ack_flood' | 'rst_flood' | 'udp_flood' | 'icmp_flood' | 'protocol_flood' | 'connection_flood' | 'high_volume' | 'other';
  /** `info`: unusual traffic that is not judged as an attack. */
  severity: 'attack' | 'info';
  /** `stale`: the sensor reports nothing since `last_observed_at`. */
  state: 'active' | 'stale' | 'recovered';
  /** True: started by our operators as a test, without real traffic. */
  drill: boolean;
  /** First second of the attack. */
  started_at: string;
  /** Time of the decision. */
  detected_at: string;
  /** Newest observation of the attack. */
  last_observed_at: string;
  /** Reported end; null before it. */
  recovered_at: string | null;
  /** Rates now. Null: unknown, or over. */
  current: {
    /** Bits per second. */
    bps: number;
    /** Packets per second. */
    pps: number;
  } | null;
  peak: {
    /** Bits per second. */
    bps: number;
    /** Time of `bps`. */
    bps_at: string;
    /** Packets per second. */
    pps: number;
    /** Time of `pps`. */
    pps_at: string;
  };
  totals: {
    /** Bytes of the attack so far. */
    bytes: number;
    /** Packets of the attack so far. */
    packets: number;
  };
  /** `partial`: part of the attack was not observed; rates and totals are lower bounds. */
  coverage: 'complete' | 'partial' | 'unknown';
  /** Parts of the attack, strongest first, at most three. */
  vectors: {
    class: 'fragment_flood' | 'amplification' | 'reflector' | 'syn_flood' | 'synack_reflection' | 'ack_flood' | 'rst_flood' | 'udp_flood' | 'icmp_flood' | 'protocol_flood' | 'connection_flood' | 'high_volume' | 'other';
    /** Part of the packets. */
    packets_share: number;
    /** Part of the bytes. */
    bytes_share: number;
    /** Most frequent ports of the server; of `amplification` those of the senders. */
    ports: number[];
    /** Most frequent ports of the senders of a `udp_flood`. */
    source_ports: number[];
    /** IP protocols of a `protocol_flood`, such as 47 (GRE). */
    protocols: number[];
    /** Its first second; null: unknown. */
    started_at: string | null;
    /** Its last second so far; null: unknown. */
    last_observed_at: string | null;
  }[];
  /** Measures against the attack. */
  actions: {
    /** `blackholed`: all traffic to the address is dropped in the network. `filtered`: attack traffic is dropped in the network. `dropped`: it is dropped at the hypervisor; traffic with addresses that were known before passes. */
    kind: 'alerted' | 'blackholed' | 'filtered' | 'dropped' | 'command' | 'webhook';
    /** Time of the measure. */
    at: string;
    /** End of the measure. */
    ended_at: string | null;
    /** Of `dropped`: packets per second now. Null: another kind, over, or unknown. */
    dropped_pps: number | null;
  }[];
};

export type IncidentList = {
  incidents: Incident[];
  pagination: Pagination;
};

export type Key = {
  /** The public part of the token. */
  key_id: string;
  name: string;
  /** Beginning of the token. */
  prefix: string;
  /** A read key may use GET and HEAD only. */
  scope: 'read' | 'full';
  /** `all`: includes workspaces that are created later. */
  tenant_access: 'all' | 'selected';
  /** Present workspaces of the key, the default one first. */
  tenants: number[];
  default_tenant_id: number;
  organization_id: number;
  created_at: string;
  expires_at: string | null;
  last_used_at: string | null;
  rate_limit: {
    /** Requests per window. */
    limit: number;
    window_s: number;
    /** After this call. */
    remaining: number;
  };
};

export type KeyEventData = {
  key_id: string;
  organization_id: number;
  /** API path of the resource. */
  href: string;
};

export type LedgerEntry = {
  id: number;
  tenant_id: number;
  /** Decimal text; negative for a charge. */
  amount: string;
  currency: string;
  /** What for: `deposit`, `refund`, `adjustment`, `server_hours`, `snapshots`, `api_overage`, `bandwidth_overage`; others may be added. */
  source: string;
  description: string;
  created_at: string;
};

export type LedgerEntryList = {
  entries: LedgerEntry[];
  pagination: Pagination;
};

export type Location = {
  id: number;
  slug: string;
  name: string;
  /** ISO 3166-1 alpha-2. */
  country: string;
  /** What every server of the location can do; others are refused with 422. */
  capabilities: ('firewall' | 'rebuild' | 'resize' | 'reset_password' | 'addresses' | 'console' | 'snapshots' | 'rescue' | 'iso' | 'speed_limit')[];
  plans: {
    id: number;
    slug: string;
    /** Whether there is capacity for another server with a public address. */
    available: boolean;
  }[];
};

export type LocationList = {
  locations: Location[];
  pagination: Pagination;
};

export type Member = {
  id: number;
  name: string;
  email: string;
  /** Owners create keys and webhooks, and invite people. */
  role: 'owner' | 'member';
  /** False: the person can’t sign in. */
  active: boolean;
};

export type MemberList = {
  members: Member[];
  pagination: Pagination;
};

export type Network = NetworkSummary & {
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
  /** API path of the resource. */
  href: string;
};

export type NetworkList = {
  networks: NetworkSummary[];
  limits: {
    /** Maximum number of networks of the account. */
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
  /** A private network has no router; its first address is reserved. */
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
  /** Servers on the network, including those being detached. */
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

export type PasswordAction = ServerAction & {
  /** The new one. Only in this answer, and in repetitions by the same key with the same `Idempotency-Key` within 24 hours. */
  root_password: string;
};

export type Plan = {
  id: number;
  slug: string;
  name: string;
  vcpus: number;
  memory_mb: number;
  disk_gb: number;
  /** Mbit/s that the public interface sends, and receives; null: as many as the hypervisor can. */
  port_mbit: number | null;
  /** Decimal text. */
  price_hourly: string;
  /** Decimal text. */
  price_monthly_cap: string;
  currency: string;
  /** False: servers still have it, and new ones can’t be ordered with it. */
  offered: boolean;
  locations: {
    id: number;
    slug: string;
    /** Whether there is capacity for another server with a public address. */
    available: boolean;
  }[];
};

export type PlanList = {
  plans: Plan[];
  pagination: Pagination;
};

export type Port = {
  /** Address of the server. */
  address: string;
  transport: 'tcp' | 'udp';
  port: number;
  /** `closed`: a later scan asked for the port and did not find it open. */
  state: 'open' | 'closed';
  /** Protocol. Null: unknown. */
  service: string | null;
  /** Null: hidden or not recognized. */
  product: string | null;
  /** Null: hidden or not recognized. */
  version: string | null;
  /** `probed`: the service answered a probe. `table`: `service` is guessed from the port number. */
  method: 'probed' | 'table';
  /** Certainty of `service`, 10 at most. */
  confidence: number;
  /** Begin of the present time of being open, or of the last one. */
  first_observed_at: string;
  /** Newest observation of the open port. */
  observed_at: string;
  /** When the service answered a probe with its product and version; newer scans may have seen only the open port. Null: it never did. */
  identified_at: string | null;
  /** End of the scan that found it closed; null while it is open. */
  closed_at: string | null;
  /** The scan that observed it. */
  profile: 'common' | 'full';
  /** `stale`: older than 2 hours, of a full scan older than 27 hours. */
  freshness: 'fresh' | 'stale';
};

export type PortEventData = {
  /** The scan that found it. */
  scan_id: string;
  server_id: number;
  tenant_id: number;
  /** Address of the server. */
  address: string;
  transport: 'tcp' | 'udp';
  port: number;
  /** API path of the resource. */
  href: string;
};

export type PortList = {
  /** Open ports. */
  ports: Port[];
  /** Ports that closed within seven days. */
  closed: Port[];
  /** Requests and scans of the last seven days, pending ones first, then newest first. */
  scans: PortScan[];
  /** Every address has a complete full scan at or after this time; null while one has none. */
  last_full_scan_at: string | null;
};

export type PortScan = {
  id: string;
  server_id: number;
  /** The address that is scanned. */
  address: string;
  /** `manual`: requested by the customer. `automatic`: for a new address. `routine`: hourly or daily. */
  kind: 'manual' | 'automatic' | 'routine';
  /** `common`: the 100 most used TCP and UDP ports. `full`: all ports. */
  profile: 'common' | 'full';
  /** `partial`: interrupted; what was found counts. `expired`: not started within 24 hours. `cancelled`: the protection views were switched off, or the address was released. */
  state: 'queued' | 'running' | 'complete' | 'partial' | 'expired' | 'cancelled';
  /** True: running, without contact to the sensor for over five minutes. */
  overdue: boolean;
  /** Percent. Null: unknown. */
  progress: number | null;
  /** Null of routine scans. */
  requested_at: string | null;
  /** End of the start window. Null of routine scans. */
  expires_at: string | null;
  /** Start at the sensor. */
  started_at: string | null;
  /** End of the scan or of the request. */
  finished_at: string | null;
};

export type PortScanList = {
  /** One for each public address of the server. */
  scans: PortScan[];
};

/** `bandwidth.per_tb` is what 10^12 bytes beyond the pool cost; null: nothing is charged. A new or higher price holds from the next month on; `GET /account` has the one of this month. `snapshots.per_gb_month` is what 10^9 bytes of snapshots cost in 730 hours; null: nothing. */
export type Prices = {
  currency: string;
  plans: {
    id: number;
    slug: string;
    /** Decimal text. */
    price_hourly: string;
    /** Decimal text. */
    price_monthly_cap: string;
  }[];
  api_requests: {
    /** Free requests per UTC calendar month. */
    included_per_month: number;
    per_requests: number;
    /** Decimal text. */
    amount: string;
  };
  bandwidth: {
    /** Bandwidth pool of every account per UTC calendar month. */
    included_tb: number;
    /** What each server after the first adds in a full month. */
    per_additional_server_tb: number;
    /** Direction of the bytes that count against the pool. */
    pool_counts: 'outbound' | 'total';
    /** Decimal text. */
    per_tb: string | null;
  };
  snapshots: {
    /** Decimal text. */
    per_gb_month: string | null;
  };
};

export type PrivateNetworkAttachment = {
  network_id: number;
  name: string;
  cidr: string;
  ip: string;
  mac_address: string;
  state: 'attaching' | 'attached' | 'detaching' | 'error';
  /** The operating system sees the change after the next reboot. */
  requires_reboot: boolean;
  /** The only interface of the server; it can not be detached. */
  is_last_interface: boolean;
  attached_at: string | null;
};

export type Problem = {
  /** Documentation of this error. */
  type: string;
  title: string;
  status: number;
  detail: string;
  /** The request id. */
  instance: string;
  /** Error code for programs. */
  code: 'bad_request' | 'unauthorized' | 'payment_required' | 'forbidden' | 'not_found' | 'method_not_allowed' | 'conflict' | 'precondition_failed' | 'payload_too_large' | 'unsupported_media_type' | 'validation_failed' | 'rate_limited' | 'internal_error' | 'unavailable';
  reason?: string | undefined;
  request_id: string;
  retryable: boolean;
  /** For 402 and `order_refused`: the failed order. */
  order_id?: number | undefined;
  /** For 402 and `order_refused`: the charge, if there was one. */
  payment_attempt_id?: number | undefined;
  details?: Record<string, unknown> | undefined;
  fields?: {
    path: string;
    code: string;
    message: string;
    allowed?: unknown[] | undefined;
  }[] | undefined;
  /** For 429: the exceeded policies of `RateLimit`. */
  'violated-policies'?: string[] | undefined;
};

export type RebuildRequest = {
  /** The image, by default the present one, by slug or id. */
  image?: string | number | undefined;
  /** Returns 200 with what the call would do and cost, or its error, without executing it. */
  dry_run?: boolean | undefined;
};

export type ReplaceFirewallRequest = {
  /** False: all traffic passes. */
  enabled: boolean;
  /** Default action for traffic that no rule matches. */
  policies: {
    inbound: 'accept' | 'drop';
    outbound: 'accept' | 'drop';
  };
  /** All rules, in order. A rule that is there already keeps its id. */
  rules: {
    direction: 'inbound' | 'outbound';
    action: 'accept' | 'drop';
    protocol: 'any' | 'tcp' | 'udp' | 'icmp';
    /** `80` or `8000-9000`; null: all. */
    ports?: string | null | undefined;
    /** Of an inbound rule: addresses or blocks such as `198.51.100.0/24`. None: all. */
    sources?: string[] | undefined;
    /** Of an outbound rule: addresses or blocks. None: all. */
    destinations?: string[] | undefined;
    description?: string | undefined;
  }[];
};

export type ReplaceFirewallRuleRequest = {
  direction: 'inbound' | 'outbound';
  action: 'accept' | 'drop';
  protocol: 'any' | 'tcp' | 'udp' | 'icmp';
  /** `80` or `8000-9000`; null: all. */
  ports?: string | null | undefined;
  /** Of an inbound rule: addresses or blocks such as `198.51.100.0/24`. None: all. */
  sources?: string[] | undefined;
  /** Of an outbound rule: addresses or blocks. None: all. */
  destinations?: string[] | undefined;
  description?: string | undefined;
};

export type RescueAction = ServerAction & {
  /** Of the rescue system; null if the server was in rescue already. Only in this answer, and in repetitions by the same key with the same `Idempotency-Key` within 24 hours. */
  root_password: string | null;
};

export type RescueRequest = {
  /** The rescue image, by default the first one, by slug or id. */
  rescue_image?: string | number | undefined;
};

export type ReserveAddressRequest = {
  name?: string | undefined;
  /** Where servers can have it; required if there are several locations, by slug or id. */
  location?: string | number | undefined;
  family?: 4 | 6 | undefined;
  /** An address that a server of the workspace has, to keep it when the server is destroyed. Without `location` and `family`. */
  address?: string | undefined;
};

export type ResetPasswordRequest = Record<string, never>;

export type ResizeRequest = {
  /** The plan, by slug or id. */
  plan: string | number;
  /** `true`: the disk stays as it is, so that the server can return to a smaller plan. A disk never shrinks. */
  keep_disk?: boolean | undefined;
  /** How long the operating system of a running server may take to shut down, default 120. */
  timeout_s?: number | undefined;
  /** If it has not shut down by then: nothing is changed, the default, or `stop` switches the power off. */
  on_timeout?: 'fail' | 'stop' | undefined;
  /** Returns 200 with what the call would do and cost, or its error, without executing it. */
  dry_run?: boolean | undefined;
};

export type RestoreSnapshotRequest = {
  /** Returns 200 with what the call would do and cost, or its error, without executing it. */
  dry_run?: boolean | undefined;
};

export type ReverseDns = {
  server_id: number;
  tenant_id: number;
  address: string;
  /** Host name; null: none. */
  reverse_dns: string | null;
  /** `applied`: the DNS server has it. Resolvers may answer with the former name for an hour. */
  status: 'applied' | 'pending' | 'failed';
  changed_at: string | null;
};

export type ScanEventData = {
  scan_id: string;
  server_id: number;
  tenant_id: number;
  /** The scanned address. */
  address: string;
  /** API path of the resource. */
  href: string;
};

export type SelectionRequest = Record<string, never>;

export type Server = {
  id: number;
  tenant_id: number;
  order_id: number;
  name: string;
  hostname: string;
  /** The status to poll. */
  status: 'queued' | 'provisioning' | 'failed' | 'deleting' | 'unknown' | 'starting' | 'running' | 'stopping' | 'stopped' | 'rebooting';
  /** `ready` means that the server is addressable. */
  provisioning_state: 'queued' | 'provisioning' | 'ready' | 'failed' | 'deleting';
  power_state: 'unknown' | 'starting' | 'running' | 'stopping' | 'stopped' | 'rebooting';
  /** True while `current_action` runs. */
  locked: boolean;
  /** True while the server starts from a rescue image. */
  rescue: boolean;
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
  /** In its CD drive. */
  iso: {
    id: number;
    slug: string;
    name: string;
  } | null;
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
    /** False: the firewall is off. */
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
  command: 'create' | 'destroy' | 'start' | 'shutdown' | 'stop' | 'reboot' | 'reset' | 'rebuild' | 'resize' | 'reset_password' | 'attach_address' | 'detach_address' | 'create_snapshot' | 'restore_snapshot' | 'rescue' | 'unrescue' | 'attach_iso' | 'detach_iso';
  server_id: number;
  status: 'queued' | 'running' | 'success' | 'error';
  /** Percent. */
  progress: number;
  /** False when the server was already in the requested state. */
  changed: boolean;
  /** Result of a shutdown: the server halted, the signal was sent without waiting, or the server did not halt within the timeout. `next_boot`: a new root password holds, or an ISO is there, from the next start. */
  outcome: 'stopped' | 'signal_sent' | 'timeout' | 'next_boot' | null;
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
  /** Source of the figures. */
  source: 'hypervisor' | 'telemetry';
  current: BandwidthRow;
  /** Newest first. */
  history: BandwidthRow[];
  /** Traffic per server. The pool belongs to the account; there is no limit per server. */
  attribution_only: boolean;
};

export type ServerEventData = {
  server_id: number;
  tenant_id: number;
  /** API path of the resource. */
  href: string;
};

export type ServerFirewall = {
  server_id: number;
  /** False: the firewall is off. */
  enabled: boolean;
  /** Default action for traffic that no rule matches. */
  policies: {
    inbound: 'accept' | 'drop';
    outbound: 'accept' | 'drop';
  };
  /** Whether the hypervisor has this version. */
  status: 'applied' | 'pending' | 'failed';
  applied_at: string | null;
  /** Incremented with every change. */
  version: number;
  /** Hash of the effective rules. */
  fingerprint: string;
  groups: {
    id: number;
    name: string;
  }[];
  /** In order: the first matching rule applies. */
  rules: FirewallRule[];
  /** Platform rules, applied first. They can’t be edited. */
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
  /** Why it would not be created: the error of the real call. */
  reason: string | null;
  /** Charge to the saved card, which is added to the credit. */
  due_now: string | null;
  /** Decimal text. */
  price_hourly: string;
  /** Decimal text. */
  price_monthly_cap: string;
  currency: string;
  /** Decimal text; remaining credit after this order. */
  credit_after_first_day: string | null;
};

export type ServerList = {
  servers: Server[];
  pagination: Pagination;
};

export type ServerTraffic = {
  server_id: number;
  /** Start of the first step. */
  from: string;
  /** End of the last step. */
  to: string;
  step: 'minute' | '5m' | '15m' | '30m' | 'hour' | '6h' | 'day';
  /** Length of a step. */
  step_seconds: number;
  /** The only address in the rates; null: the sum of all addresses. */
  address: string | null;
  /** Public addresses of the server, and former ones that were observed. */
  addresses: string[];
  /** End of the newest observed minute in the range. */
  last_observed_at: string | null;
  /** Oldest first, every step of the range. */
  points: TrafficPoint[];
  /** Applications in the range, most bytes first: those for which the server itself sent bytes in the last 24 hours. Null: not requested, or the protection views of the server are off. */
  applications: TrafficApplication[] | null;
  /** Start of the applications: later than `from` if the range is longer than the last 24 hours. */
  applications_from: string | null;
};

export type SetReverseDnsRequest = {
  /** Host name, such as `web-1.example.net`, with a record that leads to the address. */
  reverse_dns: string;
  /** Also a name that does not lead to the address (yet). Default: false. */
  force?: boolean | undefined;
};

export type Snapshot = {
  id: number;
  tenant_id: number;
  server_id: number;
  name: string;
  /** It can be restored when it is `ready`. One that fails is not listed any more; its action says why. */
  state: 'creating' | 'ready';
  /** The action that takes it. */
  action_id: number;
  image: {
    id: number;
    slug: string;
    name: string;
  };
  /** Disk of the server at that time. */
  disk_gb: number;
  /** Bytes that it takes; null until it is complete. */
  size_bytes: number | null;
  created_at: string;
};

export type SnapshotEventData = {
  snapshot_id: number;
  server_id: number;
  tenant_id: number;
  /** API path of the resource. */
  href: string;
};

export type SnapshotForecast = {
  server_id: number;
  /** Disk of the server. */
  disk_gb: number;
  /** Decimal text. */
  price_per_gb_month: string;
  /** Decimal text; what it costs in 730 hours if the disk is full. */
  price_monthly_max: string;
  currency: string;
};

export type SnapshotList = {
  snapshots: Snapshot[];
  limits: {
    /** Maximum number of snapshots of one server. */
    max: number;
  };
  pagination: Pagination;
};

export type SshKey = {
  id: number;
  tenant_id: number;
  name: string;
  /** Kind, body and comment, without options. */
  public_key: string;
  /** `SHA256:…`, as `ssh-keygen -l` shows it. */
  fingerprint: string;
  created_at: string;
  updated_at: string;
};

export type SshKeyList = {
  ssh_keys: SshKey[];
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
  /** API path of the resource. */
  href: string | null;
};

export type TrafficApplication = {
  name: string;
  transport: string | null;
  server_port: number | null;
  inbound_bytes: number;
  outbound_bytes: number;
  /** End of the newest minute in which the server sent for it. */
  last_sent_at: string;
};

export type TrafficPoint = {
  /** Start of the step. */
  timestamp: string;
  /** Bits per second to the server. Of longer steps: the mean of the observed minutes. */
  inbound_bps: number | null;
  /** Bits per second from the server. */
  outbound_bps: number | null;
  /** Packets per second, both directions together. */
  pps: number | null;
  /** Exact bytes of IP packets in the observed minutes. */
  inbound_bytes: number | null;
  /** Exact bytes of IP packets in the observed minutes. */
  outbound_bytes: number | null;
  /** Part of `inbound_bytes` that port scans by the provider caused. */
  provider_scan_inbound_bytes: number | null;
  /** Part of `outbound_bytes` that port scans by the provider caused. */
  provider_scan_outbound_bytes: number | null;
  /** What the hypervisor dropped of an attack on the server: beside `inbound_bytes`, not a part of it. Null while views of protection are off, too. */
  dropped_inbound_bytes: number | null;
  /** What the hypervisor dropped of an attack by the server: beside `outbound_bytes`, not a part of it. */
  dropped_outbound_bytes: number | null;
  /** Packets of `dropped_inbound_bytes`. */
  dropped_inbound_packets: number | null;
  /** Packets of `dropped_outbound_bytes`. */
  dropped_outbound_packets: number | null;
  /** Usual rate before this time, both directions together, without port scans by the provider. Null until enough minutes were observed. */
  expected_bps: number | null;
  /** Usual packets per second. */
  expected_pps: number | null;
  /** Part of the traffic that belongs to a detected attack. Zero only if all minutes and addresses of the step were checked completely; null: unknown. */
  attack_bps: number | null;
  /** Packets per second of a detected attack. */
  attack_pps: number | null;
  /** Observed part of the observed minutes. Null: not known, for example after packet loss. */
  coverage: number | null;
  /** Why a value of the point is unknown, where the cause is known; of several causes one. `no_epoch` and `unassignable`: of the attack rates alone. `detector_incomplete`: of the attack rates or, where those are known, of the coverage. */
  reason: 'sensor_down' | 'capture_failed' | 'packets_lost' | 'clock' | 'not_finished' | 'expired' | 'detector_incomplete' | 'no_epoch' | 'unassignable' | null;
  /** Minutes of the step with an observation. */
  observed_minutes: number;
  /** Number of addresses that the rates contain; of longer steps: in the minute with the fewest. */
  observed_addresses: number;
};

export type UnableService = {
  /** Address of the server. */
  address: string;
  transport: 'tcp' | 'udp';
  port: number;
  /** As the scan found it. */
  product: string | null;
  /** As the scan found it. */
  version: string | null;
  /** Identifies the software and its version. It changes when another version is found. */
  fingerprint: string;
  /** The scan that found this version. */
  scan_id: string;
  /** Observation of this version. */
  observed_at: string;
  /** `distribution_package`: a distribution keeps the version of a package and fixes it, so the version says nothing about faults. `likely_packaged`: another service of the server is such a package. `no_database`: no records of the product are stored yet. */
  reason: 'not_probed' | 'low_confidence' | 'unknown_product' | 'ambiguous_product' | 'no_version' | 'ambiguous_version' | 'incomplete_version' | 'distribution_package' | 'likely_packaged' | 'no_database';
  /** Potential vulnerabilities of the original of a package. They are no findings of this server. */
  upstream_count: number;
};

export type UpdateAccountRequest = {
  /** See `bandwidth.overage` of the account. */
  when_used_up: 'charge' | 'limit';
};

export type UpdateAddressRequest = {
  name: string;
};

export type UpdateServerRequest = {
  name?: string | undefined;
  /** Displayed name; the operating system of the server is not changed. */
  hostname?: string | undefined;
  /** Merged with the present labels; null removes one. */
  labels?: Record<string, string | null> | undefined;
};

export type UpdateSshKeyRequest = {
  name: string;
};

export type UpdateWebhookRequest = {
  /** HTTPS, on the public internet. */
  url?: string | undefined;
  /** Types of events. */
  events?: ('server.created' | 'server.provisioned' | 'server.provisioning_failed' | 'server.power_changed' | 'server.rebuilt' | 'server.resized' | 'server.rescued' | 'server.unrescued' | 'server.iso_attached' | 'server.iso_detached' | 'snapshot.created' | 'snapshot.restored' | 'snapshot.deleted' | 'server.destroyed' | 'server.reverse_dns_applied' | 'address.reserved' | 'address.attached' | 'address.detached' | 'address.released' | 'firewall.applied' | 'server.attack_started' | 'server.attack_ended' | 'server.filter_started' | 'server.filter_ended' | 'server.port_opened' | 'server.port_closed' | 'server.scan_completed' | 'server.finding_new' | 'network.synced' | 'network.sync_failed' | 'action.finished' | 'usage.threshold' | 'bandwidth.threshold' | 'bandwidth.limited' | 'key.created' | 'key.revoked' | 'account.locked')[] | undefined;
  description?: string | undefined;
  /** False: pending deliveries are cancelled. */
  enabled?: boolean | undefined;
};

export type Usage = {
  tenant_id: number;
  period: string;
  /** Open until the end of the month. */
  state: 'open' | 'closed';
  /** Counted requests of all keys of the account, including this call. */
  count: number;
  /** Free requests of the month. */
  included_count: number;
  /** Requests above the free quota. */
  overage_count: number;
  /** Charged requests above the free quota. */
  overage_charged_count: number;
  /** Decimal text. */
  overage_amount: string;
  /** Projected requests of the month at the present rate. */
  projected_count: number | null;
  /** Decimal text. */
  projected_overage_amount: string | null;
  /** Hours that the projection rests on: since the start of the month, the opening of the account or its first server. Null within the first hour. */
  projection_hours: number | null;
  currency: string;
  price: {
    per_requests: number;
    /** Decimal text. */
    amount: string;
  };
  /** Start of the next month. */
  resets_at: string;
  as_of: string;
  /** Keys, most requests first. */
  keys: {
    /** Null: all revoked keys together. */
    key_id: string | null;
    name: string;
    count: number;
  }[];
  /** Every UTC day of the month so far; 0 for a day without requests. */
  days: {
    date: string;
    count: number;
  }[];
  group_by: 'day' | 'key' | null;
  /** The month by `group_by`; null without it. */
  groups: {
    /** The day or the key’s id; null: all revoked keys. */
    group: string | null;
    /** The key’s name. */
    name: string | null;
    count: number;
  }[] | null;
};

export type UsageEventData = {
  tenant_id: number;
  /** The UTC month. */
  period: string;
  /** Percent of the free requests of the month: 50, 80 or 100. */
  percent: number;
  /** API path of the resource. */
  href: string;
};

export type Webhook = {
  id: number;
  /** Null: of all workspaces and of the organization itself. */
  tenant_id: number | null;
  url: string;
  description: string;
  events: string[];
  enabled: boolean;
  failing_since: string | null;
  created_at: string;
};

export type WebhookDelivery = {
  id: number;
  /** The header `webhook-id` of the delivery. */
  webhook_id: string;
  type: string;
  status: 'pending' | 'delivered' | 'failed' | 'cancelled';
  attempts: number;
  next_attempt_at: string | null;
  occurred_at: string;
  last_attempt: {
    at: string;
    status_code: number | null;
    error: string | null;
    duration_ms: number | null;
  } | null;
};

export type WebhookDeliveryList = {
  deliveries: WebhookDelivery[];
  pagination: Pagination;
};

export type WebhookList = {
  webhooks: Webhook[];
  pagination: Pagination;
};

/** What kind of error it is; the list is closed. */
export const errorCodes = ['bad_request', 'unauthorized', 'payment_required', 'forbidden', 'not_found', 'method_not_allowed', 'conflict', 'precondition_failed', 'payload_too_large', 'unsupported_media_type', 'validation_failed', 'rate_limited', 'internal_error', 'unavailable'] as const;
export type ErrorCode = (typeof errorCodes)[number];

/** Which case it was, as far as it is known today; new ones may appear. */
export type ErrorReason =
  | 'account_closed'
  | 'account_suspended'
  | 'action_not_cancellable'
  | 'address_attached'
  | 'address_available'
  | 'address_kept'
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
  | 'firewall_not_supported'
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
  | 'owner_only'
  | 'payload_too_large'
  | 'primary_address'
  | 'protect_disabled'
  | 'provisioning_failed'
  | 'read_only_key'
  | 'reverse_dns_not_confirmed'
  | 'reverse_dns_not_supported'
  | 'scan_cooldown'
  | 'server_busy'
  | 'server_not_ready'
  | 'ssh_key_exists'
  | 'tenant_conflict'
  | 'test_rate'
  | 'unauthorized'
  | 'unavailable'
  | 'unsupported_action'
  | 'unsupported_media_type'
  | 'webhook_disabled';

type EventOf<Type extends string, Data> = {
  type: Type;
  /** Time of the event, not of the delivery. */
  timestamp: string;
  data: Data;
};

/** What a webhook delivers, once its signature has been verified. */
export type WebhookEvent =
  /** A server was ordered; provisioning begins. */
  | EventOf<'server.created', ServerEventData>
  /** A server is ready and addressable. */
  | EventOf<'server.provisioned', ServerEventData>
  /** Provisioning failed; support will resolve it. */
  | EventOf<'server.provisioning_failed', ServerEventData>
  /** A server was started or stopped. */
  | EventOf<'server.power_changed', ServerEventData>
  /** A server has a new disk, made from an image. */
  | EventOf<'server.rebuilt', ServerEventData>
  /** A server has another plan and its price. */
  | EventOf<'server.resized', ServerEventData>
  /** A server runs from a rescue image. */
  | EventOf<'server.rescued', ServerEventData>
  /** A server runs from its own disk again. */
  | EventOf<'server.unrescued', ServerEventData>
  /** A server has an ISO in its CD drive. */
  | EventOf<'server.iso_attached', ServerEventData>
  /** The CD drive of a server is empty. */
  | EventOf<'server.iso_detached', ServerEventData>
  /** A snapshot of a server is complete. */
  | EventOf<'snapshot.created', SnapshotEventData>
  /** A server has the disk of a snapshot. */
  | EventOf<'snapshot.restored', SnapshotEventData>
  /** A snapshot was deleted, by itself or with its server. */
  | EventOf<'snapshot.deleted', SnapshotEventData>
  /** A server was destroyed, its addresses are released. */
  | EventOf<'server.destroyed', ServerEventData>
  /** The DNS server has the newest reverse name of an address of a server. */
  | EventOf<'server.reverse_dns_applied', ServerEventData>
  /** An address is kept for the account. */
  | EventOf<'address.reserved', AddressEventData>
  /** A server has got a kept address. */
  | EventOf<'address.attached', AddressEventData>
  /** A kept address was taken from its server, or its server was destroyed. */
  | EventOf<'address.detached', AddressEventData>
  /** A kept address was given back. */
  | EventOf<'address.released', AddressEventData>
  /** The hypervisor has the newest version of the firewall of a server. */
  | EventOf<'firewall.applied', ServerEventData>
  /** An attack on a server, or from it, was detected. */
  | EventOf<'server.attack_started', AttackEventData>
  /** The attack has ended. Sent only after its start. */
  | EventOf<'server.attack_ended', AttackEventData>
  /** Traffic of an attack on a server, or by one, is dropped at its hypervisor from now on. Sent only after the start of the attack. */
  | EventOf<'server.filter_started', AttackEventData>
  /** It is dropped no longer; the attack may go on. */
  | EventOf<'server.filter_ended', AttackEventData>
  /** A scan found a port open that was not open before; at most 50 for one scan. Off until switched on in the settings of the Protect page. */
  | EventOf<'server.port_opened', PortEventData>
  /** A scan found a port closed that was open before; at most 50 for one scan. Off until switched on in the settings of the Protect page. */
  | EventOf<'server.port_closed', PortEventData>
  /** The result of a requested port scan of one address has arrived, complete or partial. */
  | EventOf<'server.scan_completed', ScanEventData>
  /** A potential vulnerability was found for the first time for this server, port and version; at most 50 for one check, the most severe. Off until switched on in the settings of the Protect page. */
  | EventOf<'server.finding_new', FindingEventData>
  /** All hypervisors have the present state of the network. */
  | EventOf<'network.synced', NetworkEventData>
  /** The network could not be applied to the hypervisors. */
  | EventOf<'network.sync_failed', NetworkEventData>
  /** An action of a server finished or failed. */
  | EventOf<'action.finished', ActionEventData>
  /** The account has used half, 80 % or all of its free requests of the month. */
  | EventOf<'usage.threshold', UsageEventData>
  /** The account has used half, 80 % or all of its bandwidth pool of the month, and more costs something. */
  | EventOf<'bandwidth.threshold', BandwidthEventData>
  /** The bandwidth pool of the month is used up and the servers of the account are limited in speed until the month ends, as the account chose. */
  | EventOf<'bandwidth.limited', BandwidthEventData>
  /** An API key was created. */
  | EventOf<'key.created', KeyEventData>
  /** An API key was revoked. */
  | EventOf<'key.revoked', KeyEventData>
  /** The account was suspended or closed. */
  | EventOf<'account.locked', AccountEventData>
  /** A test event, sent with the test button of the endpoint. */
  | EventOf<'webhook.test', TestEventData>;

export interface ListTenantsQuery {
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface ListMembersQuery {
  limit?: number | undefined;
  cursor?: string | undefined;
}

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
  /** Terms such as `env=prod`, `tier!=test`, `owner` or `!old`, separated by commas; all must match. */
  label?: string | undefined;
  /** A time in RFC 3339 format with offset, or a UTC day. */
  created_after?: string | undefined;
  sort?: 'created_at' | '-created_at' | 'name' | '-name' | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface ReadServerQuery {
  /** For example `status:running`: the answer is sent when the server has this status, when it has failed, or after 30 seconds (`Prefer: wait=N` for less). */
  wait_for?: string | undefined;
}

export interface ListServerActionsQuery {
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface ListSnapshotsQuery {
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface ListServerSnapshotsQuery {
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface ListNetworksQuery {
  name?: string | undefined;
  /** Terms such as `env=prod`, `tier!=test`, `owner` or `!old`, separated by commas; all must match. */
  label?: string | undefined;
  /** Networks of this server. */
  server_id?: number | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface ListServerNetworksQuery {
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface ListAddressesQuery {
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

export interface ReadServerTrafficQuery {
  /** The range up to now, instead of `from` and `to`. Longer ranges have longer steps by default. */
  range?: '15m' | '1h' | '6h' | '24h' | '7d' | '30d' | undefined;
  /** `yes`: with the applications of the range. Default `no`. */
  applications?: 'yes' | 'no' | undefined;
  /** A time in RFC 3339 format with offset, such as `2026-11-22T10:00:00Z`. Default: 60 steps before `to`. */
  from?: string | undefined;
  /** A time in RFC 3339 format with offset, not included. Default, and for times to come: now. */
  to?: string | undefined;
  /** Default `minute`, and the step of `range`. */
  step?: 'minute' | '5m' | '15m' | '30m' | 'hour' | '6h' | 'day' | undefined;
  /** One of `addresses`. Default: the sum of all addresses. */
  address?: string | undefined;
}

export interface ListServerIncidentsQuery {
  /** One or more of `active`, `stale`, `recovered`, separated by commas. */
  state?: string | undefined;
  /** Default: both. */
  severity?: 'attack' | 'info' | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface ListServerFindingsQuery {
  /** Default: both. */
  state?: 'active' | 'ignored' | undefined;
  /** One or more of `none`, `low`, `medium`, `high`, `critical`, `unrated`, separated by commas. */
  severity?: string | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface EndFindingIgnoreQuery {
  /** Absent: at every address of the server. */
  address?: string | undefined;
  transport: 'tcp' | 'udp';
  port: number;
  /** As in the finding. */
  fingerprint: string;
  /** As in the finding. */
  cve_id: string;
}

export interface ListApiKeysQuery {
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface ReadUsageQuery {
  /** A UTC calendar month such as `2025-11`; the present one by default. */
  period?: string | undefined;
  /** Grouping of `groups` and of the lines of `Accept: text/csv` (by default `day` for CSV). */
  group_by?: 'day' | 'key' | undefined;
}

export interface ListPlansQuery {
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface ListImagesQuery {
  /** Default: `system`. */
  kind?: 'system' | 'rescue' | 'iso' | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface ListLocationsQuery {
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface ListSshKeysQuery {
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface ListLedgerQuery {
  /** Entries of this source. */
  source?: string | undefined;
  /** A UTC calendar month such as `2025-11`. */
  period?: string | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface ListWebhooksQuery {
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface ListWebhookDeliveriesQuery {
  limit?: number | undefined;
  cursor?: string | undefined;
}

/** A method for each call of the API. */
export class Api extends Caller {
  /** List workspaces. The workspaces of the key, the default one first. `api_access` says whether calls are allowed for a workspace, or why not. */
  listTenants(options: ListTenantsQuery & CallOptions = {}): List<TenantList, Tenant> {
    return new List(this, { method: 'GET', path: `/api/v2/tenants`, query: ['limit', 'cursor'], options }, 'tenants');
  }

  /** List members. The people of the organization of the workspace, owners first. They are invited in the portal. */
  listMembers(options: ListMembersQuery & CallOptions = {}): List<MemberList, Member> {
    return new List(this, { method: 'GET', path: `/api/v2/members`, query: ['limit', 'cursor'], options }, 'members');
  }

  /** List servers. The servers of the workspace, newest first unless `sort` is set. */
  listServers(options: ListServersQuery & CallOptions = {}): List<ServerList, Server> {
    return new List(this, { method: 'GET', path: `/api/v2/servers`, query: ['status', 'name', 'plan', 'location', 'network_id', 'label', 'created_after', 'sort', 'limit', 'cursor'], options }, 'servers');
  }

  /** Deploy a server. Orders one server with hourly billing and starts provisioning. Every call is a new order, unless it repeats an `Idempotency-Key`. Only this answer contains `root_password`. A `snapshot` in place of `image` copies that disk; cloud-init sets its host name, addresses, keys and root password anew. Until the server runs, that snapshot and its server can’t be deleted. Read the server with `wait_for=status:running` until it runs. */
  createServer(body: CreateServerRequest & { dry_run?: false | undefined }, options?: CallOptions): Promise<CreatedServer>;
  createServer(body: CreateServerRequest & { dry_run: true }, options?: CallOptions): Promise<ServerForecast>;
  createServer(body: CreateServerRequest, options: CallOptions = {}): Promise<ServerForecast | CreatedServer> {
    return this.call<ServerForecast | CreatedServer>({ method: 'POST', path: `/api/v2/servers`, body, takesIdempotencyKey: true, options });
  }

  /** Read a server. One server of the workspace. With `wait_for` the answer is sent when the server has reached the status, which replaces polling. */
  readServer(id: number, options: ReadServerQuery & CallOptions = {}): Promise<Server> {
    return this.call<Server>({ method: 'GET', path: `/api/v2/servers/${encodeURIComponent(id)}`, query: ['wait_for'], options });
  }

  /** Rename or label a server. Changes the given fields only. Labels are merged; null removes a label. The operating system of the server is not changed. */
  updateServer(id: number, body: UpdateServerRequest, options: CallOptions = {}): Promise<Server> {
    return this.call<Server>({ method: 'PATCH', path: `/api/v2/servers/${encodeURIComponent(id)}`, body, options });
  }

  /** Destroy a server. Deletes the server with its disk and releases its addresses. Idempotent: while the action runs, a repeated call returns it; afterwards the server is not found. A power action that is under way, and an order whose provisioning has not begun (`status` `queued`), end with `error.code` `superseded`. */
  destroyServer(id: number, options: CallOptions = {}): Promise<ServerAction> {
    return this.call<ServerAction>({ method: 'DELETE', path: `/api/v2/servers/${encodeURIComponent(id)}`, options });
  }

  /** List actions of a server. Actions of the server, newest first. */
  listServerActions(id: number, options: ListServerActionsQuery & CallOptions = {}): List<ServerActionList, ServerAction> {
    return new List(this, { method: 'GET', path: `/api/v2/servers/${encodeURIComponent(id)}/actions`, query: ['limit', 'cursor'], options }, 'actions');
  }

  /** Start, stop or restart a server. `shutdown` is an ACPI shutdown, `stop` switches the power off. Idempotent: if the server is already in the requested state, the answer is 200 with `changed: false`. `stop` and `reset` take the place of a `shutdown` or `reboot` that is under way, which ends with `error.code` `superseded`. */
  actOnServer(id: number, body: ActionRequest, options: CallOptions = {}): Promise<ServerAction> {
    return this.call<ServerAction>({ method: 'POST', path: `/api/v2/servers/${encodeURIComponent(id)}/actions`, body, takesIdempotencyKey: true, options });
  }

  /** Rebuild a server. Replaces the disk by a new one made from `image`, by default the present one, and starts the server. Everything on the old disk is lost. Id, addresses, private networks, firewall, SSH keys, user data and price stay; root gets a new password, which only this answer contains. The old disk is deleted when the new one is made: if that fails, the server keeps it. */
  rebuildServer(id: number, body: RebuildRequest, options: CallOptions = {}): Promise<ActionForecast | PasswordAction> {
    return this.call<ActionForecast | PasswordAction>({ method: 'POST', path: `/api/v2/servers/${encodeURIComponent(id)}/actions/rebuild`, body, takesIdempotencyKey: true, options });
  }

  /** Resize a server. Gives the server another plan at its present price. A running server is shut down and started again. Processors and memory go up and down; the disk grows to that of the plan, unless `keep_disk` is set, and a plan with a smaller disk is refused. The new price applies from then on. An hour costs the highest price of its plans, once: of the hour that has begun what is missing to a higher price is charged, which needs credit above zero. Nothing is changed when the operating system does not shut down in time or the node has no capacity. */
  resizeServer(id: number, body: ResizeRequest, options: CallOptions = {}): Promise<ActionForecast | ServerAction> {
    return this.call<ActionForecast | ServerAction>({ method: 'POST', path: `/api/v2/servers/${encodeURIComponent(id)}/actions/resize`, body, takesIdempotencyKey: true, options });
  }

  /** Reset the root password. Sets a new root password inside a running server by its guest agent (`qemu-guest-agent`), or else by cloud-init at its next boot within 24 hours: then the `outcome` of the action is `next_boot`. Only this answer contains it; it is valid once the action has succeeded. */
  resetPassword(id: number, options: CallOptions = {}): Promise<PasswordAction> {
    return this.call<PasswordAction>({ method: 'POST', path: `/api/v2/servers/${encodeURIComponent(id)}/actions/reset-password`, takesIdempotencyKey: true, options });
  }

  /** Rescue a server. Starts the server from a rescue system, for one that is locked out or does not boot. Its power is cut, so shut it down first if it still runs well. It keeps addresses, private networks, firewall and price; its own disk is there untouched, on most systems as `/dev/vdc`. Root has a password that only this answer contains, and the SSH keys of the server. Until `unrescue` it starts from the rescue system again; rebuild, resize, snapshots and a new root password are refused. Idempotent: `changed: false` if it is in rescue already. */
  rescueServer(id: number, body: RescueRequest, options: CallOptions = {}): Promise<RescueAction> {
    return this.call<RescueAction>({ method: 'POST', path: `/api/v2/servers/${encodeURIComponent(id)}/actions/rescue`, body, takesIdempotencyKey: true, options });
  }

  /** End a rescue. Starts the server from its own disk again and deletes the rescue system with everything written to it. Idempotent: `changed: false` if it is not in rescue. */
  unrescueServer(id: number, options: CallOptions = {}): Promise<ServerAction> {
    return this.call<ServerAction>({ method: 'POST', path: `/api/v2/servers/${encodeURIComponent(id)}/actions/unrescue`, takesIdempotencyKey: true, options });
  }

  /** Attach an ISO. Puts an ISO of `GET /images?kind=iso` into the CD drive of the server, in place of another one. A running server sees it at once and goes on; until `detach-iso` it starts from it before its disk, so reset the server to use it. With `outcome` `next_boot` it has a CD drive only after a stop and a start. Idempotent: `changed: false` if that ISO is there already. */
  attachIso(id: number, body: AttachIsoRequest, options: CallOptions = {}): Promise<ServerAction> {
    return this.call<ServerAction>({ method: 'POST', path: `/api/v2/servers/${encodeURIComponent(id)}/actions/attach-iso`, body, takesIdempotencyKey: true, options });
  }

  /** Detach the ISO. Takes the ISO out of the CD drive, at once where the server runs. It starts from its disk from then on. Idempotent: `changed: false` if there is none. */
  detachIso(id: number, options: CallOptions = {}): Promise<ServerAction> {
    return this.call<ServerAction>({ method: 'POST', path: `/api/v2/servers/${encodeURIComponent(id)}/actions/detach-iso`, takesIdempotencyKey: true, options });
  }

  /** Open the console. Gives a ticket for the console of a running server: a WebSocket URL that connects once, within 60 seconds, without a key. The console closes when the key is revoked or expires, the account is suspended, or the server is stopped or destroyed. */
  openConsole(id: number, body: ConsoleRequest, options: CallOptions = {}): Promise<ConsoleTicket> {
    return this.call<ConsoleTicket>({ method: 'POST', path: `/api/v2/servers/${encodeURIComponent(id)}/console`, body, options });
  }

  /** Read an action. One action, also of a destroyed server. With `Prefer: wait=N` the answer is sent when the action has finished. */
  readAction(id: number, options: CallOptions = {}): Promise<ServerAction> {
    return this.call<ServerAction>({ method: 'GET', path: `/api/v2/actions/${encodeURIComponent(id)}`, options });
  }

  /** Cancel an action. Cancels a power action that has not begun, and a shutdown that waits for the operating system, which may halt all the same. The action ends with `error.code` `cancelled`. Idempotent. To cancel an order, destroy the server while its `status` is `queued`. */
  cancelAction(id: number, options: CallOptions = {}): Promise<ServerAction> {
    return this.call<ServerAction>({ method: 'DELETE', path: `/api/v2/actions/${encodeURIComponent(id)}`, options });
  }

  /** List snapshots. The snapshots of all servers of the workspace, oldest first. */
  listSnapshots(options: ListSnapshotsQuery & CallOptions = {}): List<SnapshotList, Snapshot> {
    return new List(this, { method: 'GET', path: `/api/v2/snapshots`, query: ['limit', 'cursor'], options }, 'snapshots');
  }

  /** List snapshots of a server. The snapshots of the server, oldest first. */
  listServerSnapshots(id: number, options: ListServerSnapshotsQuery & CallOptions = {}): List<SnapshotList, Snapshot> {
    return new List(this, { method: 'GET', path: `/api/v2/servers/${encodeURIComponent(id)}/snapshots`, query: ['limit', 'cursor'], options }, 'snapshots');
  }

  /** Take a snapshot. Copies the disk of the server, running or stopped, as it is at the beginning of the action. A running server goes on: what its operating system has not written to the disk yet is missing, as after a power failure; stop the server first to be sure. Other actions are refused until the copy is complete. What it takes is charged by the hour, at the price that `GET /prices` has; unless they cost nothing, that needs credit above zero. Snapshots are deleted with their server. `If-Match` takes the tag of the server. */
  createSnapshot(id: number, body: CreateSnapshotRequest, options: CallOptions = {}): Promise<SnapshotForecast | Snapshot> {
    return this.call<SnapshotForecast | Snapshot>({ method: 'POST', path: `/api/v2/servers/${encodeURIComponent(id)}/snapshots`, body, takesIdempotencyKey: true, options });
  }

  /** Read a snapshot. One snapshot of a server of the workspace. */
  readSnapshot(id: number, options: CallOptions = {}): Promise<Snapshot> {
    return this.call<Snapshot>({ method: 'GET', path: `/api/v2/snapshots/${encodeURIComponent(id)}`, options });
  }

  /** Delete a snapshot. The snapshot can’t be restored any more. A server that was restored or made from it keeps its disk. */
  deleteSnapshot(id: number, options: CallOptions = {}): Promise<undefined> {
    return this.call<undefined>({ method: 'DELETE', path: `/api/v2/snapshots/${encodeURIComponent(id)}`, answersNothing: true, options });
  }

  /** Restore a snapshot. Gives the server of the snapshot the disk that it had, with its passwords and keys. Everything written since is lost, unless it is in another snapshot. A running server is switched off and started again. Addresses, private networks, firewall, plan and price stay; the disk keeps its present size. `If-Match` takes the tag of the server. */
  restoreSnapshot(id: number, body: RestoreSnapshotRequest, options: CallOptions = {}): Promise<ActionForecast | ServerAction> {
    return this.call<ActionForecast | ServerAction>({ method: 'POST', path: `/api/v2/snapshots/${encodeURIComponent(id)}/restore`, body, takesIdempotencyKey: true, options });
  }

  /** List private networks. The private networks of the workspace, oldest first, and the number of further ones it may have. */
  listNetworks(options: ListNetworksQuery & CallOptions = {}): List<NetworkList, NetworkSummary> {
    return new List(this, { method: 'GET', path: `/api/v2/networks`, query: ['name', 'label', 'server_id', 'limit', 'cursor'], options }, 'networks');
  }

  /** Create a private network. A network belongs to one location and connects servers of this account only. Its `cidr` can not be changed. It is usable at once; `sync.state` becomes `synced` when all hypervisors have it. */
  createNetwork(body: CreateNetworkRequest, options: CallOptions = {}): Promise<Network> {
    return this.call<Network>({ method: 'POST', path: `/api/v2/networks`, body, takesIdempotencyKey: true, options });
  }

  /** Read a private network. One network with its members. */
  readNetwork(id: number, options: CallOptions = {}): Promise<Network> {
    return this.call<Network>({ method: 'GET', path: `/api/v2/networks/${encodeURIComponent(id)}`, options });
  }

  /** Change a private network. Changes name, description and labels. Labels are merged; null removes a label. `cidr` and `location` can not be changed. */
  changeNetwork(id: number, body: ChangeNetworkRequest, options: CallOptions = {}): Promise<Network> {
    return this.call<Network>({ method: 'PATCH', path: `/api/v2/networks/${encodeURIComponent(id)}`, body, options });
  }

  /** Delete a private network. Deletes a network without members. A server that is being detached still counts: then the 409 is `retryable`, with the time in `Retry-After`. */
  deleteNetwork(id: number, options: CallOptions = {}): Promise<undefined> {
    return this.call<undefined>({ method: 'DELETE', path: `/api/v2/networks/${encodeURIComponent(id)}`, answersNothing: true, options });
  }

  /** Sync a private network. Applies the stored membership to the hypervisors again. Calls while a sync is pending return the same sync. Its result is in `sync`. */
  syncNetwork(id: number, options: CallOptions = {}): Promise<Network> {
    return this.call<Network>({ method: 'POST', path: `/api/v2/networks/${encodeURIComponent(id)}/sync`, isIdempotent: true, options });
  }

  /** List private networks of a server. The attachments of the server, as in its `private_networks`. */
  listServerNetworks(id: number, options: ListServerNetworksQuery & CallOptions = {}): List<AttachmentList, PrivateNetworkAttachment> {
    return new List(this, { method: 'GET', path: `/api/v2/servers/${encodeURIComponent(id)}/networks`, query: ['limit', 'cursor'], options }, 'networks');
  }

  /** Attach a server to a private network. Adds a network interface of the server to the network, with the given or the lowest free address. Poll the server until the `state` of the attachment is `attached`. Idempotent: with the same or no address, a repeated call returns the existing attachment with 200. */
  attachServer(id: number, body: AttachRequest, options: CallOptions = {}): Promise<PrivateNetworkAttachment> {
    return this.call<PrivateNetworkAttachment>({ method: 'POST', path: `/api/v2/servers/${encodeURIComponent(id)}/networks`, body, isIdempotent: true, options });
  }

  /** Detach a server from a private network. Removes the network interface. Poll the server until it is no longer in `private_networks`. The last interface of a server without a public address can not be removed. */
  detachServer(id: number, networkId: number, options: CallOptions = {}): Promise<PrivateNetworkAttachment> {
    return this.call<PrivateNetworkAttachment>({ method: 'DELETE', path: `/api/v2/servers/${encodeURIComponent(id)}/networks/${encodeURIComponent(networkId)}`, options });
  }

  /** List kept addresses. The addresses that the workspace keeps, oldest first, and the number of further ones it may have. Other addresses of servers are in `public_ips` of each server. */
  listAddresses(options: ListAddressesQuery & CallOptions = {}): List<AddressList, Address> {
    return new List(this, { method: 'GET', path: `/api/v2/addresses`, query: ['limit', 'cursor'], options }, 'addresses');
  }

  /** Keep an address. Reserves a free address of a location, or with `address` keeps one that a server has. A kept address outlives its servers and costs nothing; it is yours until you release it. Traffic, attacks, ports and findings stay with the server that had the address at that time. */
  reserveAddress(body: ReserveAddressRequest, options: CallOptions = {}): Promise<Address> {
    return this.call<Address>({ method: 'POST', path: `/api/v2/addresses`, body, takesIdempotencyKey: true, options });
  }

  /** Read a kept address. One kept address of the workspace. */
  readAddress(id: number, options: CallOptions = {}): Promise<Address> {
    return this.call<Address>({ method: 'GET', path: `/api/v2/addresses/${encodeURIComponent(id)}`, options });
  }

  /** Rename a kept address. Changes the name. */
  updateAddress(id: number, body: UpdateAddressRequest, options: CallOptions = {}): Promise<Address> {
    return this.call<Address>({ method: 'PATCH', path: `/api/v2/addresses/${encodeURIComponent(id)}`, body, options });
  }

  /** Release a kept address. Gives the address back; another customer may get it later. An address that its server was deployed with stays with the server, and goes when the server is destroyed. Detach any other before. */
  releaseAddress(id: number, options: CallOptions = {}): Promise<undefined> {
    return this.call<undefined>({ method: 'DELETE', path: `/api/v2/addresses/${encodeURIComponent(id)}`, answersNothing: true, options });
  }

  /** Attach a kept address to a server. The server may send from the address and receives what is sent to it once the action has succeeded; its firewall applies to it as well. The operating system isn’t changed: add the address to its network interface, or rebuild the server, which sets up all its addresses. */
  attachAddress(id: number, body: AttachAddressRequest, options: CallOptions = {}): Promise<ServerAction> {
    return this.call<ServerAction>({ method: 'POST', path: `/api/v2/addresses/${encodeURIComponent(id)}/attach`, body, takesIdempotencyKey: true, options });
  }

  /** Detach a kept address. Takes the address from its server, which can’t send from it any more once the action has succeeded. You keep the address. The primary address of a server stays with it. */
  detachAddress(id: number, options: CallOptions = {}): Promise<ServerAction> {
    return this.call<ServerAction>({ method: 'POST', path: `/api/v2/addresses/${encodeURIComponent(id)}/detach`, takesIdempotencyKey: true, options });
  }

  /** Read the reverse DNS of an address. The name of a public address of the server. */
  readReverseDns(id: number, address: string, options: CallOptions = {}): Promise<ReverseDns> {
    return this.call<ReverseDns>({ method: 'GET', path: `/api/v2/servers/${encodeURIComponent(id)}/addresses/${encodeURIComponent(address)}/reverse-dns`, options });
  }

  /** Set the reverse DNS of an address. Names a public address of the server. The name must have an A or AAAA record with the address, unless `force` is true. It is removed when the server loses the address. Poll until `status` is `applied`, or subscribe to `server.reverse_dns_applied`. */
  setReverseDns(id: number, address: string, body: SetReverseDnsRequest, options: CallOptions = {}): Promise<ReverseDns> {
    return this.call<ReverseDns>({ method: 'PUT', path: `/api/v2/servers/${encodeURIComponent(id)}/addresses/${encodeURIComponent(address)}/reverse-dns`, body, options });
  }

  /** Remove the reverse DNS of an address. The address has no name afterwards. */
  deleteReverseDns(id: number, address: string, options: CallOptions = {}): Promise<undefined> {
    return this.call<undefined>({ method: 'DELETE', path: `/api/v2/servers/${encodeURIComponent(id)}/addresses/${encodeURIComponent(address)}/reverse-dns`, answersNothing: true, options });
  }

  /** Read the account. Credit, limits, counted requests and the bandwidth pool of the present month. All servers of the account share the allowances. */
  readAccount(options: CallOptions = {}): Promise<Account> {
    return this.call<Account>({ method: 'GET', path: `/api/v2/account`, options });
  }

  /** Choose what happens when the bandwidth pool is used up. Holds from now on, also in later months. With `limit` the servers are limited within about a minute of using up the pool, new ones as well, until the month ends. With `charge` a limit ends, and what is used beyond the pool from then on is charged. */
  updateAccount(body: UpdateAccountRequest, options: CallOptions = {}): Promise<Account> {
    return this.call<Account>({ method: 'PATCH', path: `/api/v2/account`, body, options });
  }

  /** Read the bandwidth of a server. Traffic of the server by UTC month or day, newest first; the last twelve months unless `from` and `to` are set. The present month is always included: with zeros and `sampled: false` before the first measurement. */
  readServerBandwidth(id: number, options: ReadServerBandwidthQuery & CallOptions = {}): Promise<ServerBandwidth> {
    return this.call<ServerBandwidth>({ method: 'GET', path: `/api/v2/servers/${encodeURIComponent(id)}/bandwidth`, query: ['from', 'to', 'granularity'], options });
  }

  /** Read the traffic of a server. Rates of the server’s public addresses, one point for each step of the range, oldest first. `range` is the time up to now. Without `range`, `from` and `to`: the last 60 steps. The range is extended to whole UTC steps and has at most 1,500 points. A step without observation is a point with null: its traffic is unknown, not zero. A minute arrives one to two minutes after its end; minutes are kept for three months. `applications=yes` adds the applications of the range, for the last 24 hours at most. While the protection views of the server are off, `applications`, `expected_bps`, `expected_pps`, `attack_bps` and `attack_pps` are null. */
  readServerTraffic(id: number, options: ReadServerTrafficQuery & CallOptions = {}): Promise<ServerTraffic> {
    return this.call<ServerTraffic>({ method: 'GET', path: `/api/v2/servers/${encodeURIComponent(id)}/traffic`, query: ['range', 'applications', 'from', 'to', 'step', 'address'], options });
  }

  /** List attacks of a server. Attacks on the addresses of the server, or from them, newest first. An attack is `active` until the sensor reports its end (`recovered`); `stale` means that the sensor reports nothing, so it is unknown whether the attack goes on. Attacks are kept for one year. While the protection views of the server are off, the answer is a `404` (`protect_disabled`). */
  listServerIncidents(id: number, options: ListServerIncidentsQuery & CallOptions = {}): List<IncidentList, Incident> {
    return new List(this, { method: 'GET', path: `/api/v2/servers/${encodeURIComponent(id)}/incidents`, query: ['state', 'severity', 'limit', 'cursor'], options }, 'incidents');
  }

  /** List open ports of a server. Ports of the public addresses of the server that answered a scan, and the scans of the last seven days. The 100 most used ports are scanned every hour, all ports every day. While the protection views of the server are off, the answer is a `404` (`protect_disabled`). */
  listServerPorts(id: number, options: CallOptions = {}): Promise<PortList> {
    return this.call<PortList>({ method: 'GET', path: `/api/v2/servers/${encodeURIComponent(id)}/ports`, options });
  }

  /** Request a port scan. Queues a full scan of every public address of a running server. While scans of the server are pending, the answer is these (200) and nothing is queued. At most every 10 minutes for a server, 32 addresses at once, and 100 pending addresses for an account. A scan that was not started within 24 hours expires. */
  scanServerPorts(id: number, options: CallOptions = {}): Promise<PortScanList> {
    return this.call<PortScanList>({ method: 'POST', path: `/api/v2/servers/${encodeURIComponent(id)}/port-scans`, isIdempotent: true, options });
  }

  /** List potential vulnerabilities of a server. What the National Vulnerability Database (NVD) says of the versions that scans found at the public addresses of the server. A finding is potential: it does not say that the server can be exploited, nor that a patch is missing. Services whose version is unknown, and packages of distributions, are in `unable`. Evidence of more than seven days is not shown. This product uses the NVD API but is not endorsed or certified by the NVD. While the protection views of the server are off, the answer is a `404` (`protect_disabled`). */
  listServerFindings(id: number, options: ListServerFindingsQuery & CallOptions = {}): List<FindingList, Finding> {
    return new List(this, { method: 'GET', path: `/api/v2/servers/${encodeURIComponent(id)}/findings`, query: ['state', 'severity', 'limit', 'cursor'], options }, 'findings');
  }

  /** Ignore a potential vulnerability. The finding is `ignored` at the address, or at all addresses of the server, and not counted as active. This holds for this address assignment, port, version (`fingerprint`) and CVE: when another version is found, or the address is assigned again, the finding is active. What is ignored already stays as it is (200). A finding that the server does not have now is a `422`. */
  ignoreServerFinding(id: number, body: IgnoreFindingRequest, options: CallOptions = {}): Promise<IgnoredFindings> {
    return this.call<IgnoredFindings>({ method: 'POST', path: `/api/v2/servers/${encodeURIComponent(id)}/findings/ignores`, body, isIdempotent: true, options });
  }

  /** End the ignoring of a potential vulnerability. The finding is active again. Idempotent: for a finding that is not ignored, the answer is the same. */
  endFindingIgnore(id: number, options: EndFindingIgnoreQuery & CallOptions): Promise<undefined> {
    return this.call<undefined>({ method: 'DELETE', path: `/api/v2/servers/${encodeURIComponent(id)}/findings/ignores`, query: ['address', 'transport', 'port', 'fingerprint', 'cve_id'], answersNothing: true, options });
  }

  /** Read the firewall of a server. The firewall at the public network interface of the server: default actions, rules in order, the platform’s rules, and whether the hypervisor has the newest version. */
  readServerFirewall(id: number, options: CallOptions = {}): Promise<ServerFirewall> {
    return this.call<ServerFirewall>({ method: 'GET', path: `/api/v2/servers/${encodeURIComponent(id)}/firewall`, options });
  }

  /** Replace the firewall of a server. Sets default actions and all rules, and applies them as one version. What is there already is left alone, so a repetition changes nothing. `status` is `pending` until the hypervisor has the rules: wait with `Prefer: wait=N` or for the event `firewall.applied`. */
  replaceServerFirewall(id: number, body: ReplaceFirewallRequest, options: CallOptions = {}): Promise<ServerFirewall> {
    return this.call<ServerFirewall>({ method: 'PUT', path: `/api/v2/servers/${encodeURIComponent(id)}/firewall`, body, options });
  }

  /** Add a firewall rule. Adds one rule at the end or at `position`, and applies the firewall. It filters only while the firewall is enabled. */
  addFirewallRule(id: number, body: AddFirewallRuleRequest, options: CallOptions = {}): Promise<FirewallRule> {
    return this.call<FirewallRule>({ method: 'POST', path: `/api/v2/servers/${encodeURIComponent(id)}/firewall/rules`, body, takesIdempotencyKey: true, options });
  }

  /** Replace a firewall rule. Replaces one rule, which keeps its id and position, and applies the firewall. */
  replaceFirewallRule(id: number, ruleId: number, body: ReplaceFirewallRuleRequest, options: CallOptions = {}): Promise<FirewallRule> {
    return this.call<FirewallRule>({ method: 'PUT', path: `/api/v2/servers/${encodeURIComponent(id)}/firewall/rules/${encodeURIComponent(ruleId)}`, body, options });
  }

  /** Remove a firewall rule. Removes one rule and applies the firewall. */
  removeFirewallRule(id: number, ruleId: number, options: CallOptions = {}): Promise<undefined> {
    return this.call<undefined>({ method: 'DELETE', path: `/api/v2/servers/${encodeURIComponent(id)}/firewall/rules/${encodeURIComponent(ruleId)}`, answersNothing: true, options });
  }

  /** Read the calling key. Permissions, expiry and remaining requests per minute of the calling key. Other keys are not included. */
  readKey(options: CallOptions = {}): Promise<Key> {
    return this.call<Key>({ method: 'GET', path: `/api/v2/key`, options });
  }

  /** List API keys. The keys of the workspace that reach no more workspaces than the calling key: those of its person, and of the whole organization for an owner’s key. Active ones first, then newest. */
  listApiKeys(options: ListApiKeysQuery & CallOptions = {}): List<ApiKeyList, ApiKey> {
    return new List(this, { method: 'GET', path: `/api/v2/keys`, query: ['limit', 'cursor'], options }, 'keys');
  }

  /** Create an API key. Creates a key for the person of the calling key, who must be an owner of the organization. It gets no more scope, workspaces or time than the calling key. Only this answer contains the `token`: when the answer is lost, revoke the key and create another. */
  createApiKey(body: CreateApiKeyRequest, options: CallOptions = {}): Promise<CreatedApiKey> {
    return this.call<CreatedApiKey>({ method: 'POST', path: `/api/v2/keys`, body, options });
  }

  /** Read an API key. One key of the list. */
  readApiKey(keyId: string, options: CallOptions = {}): Promise<ApiKey> {
    return this.call<ApiKey>({ method: 'GET', path: `/api/v2/keys/${encodeURIComponent(keyId)}`, options });
  }

  /** Revoke an API key. From the next call on the key is invalid. A key may revoke itself. Revoked keys stay in the list. */
  revokeApiKey(keyId: string, options: CallOptions = {}): Promise<ApiKey> {
    return this.call<ApiKey>({ method: 'DELETE', path: `/api/v2/keys/${encodeURIComponent(keyId)}`, options });
  }

  /** Read the requests of a month. Counted requests of the workspace’s account in a UTC calendar month: by key, by day, and the cost of overage. Overage never blocks a call. */
  readUsage(options: ReadUsageQuery & CallOptions = {}): Promise<Usage> {
    return this.call<Usage>({ method: 'GET', path: `/api/v2/usage`, query: ['period', 'group_by'], options });
  }

  /** List plans. The plans that can be ordered, cheapest first, with prices in the currency of the workspace and availability per location. */
  listPlans(options: ListPlansQuery & CallOptions = {}): List<PlanList, Plan> {
    return new List(this, { method: 'GET', path: `/api/v2/plans`, query: ['limit', 'cursor'], options }, 'plans');
  }

  /** Read a plan. One plan, also one that is no longer offered. Servers keep the price they were ordered at. */
  readPlan(id: string | number, options: CallOptions = {}): Promise<Plan> {
    return this.call<Plan>({ method: 'GET', path: `/api/v2/plans/${encodeURIComponent(id)}`, options });
  }

  /** List images. The operating systems that servers can be ordered with, with `kind=rescue` those that a server can be rescued with, or with `kind=iso` ISOs for its CD drive. */
  listImages(options: ListImagesQuery & CallOptions = {}): List<ImageList, Image> {
    return new List(this, { method: 'GET', path: `/api/v2/images`, query: ['kind', 'limit', 'cursor'], options }, 'images');
  }

  /** Read an image. One image, also one that is no longer offered. */
  readImage(id: string | number, options: CallOptions = {}): Promise<Image> {
    return this.call<Image>({ method: 'GET', path: `/api/v2/images/${encodeURIComponent(id)}`, options });
  }

  /** List locations. The locations of servers, and which plans are available there. */
  listLocations(options: ListLocationsQuery & CallOptions = {}): List<LocationList, Location> {
    return new List(this, { method: 'GET', path: `/api/v2/locations`, query: ['limit', 'cursor'], options }, 'locations');
  }

  /** Read a location. One location, and which plans are available there. */
  readLocation(id: string | number, options: CallOptions = {}): Promise<Location> {
    return this.call<Location>({ method: 'GET', path: `/api/v2/locations/${encodeURIComponent(id)}`, options });
  }

  /** Read all prices. The price of each plan that can be ordered, and of API requests above the free quota. */
  readPrices(options: CallOptions = {}): Promise<Prices> {
    return this.call<Prices>({ method: 'GET', path: `/api/v2/prices`, options });
  }

  /** List SSH keys. The SSH keys of the workspace, by name. */
  listSshKeys(options: ListSshKeysQuery & CallOptions = {}): List<SshKeyList, SshKey> {
    return new List(this, { method: 'GET', path: `/api/v2/ssh-keys`, query: ['limit', 'cursor'], options }, 'ssh_keys');
  }

  /** Add an SSH key. Keeps a public key under a name, which `ssh_keys` of a new server may use. Names and keys are unique in the workspace. */
  createSshKey(body: CreateSshKeyRequest, options: CallOptions = {}): Promise<SshKey> {
    return this.call<SshKey>({ method: 'POST', path: `/api/v2/ssh-keys`, body, takesIdempotencyKey: true, options });
  }

  /** Read an SSH key. One SSH key of the workspace. */
  readSshKey(id: number, options: CallOptions = {}): Promise<SshKey> {
    return this.call<SshKey>({ method: 'GET', path: `/api/v2/ssh-keys/${encodeURIComponent(id)}`, options });
  }

  /** Rename an SSH key. Changes the name. For another public key, add it and delete this one. */
  updateSshKey(id: number, body: UpdateSshKeyRequest, options: CallOptions = {}): Promise<SshKey> {
    return this.call<SshKey>({ method: 'PATCH', path: `/api/v2/ssh-keys/${encodeURIComponent(id)}`, body, options });
  }

  /** Delete an SSH key. New servers can’t be ordered with it any more. Present servers keep it. */
  deleteSshKey(id: number, options: CallOptions = {}): Promise<undefined> {
    return this.call<undefined>({ method: 'DELETE', path: `/api/v2/ssh-keys/${encodeURIComponent(id)}`, answersNothing: true, options });
  }

  /** List ledger entries. Every change of the credit of the account, newest first. The entries add up to `credit_balance` of the account. */
  listLedger(options: ListLedgerQuery & CallOptions = {}): List<LedgerEntryList, LedgerEntry> {
    return new List(this, { method: 'GET', path: `/api/v2/ledger`, query: ['source', 'period', 'limit', 'cursor'], options }, 'entries');
  }

  /** List webhooks. The endpoints that are told what happens in the workspace. Only keys of an owner of the organization see them. */
  listWebhooks(options: ListWebhooksQuery & CallOptions = {}): List<WebhookList, Webhook> {
    return new List(this, { method: 'GET', path: `/api/v2/webhooks`, query: ['limit', 'cursor'], options }, 'webhooks');
  }

  /** Create a webhook. Tells an address of yours what happens in the workspace. Only this answer contains the `secret` with which deliveries are signed. */
  createWebhook(body: CreateWebhookRequest, options: CallOptions = {}): Promise<CreatedWebhook> {
    return this.call<CreatedWebhook>({ method: 'POST', path: `/api/v2/webhooks`, body, takesIdempotencyKey: true, options });
  }

  /** Read a webhook. One endpoint of the workspace. */
  readWebhook(id: number, options: CallOptions = {}): Promise<Webhook> {
    return this.call<Webhook>({ method: 'GET', path: `/api/v2/webhooks/${encodeURIComponent(id)}`, options });
  }

  /** Change a webhook. Changes the given fields only. A disabled endpoint gets nothing, and nothing later of what it missed. */
  updateWebhook(id: number, body: UpdateWebhookRequest, options: CallOptions = {}): Promise<Webhook> {
    return this.call<Webhook>({ method: 'PATCH', path: `/api/v2/webhooks/${encodeURIComponent(id)}`, body, options });
  }

  /** Delete a webhook. Deletes the endpoint with its deliveries. */
  deleteWebhook(id: number, options: CallOptions = {}): Promise<undefined> {
    return this.call<undefined>({ method: 'DELETE', path: `/api/v2/webhooks/${encodeURIComponent(id)}`, answersNothing: true, options });
  }

  /** Test a webhook. Sends the endpoint an event `webhook.test`; at most 5 within 10 minutes. */
  testWebhook(id: number, options: CallOptions = {}): Promise<WebhookDelivery> {
    return this.call<WebhookDelivery>({ method: 'POST', path: `/api/v2/webhooks/${encodeURIComponent(id)}/test`, options });
  }

  /** List deliveries. The last 200 deliveries of the endpoint, newest first, each with its last attempt. */
  listWebhookDeliveries(id: number, options: ListWebhookDeliveriesQuery & CallOptions = {}): List<WebhookDeliveryList, WebhookDelivery> {
    return new List(this, { method: 'GET', path: `/api/v2/webhooks/${encodeURIComponent(id)}/deliveries`, query: ['limit', 'cursor'], options }, 'deliveries');
  }

  /** Replay a delivery. Sends a finished delivery of the list once more under the same `webhook-id`. One that is still pending is left alone. */
  replayWebhookDelivery(id: number, deliveryId: number, options: CallOptions = {}): Promise<WebhookDelivery> {
    return this.call<WebhookDelivery>({ method: 'POST', path: `/api/v2/webhooks/${encodeURIComponent(id)}/deliveries/${encodeURIComponent(deliveryId)}/replay`, options });
  }
}
