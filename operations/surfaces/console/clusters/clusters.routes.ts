/** Clusters and their nodes, for staff; operators change them. */
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import { isNearlyFull, type PoolUse } from '#operations/addresses/index.ts';
import type { Location } from '#operations/catalog/index.ts';
import {
  type Cluster,
  type DayRoom,
  isAway,
  type Node,
  type NodeChange,
  type Room,
} from '#operations/clusters/index.ts';
import type { Features } from '#operations/features.ts';
import { driverNames } from '#operations/hypervisors/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  askButton,
  type Column,
  cellColumn,
  chart,
  code,
  codeColumn,
  emptyState,
  formatCount,
  formatPercent,
  type Html,
  html,
  inputForm,
  link,
  pageHeader,
  section,
  sendPage,
  shareBar,
  type Tone,
  table,
  toastOf,
} from '#service-kit/pages/index.ts';
import { ageColumn, countColumn, linkColumn, noSuchPage, readAll } from '#service-kit/web/index.ts';
import { type FieldFault, faultOf } from '../field-fault.ts';
import { consoleFrame } from '../frame.ts';
import { Id, type Staff } from '../guard.ts';
import { emptyForm, formOf, type NodeForm, type NodePageOptions, nodeBadge, nodePage } from './node.page.ts';

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
const fieldNames = { memoryMb: 'memory_gib', diskGb: 'disk_gb', networkBridges: 'network_bridges' };

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

async function showClusters(deps: Features, staff: Staff, reply: FastifyReply, done: string) {
  const toast = toastOf(outcomes, done, done === 'kept' ? 'warn' : 'good');
  return sendPage(reply, clustersPage({ staff, ...(await readClustersPage(deps, staff)), toast }));
}

interface ClustersPageOptions extends Awaited<ReturnType<typeof readClustersPage>> {
  staff: Staff;
  toast?: { tone: Tone; text: string } | undefined;
}

const readClustersPage = (deps: Features, { actor }: Staff) =>
  readAll({
    clusters: deps.clusters.listClusters(),
    locations: deps.catalog.listAllLocations(),
    nodes: deps.clusters.listNodes(actor, null),
    pools: deps.addresses.listPools(actor, null),
    // Memory that guests held at the end of each of the last days.
    days: deps.clusters.listDayRoom(actor, 30),
    nowMs: deps.clock.nowMs(),
  });

/** `/console/clusters/`: where guests can run and how much room is left. */
function clustersPage(options: ClustersPageOptions): Html {
  const { staff, clusters, locations, nodes, pools, toast } = options;
  const places = new Map(locations.map((location) => [location.id, location]));
  return consoleFrame({ staff, title: 'Clusters', current: 'clusters', toast }, [
    pageHeader({
      title: 'Clusters',
      state: describeClusters(options),
      actions:
        staff.canChange &&
        locations.length > 0 &&
        link('/console/clusters/new', 'New cluster', { kind: clusters.length > 0 ? 'button' : 'primary' }),
    }),
    clusters.length === 0
      ? html`<div class="card">${emptyState(emptyOf(options))}</div>`
      : roomChart(options),
    clusters.map((cluster) => {
      const place = places.get(cluster.locationId);
      const own = nodes.filter((node) => node.clusterId === cluster.id);
      return section(
        {
          title: cluster.name,
          id: `cluster-${cluster.id}`,
          description: `${place ? `${place.name}, ${place.country}` : 'No location'}. Driver ${cluster.driver}. ${describeRoom(own)}`,
          actions: staff.canChange && [
            link(`/console/clusters/${cluster.id}/nodes/new`, 'Add a node', { kind: 'button' }),
            link(`/console/clusters/${cluster.id}/pools/new`, 'Add addresses', { kind: 'button' }),
          ],
        },
        [
          nodeTable(own, options.nowMs),
          poolTable(
            staff,
            pools.filter((pool) => pool.clusterId === cluster.id),
          ),
        ],
      );
    }),
  ]);
}

function emptyOf({ staff, locations }: ClustersPageOptions) {
  const text =
    'A cluster is a group of hypervisors in one location. Servers are placed on its nodes and get addresses from its ranges.';
  const action =
    locations.length === 0
      ? { label: 'Create a location first', href: '/console/catalog/locations/new' }
      : { label: 'Create the first cluster', href: '/console/clusters/new' };
  return { title: 'No clusters yet', text, ...(staff.canChange ? { action } : {}) };
}

