import { isNearlyFull, type PoolUse } from '#operations/addresses/index.ts';
import type { Location } from '#operations/catalog/index.ts';
import { type DayRoom, isAway, type Node, type Room } from '#operations/clusters/index.ts';
import type { Features } from '#operations/features.ts';
import { driverNames } from '#operations/hypervisors/index.ts';
import {
  askButton,
  badge,
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
  shareBar,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';
import { ageColumn, countColumn, linkColumn, readAll } from '#service-kit/web/index.ts';
import type { FieldFault } from '../field-fault.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';

interface ClustersPageOptions extends Awaited<ReturnType<typeof readClustersPage>> {
  staff: Staff;
  toast?: { tone: Tone; text: string } | undefined;
}

export const readClustersPage = (deps: Features, { actor }: Staff) =>
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
export function clustersPage(options: ClustersPageOptions): Html {
  const { staff, clusters, locations, nodes, pools, toast } = options;
  const places = new Map(locations.map((location) => [location.id, location]));
  return consoleFrame(
    { staff, title: 'Clusters', current: 'clusters', breadcrumb: [{ label: 'Clusters' }], toast },
    [
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
    ],
  );
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

export function nodeBadge(node: Node, nowMs: number): Html {
  if (isAway(node, nowMs)) return badge('bad', 'does not answer');
  if (!node.isOpen) return badge('warn', 'closed');
  return node.seenAt === null ? badge('neutral', 'not seen yet') : badge('good', 'open');
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
    return {
      tone: 'warn',
      text: `No open node in ${without.map((one) => one.name).join(', ')}. ${told}.`,
    };
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
export function newClusterPage(options: NewClusterOptions): Html {
  return consoleFrame(
    {
      staff: options.staff,
      title: 'New cluster',
      current: 'clusters',
      breadcrumb: [{ label: 'Clusters', href: '/console/clusters/' }, { label: 'New cluster' }],
    },
    [
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
    ],
  );
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
