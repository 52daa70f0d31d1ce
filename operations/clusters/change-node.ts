/** What operators change about clusters and nodes. */
import { CodedError } from '#common/errors/index.ts';
import { type Actor, requireOperator } from '#operations/accounts/index.ts';
import { listAllLocations } from '#operations/catalog/index.ts';
import {
  bridgeOf,
  driverNames,
  type HypervisorNode,
  type Hypervisors,
} from '#operations/hypervisors/index.ts';
import { listSegmentsOfNode } from '#operations/views/network-store.ts';
import { changedMembers, record } from '#service-kit/audit/index.ts';
import { inTransaction, isUniqueViolation, type Queryable } from '#service-kit/postgres/index.ts';
import { askCheck } from './check-node.ts';
import type { Room } from './node.ts';
import * as store from './store.ts';

interface ChangeDeps {
  db: () => Queryable;
  hypervisors: Hypervisors;
}

const namePattern = /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/;

/** Makes a cluster in a location; throws `clusters.invalid`, `clusters.name_taken`. Operators only. */
export async function createCluster(
  deps: ChangeDeps,
  actor: Actor,
  cluster: { locationId: number; name: string; driver: string },
): Promise<number> {
  requireOperator(actor);
  if (!namePattern.test(cluster.name))
    throw invalid('name', 'Lower-case letters, digits, dots and dashes, such as nyc1-b.');
  if (!(driverNames as readonly string[]).includes(cluster.driver))
    throw invalid('driver', `Choose one of ${driverNames.join(', ')}.`);
  if (!(await listAllLocations(deps.db())).some((one) => one.id === cluster.locationId))
    throw invalid('location', 'There is no such location.');
  const clusters = await store.listClusters(deps.db());
  if (clusters.some((one) => one.name === cluster.name)) throw nameTaken();
  return inTransaction(deps.db(), async (trx) => {
    const id = await store.ensureCluster(trx, cluster);
    const subject = { kind: 'cluster', id, name: cluster.name };
    await record(trx, actor, { operation: 'cluster.create', subject, after: cluster });
    return id;
  });
}

/** Adds a node; throws `clusters.invalid`, `clusters.name_taken`, `clusters.not_found`. Operators only. */
export async function addNode(deps: ChangeDeps, actor: Actor, node: store.NewNode): Promise<number> {
  requireOperator(actor);
  if (!namePattern.test(node.name))
    throw invalid('name', 'Lower-case letters, digits, dots and dashes, such as node-1.');
  const cluster = (await store.listClusters(deps.db())).find((one) => one.id === node.clusterId);
  if (!cluster) throw notFound();
  requireRoom(node);
  requireReachable(deps, { ...node, driver: cluster.driver });
  try {
    return await inTransaction(deps.db(), async (trx) => {
      const id = await store.insertNode(trx, node);
      const subject = { kind: 'node', id, name: node.name };
      await record(trx, actor, { operation: 'node.create', subject, after: node });
      await askCheck(trx, id);
      return id;
    });
  } catch (error) {
    if (isUniqueViolation(error)) throw nameTaken();
    throw error;
  }
}

/** Changes what may be given to guests, how the node is reached, or whether it takes new ones. Operators only. */
export async function changeNode(deps: ChangeDeps, actor: Actor, nodeId: number, change: store.NodeChange) {
  requireOperator(actor);
  const node = await store.findNode(deps.db(), nodeId);
  if (node === null) throw notFound();
  requireRoom({ ...node.capacity, ...definedOf(change) });
  requireReachable(deps, { ...node, ...definedOf(change) });
  await inTransaction(deps.db(), async (trx) => {
    await store.lockNodes(trx, node.clusterId);
    const moved = { ...node, ...definedOf(change) };
    const segments = await listSegmentsOfNode(trx, nodeId);
    if (segments.some((segment) => bridgeOf(node, segment) !== bridgeOf(moved, segment)))
      throw invalid(
        'networkBridges',
        'Servers of this node are on private networks whose bridges would change. Detach these servers first.',
      );
    await store.updateNode(trx, nodeId, change);
    const changed = (await store.findNode(trx, nodeId)) ?? node;
    await record(trx, actor, {
      operation: 'node.update',
      subject: { kind: 'node', id: nodeId, name: node.name },
      ...changedMembers<object>(node, changed),
    });
    const isElsewhere = (['uri', 'storagePool', 'bridge', 'networkBridges'] as const).some(
      (one) => node[one] !== changed[one],
    );
    if (isElsewhere) await askCheck(trx, nodeId);
  });
}

/** Removes a node that never held a guest; others are closed instead, because servers' history names them. */
export async function removeNode(deps: ChangeDeps, actor: Actor, nodeId: number): Promise<void> {
  requireOperator(actor);
  const node = await store.findNode(deps.db(), nodeId);
  if (node === null) throw notFound();
  if ((await store.countReservations(deps.db(), nodeId)) > 0)
    throw new CodedError(
      'clusters.in_use',
      'Guests have lived on this node. Close it instead of removing it.',
    );
  await inTransaction(deps.db(), async (trx) => {
    await store.deleteNode(trx, nodeId);
    const subject = { kind: 'node', id: nodeId, name: node.name };
    await record(trx, actor, { operation: 'node.remove', subject, before: node });
  });
}

function requireRoom(room: Room): void {
  for (const name of ['vcpus', 'memoryMb', 'diskGb'] as const) {
    const value = room[name];
    if (!Number.isInteger(value) || value < 1 || value > 1_000_000_000)
      throw invalid(name, 'A whole number above zero.');
  }
}

/** The driver itself says what it can't use: a missing URI, a name that is none. */
function requireReachable(deps: ChangeDeps, node: HypervisorNode): void {
  try {
    deps.hypervisors.of(node);
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
    throw invalid(String(error.details.field ?? 'uri'), error.message);
  }
}

const definedOf = <T extends object>(change: T): T =>
  Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined)) as T;

const invalid = (field: string, message: string) => new CodedError('clusters.invalid', message, { field });
const nameTaken = () =>
  new CodedError('clusters.name_taken', 'There is one of this name already.', { field: 'name' });
const notFound = () => new CodedError('clusters.not_found', 'There is no such cluster or node.');
