import { listAddressGenerations } from '#monitor/views/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

/**
 * Ends ignores of these servers that have reached their end, and those of an address that was assigned anew since: they are not
 * inherited (NET-2.6.5). While operations lists no allocation of the address, they stay.
 */
export async function endIgnores(
  trx: Queryable,
  servers: readonly { clusterId: number; vmId: number }[],
): Promise<void> {
  await store.endExpired(trx, servers);
  const open = await store.listOpen(trx, servers);
  if (open.length === 0) return;
  const generations = await listAddressGenerations(trx, open);
  const reassigned = open.filter((one) => {
    const now = generations.filter(
      ({ clusterId, vmId, address }) =>
        clusterId === one.clusterId && vmId === one.vmId && address === one.address,
    );
    if (now.length === 0) return false;
    if (one.generation !== null) return now.every(({ generation }) => generation !== one.generation);
    // Made while no allocation was listed: it is of the one that was assigned by then.
    return now.every(({ generation }) => assignedAtMs(generation) > one.createdAtMs);
  });
  if (reassigned.length > 0)
    await store.endIgnore(
      trx,
      reassigned.map(({ id }) => id),
      'reassigned',
    );
}

const assignedAtMs = (generation: string) => Date.parse(generation.slice(generation.indexOf(' ') + 1));
