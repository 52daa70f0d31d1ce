/** Changes, syncs and deletes a network. */
import { CodedError } from '#common/errors/index.ts';
import { type Actor, requireWriter } from '#operations/accounts/index.ts';
import { findNetwork, listNetworkMembers, type Network } from '#operations/views/network-store.ts';
import { changedMembers, record } from '#service-kit/audit/index.ts';
import { enqueueJob } from '#service-kit/jobs/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import type { NetworksDeps } from './index.ts';
import { invalidField, noSuchNetwork, scopeOf, validateNetworkFields } from './network.ts';
import * as store from './store.ts';

export interface ChangeNetworkInput {
  name?: string | undefined;
  /** null takes it away. */
  description?: string | null | undefined;
  /** Merged with those that are there; null takes a label away. */
  labels?: Readonly<Record<string, string | null>> | undefined;
}

/** Called once the row is locked, before anything else is looked at; what it throws refuses the change. */
export type Precondition = (tx: Queryable) => Promise<void>;

const labelsMax = 32;

/** Throws `networks.not_found` and `networks.invalid`. */
export async function changeNetwork(
  deps: NetworksDeps,
  actor: Actor,
  tenantId: number | null,
  id: number,
  input: ChangeNetworkInput,
  precondition?: Precondition,
): Promise<Network> {
  const scope = scopeOf(actor, tenantId);
  const before = await findNetwork(deps.db(), scope, id);
  if (before === null) throw noSuchNetwork();
  requireWriter(actor);
  validateNetworkFields(input);
  await inTransaction(deps.db(), async (tx) => {
    const network = await store.lockNetwork(tx, scope, id);
    if (network === null) throw noSuchNetwork();
    await precondition?.(tx);
    await store.updateNetwork(tx, id, {
      ...(input.name === undefined ? {} : { name: input.name }),
      ...(input.description === undefined ? {} : { description: input.description }),
      ...(input.labels === undefined ? {} : { labels: mergeLabels(network.labels, input.labels) }),
    });
    const changed = await findNetwork(tx, scope, id);
    await record(tx, actor, {
      operation: 'network.update',
      subject: { kind: 'network', id, name: before.name },
      tenantId: before.tenantId,
      ...changedMembers(wordsOf(before), wordsOf(changed ?? before)),
    });
  });
  return (await findNetwork(deps.db(), scope, id)) ?? Promise.reject(noSuchNetwork());
}

const wordsOf = ({ name, description, labels }: Network) => ({ name, description, labels });

function mergeLabels(
  present: Readonly<Record<string, string>>,
  change: Readonly<Record<string, string | null>>,
): Record<string, string> {
  const merged = Object.entries({ ...present, ...change }).filter(
    (entry): entry is [string, string] => entry[1] !== null,
  );
  if (merged.length > labelsMax)
    throw invalidField('labels', 'maxProperties', `must not have more than ${labelsMax} names in all`);
  return Object.fromEntries(merged);
}

/**
 * Deletes a network that has no members; throws `networks.in_use` (details.servers, details.isDetaching) for one that
 * has. A network interface that is being removed still counts: its hypervisor needs the segment until then.
 */
export async function deleteNetwork(
  deps: NetworksDeps,
  actor: Actor,
  tenantId: number | null,
  id: number,
  precondition?: Precondition,
): Promise<void> {
  const scope = scopeOf(actor, tenantId);
  const before = await findNetwork(deps.db(), scope, id);
  if (before === null) throw noSuchNetwork();
  requireWriter(actor);
  await inTransaction(deps.db(), async (tx) => {
    const network = await store.lockNetwork(tx, scope, id);
    if (network === null) throw noSuchNetwork();
    await precondition?.(tx);
    const members = await listNetworkMembers(tx, id);
    if (members.length > 0) {
      const isDetaching = members.every((member) => member.state === 'detaching');
      const many = members.length === 1 ? '1 attached server' : `${members.length} attached servers`;
      throw new CodedError(
        'networks.in_use',
        isDetaching
          ? `The last servers are just being detached from network ${id}. Try again in a few seconds.`
          : `Network ${id} still has ${many}. Detach them first.`,
        { servers: members.map((member) => member.serverId), isDetaching },
      );
    }
    if ((await store.countHolds(tx, id)) > 0)
      throw new CodedError(
        'networks.in_use',
        `A server for network ${id} is being ordered and its payment is under way. Try again in a few seconds.`,
        { servers: [], isDetaching: true },
      );
    await store.deleteNetwork(tx, id);
    await enqueueJob(tx, 'networks.sync', { network_id: id, location_id: network.locationId });
    await record(tx, actor, {
      operation: 'network.delete',
      subject: { kind: 'network', id, name: before.name },
      tenantId: before.tenantId,
      before: { ...wordsOf(before), cidr: before.cidr },
    });
  });
  deps.wake();
}

/**
 * Asks for the stored membership to be applied to the hypervisors again. Wishes that come while one waits are the same
 * wish; how it ended stands in the network's `syncState` and `syncError`.
 */
export async function syncNetwork(
  deps: NetworksDeps,
  actor: Actor,
  tenantId: number | null,
  id: number,
  precondition?: Precondition,
): Promise<Network> {
  const scope = scopeOf(actor, tenantId);
  const network = await findNetwork(deps.db(), scope, id);
  if (network === null) throw noSuchNetwork();
  requireWriter(actor);
  const payload = { network_id: id, location_id: network.locationId };
  await inTransaction(deps.db(), async (tx) => {
    if (precondition) {
      if ((await store.lockNetwork(tx, scope, id)) === null) throw noSuchNetwork();
      await precondition(tx);
    }
    if (await store.wantSync(tx, id)) await enqueueJob(tx, 'networks.sync', payload);
    const subject = { kind: 'network', id, name: network.name };
    await record(tx, actor, { operation: 'network.sync', subject, tenantId: network.tenantId });
  });
  deps.wake();
  return (await findNetwork(deps.db(), scope, id)) ?? Promise.reject(noSuchNetwork());
}