/** How full the fleet has become: rising lines are looked at, tables of shares are not. */
export function roomChart({ days, nodes }: { days: readonly DayRoom[]; nodes: readonly Node[] }): Html {
  const capacity = Math.floor(nodes.reduce((sum, node) => sum + node.capacity.memoryMb, 0) / 1024);
  return chart({
    id: 'room',
    title: 'Memory allocated to servers, GiB, last 30 days',
    unit: 'count',
    size: 'small',
    source: 'at the end of each UTC day, and now; the dashed line is the capacity of all nodes today',
    emptyText: 'No memory was allocated in the last 30 days.',
    data: {
      timesMs: days.map((day) => day.at.getTime()),
      series: days.every((day) => day.memoryMb === 0)
        ? []
        : [
            { label: 'Allocated', values: days.map((day) => Math.round(day.memoryMb / 1024)) },
            { label: 'Capacity', values: days.map(() => capacity), isExpected: true },
          ],
    },
  });
}

function nodeTable(nodes: readonly Node[], nowMs: number): Html {
  const share =
    (name: keyof Room): Column<Node>['cell'] =>
    (node) =>
      shareBar(node.used[name] / node.capacity[name]);
  return table<Node>({
    caption: 'Nodes',
    card: { line: ['state', 'seen', 'guests'] },
    columns: [
      linkColumn('name', 'Node', (node) => [node.name, `/console/clusters/nodes/${node.id}`]),
      cellColumn('state', 'State', (node) => nodeBadge(node, nowMs)),
      ageColumn('seen', 'Last answer', (node) => node.seenAt?.getTime() ?? null, nowMs),
      countColumn('guests', 'Servers', (node) => node.guestCount),
      cellColumn('memory', 'Memory allocated', share('memoryMb')),
      countColumn(
        'memory-free',
        'Free',
        (node) => Math.floor(Math.max(0, node.capacity.memoryMb - node.used.memoryMb) / 1024),
        { unit: 'GiB' },
      ),
      cellColumn('vcpus', 'vCPUs allocated', share('vcpus')),
      cellColumn('disk', 'Disk allocated', share('diskGb')),
    ],
    rows: nodes,
    rowTone: (node) => (isAway(node, nowMs) ? 'bad' : undefined),
    empty: {
      title: 'No nodes yet',
      text: 'Servers are placed on the nodes of a cluster. Add a node to deploy servers.',
    },
  });
}

function poolTable(staff: Staff, pools: readonly PoolUse[]): Html {
  return table<PoolUse>({
    caption: 'Addresses',
    card: { line: ['given', 'share'] },
    columns: [
      codeColumn('prefix', 'Addresses', (pool) => pool.prefix),
      codeColumn('gateway', 'Gateway', (pool) => pool.gateway),
      codeColumn('range', 'Range for servers', (pool) => `${pool.firstAddress} – ${pool.lastAddress}`),
      countColumn('given', 'In use', (pool) => pool.givenCount),
      cellColumn('share', 'Allocated', (pool) =>
        Number.isFinite(pool.size) ? shareBar(pool.givenCount / Math.max(1, pool.size)) : 'plenty left',
      ),
      ...(staff.canChange && pools.some((pool) => pool.givenCount === 0)
        ? [
            {
              key: 'do',
              header: 'Actions',
              kind: 'actions' as const,
              cell: (pool: PoolUse) =>
                pool.givenCount === 0 &&
                askButton(
                  {
                    id: `remove-pool-${pool.id}`,
                    label: 'Remove',
                    title: 'Remove this address range?',
                    openKind: 'button',
                    action: `/console/clusters/pools/${pool.id}/remove`,
                    csrfToken: staff.csrfToken,
                  },
                  'No server uses an address of it. New servers will not get addresses from it.',
                ),
            },
          ]
        : []),
    ],
    rows: pools,
    rowTone: (pool) => (isNearlyFull(pool) ? 'warn' : undefined),
    empty: {
      title: 'No addresses yet',
      text: 'Servers get their public addresses from these ranges. Without a range, only servers without a public address can be deployed.',
    },
  });
}

