import type { Actor } from '#operations/accounts/index.ts';
import { addServer, type HeldServer } from '#operations/servers/index.ts';
import { chooseServer } from './choose-server.ts';
import type { OrderingDeps } from './deps.ts';
import { holdServer, releaseServer } from './hold-server.ts';
import type { Choice, OrderRequest } from './order-request.ts';
import type { OrderWork } from './order-work.ts';

/** The steps of an order for a server. Without a choice, as for a process that died, the stored request is looked up again. */
export function serverWork(deps: OrderingDeps, actor: Actor, choice?: Choice): OrderWork {
  return {
    async hold(tx, order) {
      const { input } = order.request as unknown as OrderRequest;
      return { ...(await holdServer(deps, tx, input, choice ?? (await chooseServer(deps, input)))) };
    },
    async queue(tx, order) {
      const { input, requester } = order.request as unknown as OrderRequest;
      const held = order.held as unknown as HeldServer;
      await addServer(tx, actor, { orderId: order.id, requested: input, held, requester });
      return held.serverId;
    },
    release: (tx, held) => releaseServer(tx, held),
  };
}
