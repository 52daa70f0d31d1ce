/**
 * Makes the server of a paid order out of what the order holds, and queues its provisioning: its row, its addresses, its
 * network interfaces and its job are one transaction, so a crash leaves all of them or none.
 */
import type { Actor } from '#operations/accounts/index.ts';
import { assignHeldAddresses } from '#operations/addresses/index.ts';
import { emit } from '#operations/events/index.ts';
import { joinHeldNetwork } from '#operations/networks/index.ts';
import type { HeldOrder } from '#operations/ordering/index.ts';
import { record } from '#service-kit/audit/index.ts';
import { enqueueJob } from '#service-kit/jobs/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { HeldServer } from './hold-server.ts';
import type { CreateServerInput, OrderRequest } from './order-request.ts';
import * as store from './store.ts';

/** Returns the server's id. */
export async function queueServer(tx: Queryable, actor: Actor, order: HeldOrder): Promise<number> {
  const { input, requester } = order.request as unknown as OrderRequest;
  const held = order.held as unknown as HeldServer;
  const { serverId, locationId } = held;
  await insertServer(tx, order.id, input, held);
  if (held.mac !== null) await store.insertInterface(tx, serverId, held.mac);
  // In the order in which holds are made, the network before the pools of addresses: else an order that is being placed
  // and one that was paid could each wait for what the other has locked.
  if (input.networkId !== undefined)
    await joinHeldNetwork(
      tx,
      { serverId, tenantId: input.tenantId, locationId },
      { networkId: input.networkId, ip: input.networkIp },
    );
  await assignHeldAddresses(tx, { serverId, tenantId: input.tenantId });
  await store.insertAction(tx, { serverId, command: 'create', ...requester });
  await enqueueJob(tx, 'servers.provision', { server_id: serverId });
  await emit(tx, { type: 'server.created', serverId });
  const { name = `server-${serverId}`, plan, image, networkId } = input;
  await record(tx, actor, {
    operation: 'server.create',
    subject: { kind: 'server', id: serverId, name },
    tenantId: input.tenantId,
    after: { orderId: order.id, plan, image, networkId },
  });
  return serverId;
}

async function insertServer(
  tx: Queryable,
  orderId: number,
  input: CreateServerInput,
  held: HeldServer,
): Promise<void> {
  const { serverId: id, planId, imageId, clusterId, hourlyQuanta, monthlyCapQuanta } = held;
  const name = input.name ?? input.hostname ?? `server-${id}`;
  await store.insertServer(tx, {
    id,
    tenantId: input.tenantId,
    orderId,
    planId,
    imageId,
    clusterId,
    name,
    hostname: input.hostname ?? hostnameOf(name, id),
    labels: input.labels ?? {},
    sshKeys: input.sshKeys ?? [],
    userData: input.userData ?? null,
    hourlyQuanta,
    monthlyCapQuanta,
    hasPublicIp: input.publicIp ?? true,
  });
}

/** A host name out of a free name; what can't serve as one falls back to the server's id. */
function hostnameOf(name: string, id: number): string {
  const plain = name
    .toLowerCase()
    .replace(/[^a-z0-9.-]+/g, '-')
    .replace(/^[-.]+|[-.]+$/g, '')
    .slice(0, 63);
  return /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(plain) ? plain : `server-${id}`;
}
