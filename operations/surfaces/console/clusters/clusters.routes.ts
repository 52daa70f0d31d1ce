/** Clusters and their nodes, for staff; operators change them. */
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { Cluster, Node, NodeChange } from '#operations/clusters/index.ts';
import type { Features } from '#operations/features.ts';
import type { App } from '#service-kit/http/index.ts';
import { sendPage, toastOf } from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import { faultOf } from '../field-fault.ts';
import type { Staff } from '../guard.ts';
import { clustersPage, newClusterPage, readClustersPage } from './clusters.page.ts';
import { emptyForm, formOf, type NodeForm, type NodePageOptions, nodePage } from './node.page.ts';

const Id = Type.Object({ id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) });
const ClusterForm = Type.Object({
  name: Type.String({ maxLength: 200 }),
  location: Type.String({ pattern: '^[1-9][0-9]{0,15}$' }),
  driver: Type.String({ maxLength: 20 }),
});
const text = Type.Optional(Type.String({ maxLength: 400 }));
const NodeBody = Type.Object({
  name: text,
  uri: text,
  storage_pool: text,
  bridge: text,
  network_bridges: text,
  vcpus: text,
  memory_gib: text,
  disk_gb: text,
});

const MendForm = Type.Object({
  guest: Type.String({ maxLength: 40 }),
  kind: Type.Union([Type.Literal('size'), Type.Literal('interfaces')]),
});

const outcomes: Record<string, string> = {
  added: 'The node accepts new servers, and is being checked.',
  check: 'The node is being checked.',
  saved: 'Saved.',
  open: 'The node accepts new servers again.',
  close: 'The node accepts no new servers.',
  made: 'The cluster is created. Add a node and an address range.',
  removed: 'Removed.',
  mend: 'Queued. The list is updated within five minutes.',
  kept: 'Nothing was removed. Servers have used addresses of this range, and their history is kept.',
};

export function registerClusters(app: App, deps: Features): void {
  app.get(
    '/clusters/',
    { schema: { querystring: Type.Object({ done: Type.Optional(Type.String()) }) } },
    (request, reply) => showClusters(deps, request.staff!, reply, request.query.done ?? ''),
  );

  app.get('/clusters/new', async (request, reply) => {
    const staff = request.staff!;
    if (!staff.canChange) throw noSuchPage();
    return sendPage(reply, newClusterPage({ staff, locations: await deps.catalog.listAllLocations() }));
  });

  app.post('/clusters/', { schema: { body: ClusterForm } }, async (request, reply) => {
    const { name, location, driver } = request.body;
    const cluster = { name: name.trim(), locationId: Number(location), driver };
    const fault = await clusterFault(() => deps.clusters.createCluster(request.staff!.actor, cluster));
    if (fault === null) return reply.redirect('/console/clusters/?done=made', 303);
    const locations = await deps.catalog.listAllLocations();
    const page = { staff: request.staff!, locations, form: request.body, fault };
    return sendPage(reply, newClusterPage(page), 422);
  });

  app.get('/clusters/:id/nodes/new', { schema: { params: Id } }, async (request, reply) => {
    const cluster = await findCluster(deps, request.params.id);
    return show(deps, reply, { staff: request.staff!, cluster, node: null, form: emptyForm });
  });

  app.post('/clusters/:id/nodes', { schema: { params: Id, body: NodeBody } }, async (request, reply) => {
    const staff = request.staff!;
    const cluster = await findCluster(deps, request.params.id);
    const form = { ...emptyForm, ...request.body };
    const node = { clusterId: cluster.id, name: form.name.trim(), ...changeOf(form) };
    let id = 0;
    const fault = await clusterFault(async () => {
      id = await deps.clusters.addNode(staff.actor, node);
    });
    if (fault !== null) return show(deps, reply, { staff, cluster, node: null, form, fault }, 422);
    return reply.redirect(`/console/clusters/nodes/${id}?done=added`, 303);
  });

  app.get(
    '/clusters/nodes/:id',
    { schema: { params: Id, querystring: Type.Object({ done: Type.Optional(Type.String()) }) } },
    async (request, reply) => {
      const staff = request.staff!;
      const { node, cluster } = await findNode(deps, staff, request.params.id);
      const toast = toastOf(outcomes, request.query.done);
      return show(deps, reply, { staff, cluster, node, form: formOf(node), toast });
    },
  );

  app.post('/clusters/nodes/:id', { schema: { params: Id, body: NodeBody } }, async (request, reply) => {
    const staff = request.staff!;
    const { node, cluster } = await findNode(deps, staff, request.params.id);
    const form = { ...formOf(node), ...request.body };
    const fault = await clusterFault(() => deps.clusters.changeNode(staff.actor, node.id, changeOf(form)));
    if (fault !== null) return show(deps, reply, { staff, cluster, node, form, fault }, 422);
    return reply.redirect(`/console/clusters/nodes/${node.id}?done=saved`, 303);
  });

  for (const [verb, isOpen] of [
    ['open', true],
    ['close', false],
  ] as const)
    app.post(`/clusters/nodes/:id/${verb}`, { schema: { params: Id } }, async (request, reply) => {
      const { node } = await findNode(deps, request.staff!, request.params.id);
      await deps.clusters.changeNode(request.staff!.actor, node.id, { isOpen });
      return reply.redirect(`/console/clusters/nodes/${node.id}?done=${verb}`, 303);
    });

  app.post('/clusters/nodes/:id/check', { schema: { params: Id } }, async (request, reply) => {
    const { node } = await findNode(deps, request.staff!, request.params.id);
    await deps.clusters.checkNode(request.staff!.actor, node.id);
    return reply.redirect(`/console/clusters/nodes/${node.id}?done=check`, 303);
  });

  app.post('/clusters/nodes/:id/mend', { schema: { params: Id, body: MendForm } }, async (request, reply) => {
    const staff = request.staff!;
    const { node, cluster } = await findNode(deps, staff, request.params.id);
    try {
      await deps.servers.mendDrift(staff.actor, { nodeId: node.id, ...request.body });
    } catch (error) {
      if (!(error instanceof CodedError) || !error.code.startsWith('servers.')) throw error;
      const toast = { tone: 'bad' as const, text: error.message };
      return show(deps, reply, { staff, cluster, node, form: formOf(node), toast }, 409);
    }
    return reply.redirect(`/console/clusters/nodes/${node.id}?done=mend`, 303);
  });

  app.post('/clusters/nodes/:id/remove', { schema: { params: Id } }, async (request, reply) => {
    const staff = request.staff!;
    const { node, cluster } = await findNode(deps, staff, request.params.id);
    const fault = await clusterFault(() => deps.clusters.removeNode(staff.actor, node.id));
    if (fault === null) return reply.redirect('/console/clusters/?done=removed', 303);
    const toast = { tone: 'bad' as const, text: fault.message };
    return show(deps, reply, { staff, cluster, node, form: formOf(node), toast }, 409);
  });
}

