import type { Cluster, Location } from '#operations/catalog/index.ts';
import type { Node, Room } from '#operations/clusters/index.ts';
import { driverNames } from '#operations/hypervisors/index.ts';
import {
  age,
  badge,
  type Column,
  type Content,
  code,
  field,
  form,
  formatCount,
  formatPercent,
  type Html,
  html,
  link,
  pageHeader,
  section,
  shareBar,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';
import { consoleFrame } from './frame.ts';
import type { Staff } from './guard.ts';

export interface ClustersPageOptions {
  staff: Staff;
  clusters: readonly Cluster[];
  locations: readonly Location[];
  nodes: readonly Node[];
  nowMs: number;
  /** What was wrong with the form of a new cluster, by its field. */
  faults?: ReadonlyMap<string, string>;
}

/** Not seen for this long, a node is said to be away. */
const awayMs = 60_000;

/** `/console/clusters/`: where guests can run and how much room is left. */
export function clustersPage(options: ClustersPageOptions): Html {
  const { staff, clusters, locations, nodes } = options;
  const places = new Map(locations.map((location) => [location.id, location]));
  return consoleFrame(
    { staff, title: 'Clusters', current: 'clusters', breadcrumb: [{ label: 'Clusters' }] },
    [
      pageHeader({ title: 'Clusters', state: stateOf(options) }),
      clusters.map((cluster) => {
        const place = places.get(cluster.locationId);
        const own = nodes.filter((node) => node.clusterId === cluster.id);
        return section(
          {
            title: cluster.name,
            description: `${place ? `${place.name}, ${place.country}` : 'No location'}; driver ${cluster.driver}; ${describeRoom(own)}`,
            actions:
              staff.canChange &&
              link(`/console/clusters/${cluster.id}/nodes/new`, 'Add a node', { kind: 'button' }),
          },
          nodeTable(own, options.nowMs),
        );
      }),
      staff.canChange && section({ title: 'New cluster' }, clusterForm(options)),
    ],
  );
}

function nodeTable(nodes: readonly Node[], nowMs: number): Html {
  const share =
    (name: keyof Room): Column<Node>['cell'] =>
    (node) =>
      shareBar(node.used[name] / node.capacity[name]);
  return table<Node>({
    caption: 'Nodes',
    columns: [
      { key: 'name', header: 'Node', cell: (node) => link(`/console/clusters/nodes/${node.id}`, node.name) },
      { key: 'state', header: 'State', cell: (node) => nodeBadge(node, nowMs) },
      { key: 'guests', header: 'Guests', kind: 'figure', cell: (node) => formatCount(node.guestCount) },
      { key: 'memory', header: 'Memory given away', cell: share('memoryMb') },
      {
        key: 'memory-free',
        header: 'Memory free',
        unit: 'GiB',
        kind: 'figure',
        cell: (node) =>
          formatCount(Math.floor(Math.max(0, node.capacity.memoryMb - node.used.memoryMb) / 1024)),
      },
      { key: 'vcpus', header: 'vCPUs given away', cell: share('vcpus') },
      { key: 'disk', header: 'Disk given away', cell: share('diskGb') },
      { key: 'uri', header: 'Connection', kind: 'code', cell: (node) => node.uri ?? 'of the driver' },
      { key: 'seen', header: 'Seen', cell: (node) => age(node.seenAt?.getTime() ?? null, nowMs) },
    ],
    rows: nodes,
    rowTone: (node) => (isAway(node, nowMs) ? 'bad' : undefined),
    empty: {
      title: 'No nodes yet',
      text: 'Servers are placed on the nodes of a cluster. Without one, its location has no room.',
    },
  });
}

function isAway(node: Node, nowMs: number): boolean {
  return node.lastError !== null || (node.seenAt !== null && nowMs - node.seenAt.getTime() > awayMs);
}

export function nodeBadge(node: Node, nowMs: number): Html {
  if (isAway(node, nowMs)) return badge('bad', 'does not answer');
  if (!node.isOpen) return badge('warn', 'closed');
  return node.seenAt === null ? badge('neutral', 'not seen yet') : badge('good', 'open');
}

function describeRoom(nodes: readonly Node[]): string {
  const sum = (of: (node: Node) => number) => nodes.reduce((total, node) => total + of(node), 0);
  const capacity = sum((node) => node.capacity.memoryMb);
  if (capacity === 0) return 'no room';
  return `${formatPercent(sum((node) => node.used.memoryMb) / capacity)} of its memory given away to ${formatCount(sum((node) => node.guestCount))} guests`;
}

function stateOf({ clusters, nodes, nowMs }: ClustersPageOptions): { tone: Tone; text: string } {
  const away = nodes.filter((node) => isAway(node, nowMs)).length;
  const open = nodes.filter((node) => node.isOpen).length;
  const told = `${formatCount(open)} of ${formatCount(nodes.length)} nodes take new guests`;
  if (away > 0) return { tone: 'bad', text: `${formatCount(away)} nodes do not answer, ${told}.` };
  const without = clusters.filter(
    (cluster) => !nodes.some((node) => node.clusterId === cluster.id && node.isOpen),
  );
  if (without.length > 0)
    return {
      tone: 'warn',
      text: `${without.map((one) => one.name).join(', ')} can take no guests, ${told}.`,
    };
  return { tone: 'good', text: `All nodes answer, ${told}.` };
}

function clusterForm({ staff, locations, faults }: ClustersPageOptions): Content {
  if (locations.length === 0) return html`<p class="hint">There is no location yet.</p>`;
  return form(
    {
      action: '/console/clusters/',
      csrfToken: staff.csrfToken,
      submit: 'Make cluster',
      submitKind: 'button',
    },
    [
      field({
        name: 'name',
        label: 'Name',
        required: true,
        isCode: true,
        maxLength: 63,
        placeholder: 'nyc1-b',
        error: faults?.get('name'),
      }),
      field({
        kind: 'select',
        name: 'location',
        label: 'Location',
        options: locations.map((location) => ({ value: String(location.id), label: location.name })),
      }),
      field({
        kind: 'select',
        name: 'driver',
        label: 'Driver',
        hint: ['What runs the guests: ', code('libvirt'), ' on real machines.'],
        value: 'libvirt',
        options: driverNames.map((name) => ({ value: name, label: name })),
        error: faults?.get('driver'),
      }),
    ],
  );
}
