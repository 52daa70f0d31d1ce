import { type Cluster, isAway, type LastCheck, type Node } from '#operations/clusters/index.ts';
import type { NodeCheck } from '#operations/hypervisors/index.ts';
import type { Drift } from '#operations/servers/index.ts';
import {
  actionButton,
  askButton,
  badge,
  banner,
  type Content,
  cellColumn,
  code,
  definitionList,
  type FieldOptions,
  formatCount,
  type Html,
  html,
  inputForm,
  link,
  moment,
  pageHeader,
  refreshing,
  section,
  shareBar,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';
import type { FieldFault } from '../field-fault.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';

/** The texts of the node form. */
export type NodeForm = ReturnType<typeof formOf>;

export interface NodePageOptions {
  staff: Staff;
  cluster: Cluster;
  /** null: a new one. */
  node: Node | null;
  form: NodeForm;
  /** Where it holds other guests than what is sold. */
  drifts: readonly Drift[];
  /** The last check of what it needs; null: there was none. */
  check: LastCheck | null;
  nowMs: number;
  toast?: { tone: Tone; text: Content } | undefined;
  fault?: FieldFault;
}

export const emptyForm: NodeForm = {
  name: '',
  uri: '',
  storage_pool: '',
  bridge: '',
  network_bridges: '',
  vcpus: '',
  memory_gib: '',
  disk_gb: '',
};

export function formOf(node: Node) {
  return {
    name: node.name,
    uri: node.uri ?? '',
    storage_pool: node.storagePool ?? '',
    bridge: node.bridge ?? '',
    network_bridges: node.networkBridges ?? '',
    vcpus: String(node.capacity.vcpus),
    memory_gib: String(node.capacity.memoryMb / 1024),
    disk_gb: String(node.capacity.diskGb),
  };
}

/** `/console/clusters/nodes/{id}`, and the page of a node that is to be. */
export function nodePage(options: NodePageOptions): Html {
  const { staff, cluster, node, nowMs } = options;
  const title = node?.name ?? `A node for ${cluster.name}`;
  return consoleFrame({ staff, title, current: 'clusters', toast: options.toast }, [
    pageHeader({
      title,
      state: node === null ? undefined : stateOf(node, nowMs),
      actions: node !== null && staff.canChange && switches(staff, node),
    }),
    node !== null &&
      node.lastError !== null &&
      banner({ tone: 'bad', title: 'It does not answer', text: node.lastError }),
    node !== null && options.drifts.length > 0 && driftSection(options, node),
    node !== null && checkSection(options, node),
    node !== null && section({ title: 'Room and connection' }, room(node, nowMs)),
    staff.canChange && section({ title: node === null ? 'Settings' : 'Change' }, nodeForm(options)),
  ]);
}

export function nodeBadge(node: Node, nowMs: number): Html {
  if (isAway(node, nowMs)) return badge('bad', 'does not answer');
  if (!node.isOpen) return badge('warn', 'closed');
  return node.seenAt === null ? badge('neutral', 'not seen yet') : badge('good', 'open');
}

function stateOf(node: Node, nowMs: number): { tone: Tone; text: string } {
  const guests = `${formatCount(node.guestCount)} ${node.guestCount === 1 ? 'server' : 'servers'}`;
  if (isAway(node, nowMs)) return { tone: 'bad', text: `It does not answer; it has ${guests}.` };
  return node.isOpen
    ? { tone: 'good', text: `Accepts new servers, has ${guests}.` }
    : { tone: 'warn', text: `Closed for new servers, has ${guests}.` };
}

function switches(staff: Staff, node: Node): Content {
  const action = `/console/clusters/nodes/${node.id}`;
  const { csrfToken } = staff;
  return [
    node.isOpen
      ? askButton(
          {
            id: 'close-node',
            label: 'Close',
            title: `Close ${node.name}?`,
            openKind: 'button',
            action: `${action}/close`,
            csrfToken,
          },
          'It accepts no new servers until it is opened again. Its servers keep running.',
        )
      : actionButton({ action: `${action}/open`, csrfToken, label: 'Open' }),
    node.guestCount === 0 &&
      askButton(
        {
          id: 'remove-node',
          label: 'Remove',
          title: `Remove ${node.name}?`,
          action: `${action}/remove`,
          csrfToken,
        },
        'It has no servers. Its address and credentials are deleted.',
      ),
  ];
}

const driftWords: Record<Drift['kind'], { name: string; mend: string | null; consequence: string }> = {
  missing: { name: 'The guest is missing', mend: null, consequence: '' },
  stray: { name: 'The guest belongs to no server', mend: null, consequence: '' },
  size: {
    name: 'Other sizes',
    mend: 'Restore the sizes',
    consequence: 'The server is shut down, gets the sizes of its plan and starts again. Nothing is charged.',
  },
  interfaces: {
    name: 'Other network interfaces',
    mend: 'Apply its networks',
    consequence: 'The private networks of the server are applied to the nodes again.',
  },
};

/** Nothing of it is mended by itself. */
function driftSection({ staff, drifts, nowMs }: NodePageOptions, node: Node): Html {
  const description =
    'The hypervisor was compared with what is sold. Nothing is changed by itself; what has no button is mended at the node.';
  return section(
    { title: 'Differences', id: 'differences', description },
    table<Drift>({
      caption: 'Differences',
      card: { line: ['kind', 'since'] },
      columns: [
        cellColumn('guest', 'Guest', ({ guest, kind }) =>
          kind === 'stray' ? code(guest) : link(`/console/servers/${guest.slice(3)}`, guest),
        ),
        { key: 'kind', header: 'Difference', kind: 'prose', cell: ({ kind }) => driftWords[kind].name },
        { key: 'detail', header: 'Found', kind: 'prose', cell: ({ detail }) => detail },
        cellColumn('since', 'Seen', ({ seenAt }) => moment(seenAt.getTime(), nowMs)),
        cellColumn('mend', 'Mend', ({ guest, kind }) => {
          const { mend, consequence } = driftWords[kind];
          if (mend === null || !staff.canChange) return '';
          return askButton(
            {
              ...{ id: `mend-${kind}-${guest}`, label: mend, title: `${mend} of ${guest}?` },
              ...{ openKind: 'button' as const, csrfToken: staff.csrfToken, fields: { guest, kind } },
              action: `/console/clusters/nodes/${node.id}/mend`,
            },
            consequence,
          );
        }),
      ],
      rows: drifts,
      empty: { title: 'None', text: '' },
    }),
  );
}

const checkTones: Record<NodeCheck['state'], Tone> = {
  good: 'good',
  warning: 'warn',
  bad: 'bad',
  unknown: 'neutral',
};

/** What the node needs to run servers, as it was checked last. */
function checkSection({ staff, check, nowMs }: NodePageOptions, node: Node): Html {
  const path = `/console/clusters/nodes/${node.id}`;
  const isRunning = check !== null && check.finishedAt === null;
  const button =
    staff.canChange &&
    !isRunning &&
    actionButton({ action: `${path}/check`, csrfToken: staff.csrfToken, label: 'Check node' });
  const words =
    check === null
      ? 'Never checked.'
      : isRunning
        ? 'Being checked. A node that does not answer takes up to half a minute.'
        : html`Checked ${moment(check.finishedAt!.getTime(), nowMs)}.`;
  const content = section({ title: 'Check', id: 'check', actions: button }, [
    html`<p>${words}</p>`,
    check !== null &&
      check.checks.length > 0 &&
      table<NodeCheck>({
        caption: 'What the node needs to run servers',
        card: { line: ['state'] },
        columns: [
          cellColumn('subject', 'What', ({ subject }) => `${subject[0]!.toUpperCase()}${subject.slice(1)}`),
          cellColumn('state', 'State', ({ state }) => badge(checkTones[state], state)),
          { key: 'text', header: 'Found', kind: 'prose', cell: ({ text }) => text },
        ],
        rows: check.checks,
        empty: { title: 'None', text: '' },
      }),
  ]);
  return isRunning ? refreshing({ id: 'node-check', url: path, everySeconds: 5 }, content) : content;
}

function room(node: Node, nowMs: number): Html {
  const line = (used: number, capacity: number, unit: string) => [
    shareBar(used / capacity),
    html` <span class="hint">${formatCount(used)} of ${formatCount(capacity)} ${unit}</span>`,
  ];
  return definitionList([
    { term: 'State', value: nodeBadge(node, nowMs) },
    {
      term: 'Memory',
      value: line(Math.ceil(node.used.memoryMb / 1024), Math.floor(node.capacity.memoryMb / 1024), 'GiB'),
    },
    { term: 'vCPUs', value: line(node.used.vcpus, node.capacity.vcpus, '') },
    { term: 'Disk', value: line(node.used.diskGb, node.capacity.diskGb, 'GB') },
    { term: 'Last answer', value: moment(node.seenAt?.getTime(), nowMs) },
    { term: 'Connection', value: node.uri === null ? 'of the driver' : code(node.uri) },
    { term: 'Storage pool', value: node.storagePool === null ? 'of the driver' : code(node.storagePool) },
    { term: 'Bridge', value: node.bridge === null ? 'of the driver' : code(node.bridge) },
    ...(node.networkBridges === null
      ? []
      : [{ term: 'Bridges of private networks', value: code(node.networkBridges) }]),
  ]);
}

function nodeForm({ staff, cluster, node, form: typed, fault }: NodePageOptions): Html {
  const isLibvirt = cluster.driver === 'libvirt';
  const text = (name: keyof NodeForm, label: string, hint: string, placeholder = ''): FieldOptions => ({
    ...{ name, label, hint, placeholder, isCode: true, maxLength: 200 },
    required: name !== 'network_bridges',
  });
  const size = (name: keyof NodeForm, label: string): FieldOptions => ({
    ...{ kind: 'number', name, label, required: true, min: 1 },
  });
  const action =
    node === null ? `/console/clusters/${cluster.id}/nodes` : `/console/clusters/nodes/${node.id}`;
  return inputForm(
    {
      action,
      csrfToken: staff.csrfToken,
      submit: node === null ? 'Add node' : 'Save',
      cancel: link('/console/clusters/', 'Cancel', { kind: 'button' }),
    },
    [
      node === null && text('name', 'Name', 'Its host name in your network.', 'node-1'),
      ...(isLibvirt
        ? [
            text('uri', 'Connection', 'Connection URI for virsh.', 'qemu+ssh://svc@node-1/system'),
            text(
              'storage_pool',
              'Storage pool',
              'Contains the images, such as debian-13.qcow2, and the disks of the servers.',
              'guests',
            ),
            text('bridge', 'Bridge', 'The bridge to which servers are connected.', 'br0'),
            text(
              'network_bridges',
              'Bridges of private networks',
              'One for each network, by its number. Your VLANs or VXLANs connect those of the same number. Empty: a private network ends at this node.',
              'brpn{100-199}',
            ),
          ]
        : []),
      size('vcpus', 'vCPUs that may be allocated'),
      size('memory_gib', 'Memory that may be allocated, GiB'),
      size('disk_gb', 'Disk that may be allocated, GB'),
    ],
    { typed, fault },
  );
}
