/** The network of a server that is being ordered: its address is held with the order and joined with the server's row. */
import type { Queryable } from '#service-kit/postgres/index.ts';
import { addNic, chooseAddress, requireSameLocation } from './add-nic.ts';
import type { NetworksDeps } from './deps.ts';
import { noSuchNetwork } from './errors.ts';
import * as store from './store.ts';

/** A server that is being ordered. */
export interface JoiningServer {
  serverId: number;
  tenantId: number;
  locationId: number;
}

export interface JoinInput {
  networkId: number;
  /** Absent: the lowest free address of the block. */
  ip?: string | undefined;
}

/**
 * Holds an address of a network for a server that is being ordered, inside the order's transaction. Until
 * `joinHeldNetwork` or `releaseHeldNetwork`, the address is taken and the network stays. Throws as `attachServer` does;
 * a network of another account is `networks.not_found`.
 */
export async function holdNetwork(tx: Queryable, server: JoiningServer, input: JoinInput): Promise<void> {
  const network = await store.lockNetwork(tx, [server.tenantId], input.networkId);
  if (network === null) throw noSuchNetwork();
  requireSameLocation(network, server);
  const ip = await chooseAddress(tx, network, input.ip, 'network_ip');
  await store.insertHold(tx, { networkId: network.id, serverId: server.serverId, ip });
}

/**
 * Joins the server, whose row exists by now, to the network that its order held; its network interface is plugged in
 * when the guest is made.
 */
export async function joinHeldNetwork(tx: Queryable, server: JoiningServer, input: JoinInput): Promise<void> {
  const network = await store.lockNetwork(tx, [server.tenantId], input.networkId);
  if (network === null) throw noSuchNetwork();
  const ip = (await store.takeHold(tx, server.serverId)) ?? input.ip;
  await addNic(tx, network, { ...server, ip }, 'network_ip');
}

/** The rules of `holdNetwork`, without holding anything. */
export async function checkJoin(
  deps: NetworksDeps,
  server: Omit<JoiningServer, 'serverId'>,
  input: JoinInput,
): Promise<void> {
  const network = await store.findNetwork(deps.db(), [server.tenantId], input.networkId);
  if (network === null) throw noSuchNetwork();
  requireSameLocation(network, server);
  await chooseAddress(deps.db(), network, input.ip, 'network_ip');
}
