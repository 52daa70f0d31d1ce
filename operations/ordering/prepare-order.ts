import type { Actor } from '#operations/accounts/index.ts';
import type { Plan } from '#operations/catalog/index.ts';
import { requester, requireWrite } from '#operations/servers/index.ts';
import { chooseServer } from './choose-server.ts';
import type { OrderingDeps } from './deps.ts';
import { orderFaults } from './order-faults.ts';
import type { CreateServerInput, OrderRequest } from './order-request.ts';
import type { NewOrder } from './place-order.ts';
import { serverWork } from './server-work.ts';

/**
 * The order that an input stands for, after everything that can be checked without a transaction: the actor's right, the
 * fields, the catalog and the network.
 */
export async function prepareOrder(
  deps: OrderingDeps,
  actor: Actor,
  input: CreateServerInput,
): Promise<{ order: NewOrder; plan: Plan }> {
  const { tenantId, networkId, networkIp: ip } = input;
  requireWrite(actor, tenantId);
  const choice = await chooseServer(deps, input, orderFaults(input));
  // A network of another account is told before anything about credit; the hold asks again.
  if (networkId !== undefined)
    await deps.networks.checkJoin({ tenantId, locationId: choice.locationId }, { networkId, ip });
  const request: OrderRequest = { input, requester: requester(actor) };
  const { plan } = choice;
  return {
    order: { tenantId, plan, request: { ...request }, work: serverWork(deps, actor, choice) },
    plan,
  };
}
