/**
 * Adds the server that an order holds everything for, and queues its provisioning: its row, its addresses, its network
 * interfaces and its job are one transaction, so a crash leaves all of them or none.
 */
import type { Actor } from '#operations/accounts/index.ts';
import { assignHeldAddresses } from '#operations/addresses/index.ts';
import { emit } from '#operations/events/index.ts';
import { joinHeldNetwork } from '#operations/networks/index.ts';
import { record } from '#service-kit/audit/index.ts';
import { enqueueJob } from '#service-kit/jobs/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { insertAction } from './action-store.ts';
import type { Requester } from './authorise.ts';
import * as store from './store.ts';

/** What a server was asked to be. */
export interface RequestedServer {
  tenantId: number;
  /** Slug or id. */
  plan: string | number;
  /** Slug or id; absent with a snapshot. */
  image?: string | number | undefined;
  /** A complete one of the account, which the disk is made from. */
  snapshotId?: number | undefined;
  name?: string | undefined;
  hostname?: string | undefined;
  /** As lines of `authorized_keys`. */
  sshKeys?: readonly string[] | undefined;
  userData?: string | undefined;
  labels?: Readonly<Record<string, string>> | undefined;
  /** One existing private network of the same account and location, joined from the first boot on. */
  networkId?: number | undefined;
  /** Its address there; absent: the lowest free one. */
  networkIp?: string | undefined;
  /** False: a server that is reached through its private network only. */
  publicIp?: boolean | undefined;
}

/** What was held for a server before its row is made. Prices are those of the moment of ordering. */
export interface HeldServer {
  serverId: number;
  planId: number;
  imageId: number;
  hourlyQuanta: number;
  monthlyCapQuanta: number;
  clusterId: number;
  locationId: number;
  /** Of its public network interface; null for a private-only server. */
  mac: string | null;
}

export interface AddedServer {
  orderId: number;
  requested: RequestedServer;
  held: HeldServer;
  requester: Requester;
}

/** Runs in the transaction that carries out the order. */
export async function addServer(
  tx: Queryable,
  actor: Actor,
  { orderId, requested, held, requester }: AddedServer,
): Promise<void> {
  const { serverId, locationId } = held;
  const { tenantId, networkId, networkIp: ip, plan, image, snapshotId } = requested;
  await insertServer(tx, orderId, requested, held);
  if (held.mac !== null) await store.insertInterface(tx, serverId, held.mac);
  // In the order in which holds are made, the network before the pools of addresses: else an order that is being placed
  // and one that was paid could each wait for what the other has locked.
  if (networkId !== undefined)
    await joinHeldNetwork(tx, { serverId, tenantId, locationId }, { networkId, ip });
  await assignHeldAddresses(tx, { serverId, tenantId });
  await insertAction(tx, { serverId, command: 'create', ...requester });
  await enqueueJob(tx, 'servers.provision', { server_id: serverId });
  await emit(tx, { type: 'server.created', serverId });
  const { name = `server-${serverId}` } = requested;
  await record(tx, actor, {
    operation: 'server.create',
    subject: { kind: 'server', id: serverId, name },
    tenantId,
    after: { orderId, plan, image, snapshotId, networkId },
  });
}

async function insertServer(tx: Queryable, orderId: number, requested: RequestedServer, held: HeldServer) {
  const { serverId: id, planId, imageId, clusterId, hourlyQuanta, monthlyCapQuanta } = held;
  const name = requested.name ?? requested.hostname ?? `server-${id}`;
  await store.insertServer(tx, {
    id,
    tenantId: requested.tenantId,
    orderId,
    planId,
    imageId,
    clusterId,
    name,
    hostname: requested.hostname ?? hostnameOf(name, id),
    labels: requested.labels ?? {},
    sshKeys: requested.sshKeys ?? [],
    userData: requested.userData ?? null,
    hourlyQuanta,
    monthlyCapQuanta,
    hasPublicIp: requested.publicIp ?? true,
  });
}

/** A host name out of a free name; what can't serve as one falls back to the server's id. */
function hostnameOf(name: string, id: number): string {
  const labels = name
    .toLowerCase()
    .replace(/[^a-z0-9.-]+/g, '-')
    .split('.')
    .map((label) => label.replace(/^-+/, '').slice(0, 63).replace(/-+$/, ''));
  return labels.filter((label) => label !== '').join('.') || `server-${id}`;
}