function describeRoom(nodes: readonly Node[]): string {
  const sum = (of: (node: Node) => number) => nodes.reduce((total, node) => total + of(node), 0);
  const capacity = sum((node) => node.capacity.memoryMb);
  if (capacity === 0) return 'No free capacity.';
  const guests = sum((node) => node.guestCount);
  return `${formatPercent(sum((node) => node.used.memoryMb) / capacity)} of its memory is allocated to ${formatCount(guests)} ${guests === 1 ? 'server' : 'servers'}.`;
}

/** The state of all nodes and ranges in a sentence. */
function describeClusters({
  clusters,
  nodes,
  pools,
  nowMs,
}: Pick<ClustersPageOptions, 'clusters' | 'nodes' | 'pools' | 'nowMs'>): { tone: Tone; text: string } {
  if (clusters.length === 0) return { tone: 'warn', text: 'No clusters yet. Create one to deploy servers.' };
  const away = nodes.filter((node) => isAway(node, nowMs));
  const open = nodes.filter((node) => node.isOpen && !isAway(node, nowMs)).length;
  const told = `${formatCount(open)} of ${formatCount(nodes.length)} nodes accept new servers`;
  if (away.length > 0) {
    const names =
      away.length > 3 ? `${formatCount(away.length)} nodes` : away.map((node) => node.name).join(', ');
    return { tone: 'bad', text: `${names} ${away.length === 1 ? 'does' : 'do'} not answer; ${told}.` };
  }
  const without = clusters.filter(
    (cluster) => !nodes.some((node) => node.clusterId === cluster.id && node.isOpen),
  );
  if (without.length > 0)
    return { tone: 'warn', text: `No open node in ${without.map((one) => one.name).join(', ')}. ${told}.` };
  const full = pools.find(isNearlyFull);
  if (full) return { tone: 'warn', text: `The addresses of ${full.prefix} are nearly exhausted; ${told}.` };
  const unseen = nodes.filter(({ seenAt }) => seenAt === null);
  if (unseen.length > 0) {
    const names =
      unseen.length > 3 ? `${formatCount(unseen.length)} nodes` : unseen.map(({ name }) => name).join(', ');
    return { tone: 'info', text: `Nothing is known of ${names} yet; ${told}.` };
  }
  return { tone: 'good', text: `All nodes answer; ${told}.` };
}

interface NewClusterOptions {
  staff: Staff;
  locations: readonly Location[];
  form?: { name: string; location: string; driver: string };
  fault?: FieldFault;
}

/** `/console/clusters/new`: a group of hypervisors in a location. */
function newClusterPage(options: NewClusterOptions): Html {
  return consoleFrame({ staff: options.staff, title: 'New cluster', current: 'clusters' }, [
    pageHeader({
      title: 'New cluster',
      state: {
        tone: 'info',
        text: 'Then add a node and an address range, so that servers can be placed in it.',
      },
    }),
    options.locations.length > 0
      ? clusterForm(options)
      : html`<div class="card">${emptyState({
          title: 'No locations yet',
          text: 'A cluster stands in a location, which customers choose.',
          action: { label: 'Create a location first', href: '/console/catalog/locations/new' },
        })}</div>`,
  ]);
}

function clusterForm({ staff, locations, form: typed, fault }: NewClusterOptions): Html {
  return inputForm(
    {
      action: '/console/clusters/',
      csrfToken: staff.csrfToken,
      submit: 'Create cluster',
      cancel: link('/console/clusters/', 'Cancel', { kind: 'button' }),
    },
    [
      {
        ...{ name: 'name', label: 'Name', required: true, isCode: true, maxLength: 63 },
        placeholder: 'nyc1-b',
      },
      {
        ...{ kind: 'select', name: 'location', label: 'Location' },
        options: locations.map((location) => ({ value: String(location.id), label: location.name })),
      },
      {
        kind: 'select',
        name: 'driver',
        label: 'Driver',
        hint: ['Runs the servers: ', code('libvirt'), ' on real machines.'],
        value: 'libvirt',
        options: driverNames.map((name) => ({ value: name, label: name })),
      },
    ],
    { typed, fault },
  );
}
