/**
 * The calls of the customer API.
 *
 * Made by tools/generate-client.ts out of the OpenAPI document: change the contract and generate it again.
 */
import { type CallOptions, Caller, List } from '../caller.ts';
import type {
  Account,
  ActionRequest,
  AttachRequest,
  AttachmentList,
  ChangeNetworkRequest,
  CreateNetworkRequest,
  CreateServerRequest,
  CreatedServer,
  EndFindingIgnoreQuery,
  Finding,
  FindingList,
  IgnoreFindingRequest,
  IgnoredFindings,
  Incident,
  IncidentList,
  Key,
  ListNetworksQuery,
  ListServerActionsQuery,
  ListServerFindingsQuery,
  ListServerIncidentsQuery,
  ListServerNetworksQuery,
  ListServersQuery,
  ListTenantsQuery,
  Network,
  NetworkList,
  NetworkSummary,
  PortList,
  PortScanList,
  PrivateNetworkAttachment,
  ReadServerBandwidthQuery,
  ReadServerQuery,
  ReadServerTrafficQuery,
  ReadUsageQuery,
  Server,
  ServerAction,
  ServerActionList,
  ServerBandwidth,
  ServerFirewall,
  ServerForecast,
  ServerList,
  ServerTraffic,
  Tenant,
  TenantList,
  UpdateServerRequest,
  Usage,
} from './bodies.ts';

/** A method for each call of the API. */
export class Api extends Caller {
  /** List workspaces. The workspaces of the key, the default one first. `api_access` says whether calls are allowed for a workspace, or why not. */
  listTenants(options: ListTenantsQuery & CallOptions = {}): List<TenantList, Tenant> {
    return new List(this, { method: 'GET', path: `/api/v2/tenants`, query: ['limit', 'cursor'], options }, 'tenants');
  }

  /** List servers. The servers of the workspace, newest first unless `sort` is set. */
  listServers(options: ListServersQuery & CallOptions = {}): List<ServerList, Server> {
    return new List(this, { method: 'GET', path: `/api/v2/servers`, query: ['status', 'name', 'plan', 'location', 'network_id', 'label', 'created_after', 'sort', 'limit', 'cursor'], options }, 'servers');
  }

  /** Deploy a server. Orders one server with hourly billing and starts provisioning. Every call is a new order, unless it repeats an `Idempotency-Key`. Only this answer contains `root_password`. Read the server with `wait_for=status:running` until it runs. */
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

  /** Read an action. One action, also of a destroyed server. With `Prefer: wait=N` the answer is sent when the action has finished. */
  readAction(id: number, options: CallOptions = {}): Promise<ServerAction> {
    return this.call<ServerAction>({ method: 'GET', path: `/api/v2/actions/${encodeURIComponent(id)}`, options });
  }

  /** Cancel an action. Cancels a power action that has not begun, and a shutdown that waits for the operating system, which may halt all the same. The action ends with `error.code` `cancelled`. Idempotent. To cancel an order, destroy the server while its `status` is `queued`. */
  cancelAction(id: number, options: CallOptions = {}): Promise<ServerAction> {
    return this.call<ServerAction>({ method: 'DELETE', path: `/api/v2/actions/${encodeURIComponent(id)}`, options });
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

  /** Read the account. Credit, limits, counted requests and the bandwidth pool of the present month. All servers of the account share the allowances. */
  readAccount(options: CallOptions = {}): Promise<Account> {
    return this.call<Account>({ method: 'GET', path: `/api/v2/account`, options });
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

  /** Read the firewall of a server. The firewall at the public network interface of the server: default actions, rules in order, the platform’s rules, and whether the hypervisor has the newest version. Rules are edited in the portal. */
  readServerFirewall(id: number, options: CallOptions = {}): Promise<ServerFirewall> {
    return this.call<ServerFirewall>({ method: 'GET', path: `/api/v2/servers/${encodeURIComponent(id)}/firewall`, options });
  }

  /** Read the calling key. Permissions, expiry and remaining requests per minute of the calling key. Other keys are not included. */
  readKey(options: CallOptions = {}): Promise<Key> {
    return this.call<Key>({ method: 'GET', path: `/api/v2/key`, options });
  }

  /** Read the requests of a month. Counted requests of the workspace’s account in a UTC calendar month: by key, by day, and the cost of overage. Overage never blocks a call. */
  readUsage(options: ReadUsageQuery & CallOptions = {}): Promise<Usage> {
    return this.call<Usage>({ method: 'GET', path: `/api/v2/usage`, query: ['period', 'group_by'], options });
  }
}
