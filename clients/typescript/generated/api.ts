/**
 * The calls of the customer API.
 *
 * Made by tools/generate-client.ts out of the OpenAPI document: change the contract and generate it again.
 */
import { type CallOptions, Caller, List } from '../caller.ts';
import type {
  Account,
  ActionForecast,
  ActionRequest,
  AddFirewallRuleRequest,
  Address,
  AddressList,
  ApiKey,
  ApiKeyList,
  AttachAddressRequest,
  AttachIsoRequest,
  AttachRequest,
  AttachmentList,
  ChangeNetworkRequest,
  ConsoleTicket,
  CreateApiKeyRequest,
  CreateNetworkRequest,
  CreateServerRequest,
  CreateSnapshotRequest,
  CreateSshKeyRequest,
  CreateWebhookRequest,
  CreatedApiKey,
  CreatedServer,
  CreatedWebhook,
  EndFindingIgnoreQuery,
  Finding,
  FindingList,
  FirewallRule,
  IgnoreFindingRequest,
  IgnoredFindings,
  Image,
  ImageList,
  Incident,
  IncidentList,
  Key,
  LedgerEntry,
  LedgerEntryList,
  ListAddressesQuery,
  ListApiKeysQuery,
  ListImagesQuery,
  ListLedgerQuery,
  ListLocationsQuery,
  ListMembersQuery,
  ListNetworksQuery,
  ListPlansQuery,
  ListServerActionsQuery,
  ListServerFindingsQuery,
  ListServerIncidentsQuery,
  ListServerNetworksQuery,
  ListServerSnapshotsQuery,
  ListServersQuery,
  ListSnapshotsQuery,
  ListSshKeysQuery,
  ListTenantsQuery,
  ListWebhookDeliveriesQuery,
  ListWebhooksQuery,
  Location,
  LocationList,
  Member,
  MemberList,
  Network,
  NetworkList,
  NetworkSummary,
  PasswordAction,
  Plan,
  PlanList,
  PortList,
  PortScanList,
  Prices,
  PrivateNetworkAttachment,
  ReadServerBandwidthQuery,
  ReadServerQuery,
  ReadServerTrafficQuery,
  ReadUsageQuery,
  RebuildRequest,
  ReplaceFirewallRequest,
  ReplaceFirewallRuleRequest,
  RescueAction,
  RescueRequest,
  ReserveAddressRequest,
  ResizeRequest,
  RestoreSnapshotRequest,
  ReverseDns,
  Server,
  ServerAction,
  ServerActionList,
  ServerBandwidth,
  ServerFirewall,
  ServerForecast,
  ServerList,
  ServerTraffic,
  SetReverseDnsRequest,
  Snapshot,
  SnapshotForecast,
  SnapshotList,
  SshKey,
  SshKeyList,
  Tenant,
  TenantList,
  UpdateAccountRequest,
  UpdateAddressRequest,
  UpdateServerRequest,
  UpdateSshKeyRequest,
  UpdateWebhookRequest,
  Usage,
  Webhook,
  WebhookDelivery,
  WebhookDeliveryList,
  WebhookList,
} from './bodies.ts';

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
  openConsole(id: number, options: CallOptions = {}): Promise<ConsoleTicket> {
    return this.call<ConsoleTicket>({ method: 'POST', path: `/api/v2/servers/${encodeURIComponent(id)}/console`, options });
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