function changeOf(form: NodeForm): Required<Omit<NodeChange, 'isOpen'>> {
  const orNull = (given: string) => (given.trim() === '' ? null : given.trim());
  return {
    uri: orNull(form.uri),
    storagePool: orNull(form.storage_pool),
    bridge: orNull(form.bridge),
    networkBridges: orNull(form.network_bridges),
    vcpus: Number(form.vcpus),
    memoryMb: Number(form.memory_gib) * 1024,
    diskGb: Number(form.disk_gb),
  };
}

const clusterFault = (change: () => Promise<unknown>) => faultOf('clusters', fieldNames, change);
const fieldNames = {
  memoryMb: 'memory_gib',
  diskGb: 'disk_gb',
  networkBridges: 'network_bridges',
};

async function findCluster(deps: Features, id: number): Promise<Cluster> {
  const cluster = (await deps.clusters.listClusters()).find((one) => one.id === id);
  if (cluster === undefined) throw noSuchPage();
  return cluster;
}

async function findNode(deps: Features, staff: Staff, id: number): Promise<{ node: Node; cluster: Cluster }> {
  const node = await deps.clusters.findNode(staff.actor, id);
  if (node === null) throw noSuchPage();
  return { node, cluster: await findCluster(deps, node.clusterId) };
}

async function show(
  deps: Features,
  reply: FastifyReply,
  options: Omit<NodePageOptions, 'nowMs' | 'drifts' | 'check'>,
  status = 200,
): Promise<FastifyReply> {
  const { node, staff } = options;
  const drifts = node === null ? [] : await deps.servers.listDrifts(staff.actor, node.id);
  const check = node === null ? null : await deps.clusters.findCheck(staff.actor, node.id);
  return sendPage(reply, nodePage({ ...options, drifts, check, nowMs: deps.clock.nowMs() }), status);
}

async function showClusters(
  deps: Features,
  staff: Staff,
  reply: FastifyReply,
  done: string,
): Promise<FastifyReply> {
  const toast = toastOf(outcomes, done, done === 'kept' ? 'warn' : 'good');
  return sendPage(reply, clustersPage({ staff, ...(await readClustersPage(deps, staff)), toast }));
}
