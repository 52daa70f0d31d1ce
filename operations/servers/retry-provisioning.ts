import { CodedError } from '#common/errors/index.ts';
import { type Actor, requireOperator } from '#operations/accounts/index.ts';
import { enqueueJob } from '#service-kit/jobs/index.ts';
import { notFound, requester } from './authorise.ts';
import type { ServersDeps } from './index.ts';
import * as store from './store.ts';

/** Sends a failed server through provisioning again. Operators only; throws `servers.not_failed` for any other state. */
export async function retryProvisioning(deps: ServersDeps, actor: Actor, serverId: number): Promise<void> {
  requireOperator(actor);
  await deps
    .db()
    .transaction()
    .execute(async (tx) => {
      const server = await store.lockServer(tx, serverId);
      if (server === null || server.provisioningState === 'deleted') throw notFound();
      if (server.provisioningState !== 'failed') {
        throw new CodedError('servers.not_failed', `Server ${serverId} has not failed provisioning.`);
      }
      await store.insertAction(tx, { serverId, command: 'create', ...requester(actor) });
      await store.updateState(tx, serverId, { provisioningState: 'queued', failure: null });
      await enqueueJob(tx, 'servers.provision', { server_id: serverId });
    });
  deps.wake();
}
