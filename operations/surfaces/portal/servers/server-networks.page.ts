import type { Network } from '#operations/networks/index.ts';
import type { Server } from '#operations/servers/index.ts';
import {
  askButton,
  type Content,
  code,
  field,
  form,
  formatCount,
  type Html,
  html,
  link,
  moment,
  pageHeader,
  refreshing,
  section,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';
import type { Visitor } from '../guard.ts';
import { type FormFault, nicBadge } from '../networks/network-frame.ts';
import { networksPath } from '../networks/networks.page.ts';
import { serverFrame } from './server-frame.ts';

export interface ServerNetworksOptions {
  visitor: Visitor;
  server: Server;
  /** Networks that it could join. */
  candidates: readonly Network[];
  nowMs: number;
  toast?: { tone: Tone; text: Content } | undefined;
  refused?: { fault: FormFault; network: string; ip: string } | undefined;
}

/** `/client/servers/{id}/networks`: the server's network interfaces, public and private. */
export function serverNetworksPage(options: ServerNetworksOptions): Html {
  const { visitor, server, toast } = options;
  const path = `/client/servers/${server.id}/networks`;
  const header = refreshing({ id: 'server-state', url: path, everySeconds: 5 }, [
    pageHeader({ title: server.name, state: stateOf(server) }),
  ]);
  return serverFrame({ visitor, server, tab: 'networks', toast }, header, [
    refreshing(
      { id: 'interfaces', url: path, everySeconds: 5 },
      section({ title: 'Private networks' }, cardsTable(options)),
    ),
    attachSection(options),
    section({ title: 'Public addresses' }, addressesTable(server)),
  ]);
}

function stateOf(server: Server): { tone: Tone; text: string } {
  const nics = server.privateNetworks;
  const reach = server.hasPublicIp ? '' : ' It has no public address.';
  if (nics.length === 0) return { tone: 'neutral', text: `Not attached to a private network.${reach}` };
  const attached = nics.filter((nic) => nic.state === 'attached').length;
  const names = `${formatCount(attached)} of ${formatCount(nics.length)} private ${nics.length === 1 ? 'network' : 'networks'} attached.${reach}`;
  if (nics.some((nic) => nic.state === 'error')) return { tone: 'bad', text: names };
  return { tone: attached === nics.length ? 'good' : 'info', text: names };
}

function cardsTable({ visitor, server, nowMs }: ServerNetworksOptions): Html {
  return table({
    caption: 'Private networks of this server',
    card: { line: ['state', 'ip'] },
    columns: [
      { key: 'name', header: 'Network', cell: (nic) => link(`${networksPath}${nic.networkId}`, nic.name) },
      { key: 'ip', header: 'Address', kind: 'code', cell: (nic) => code(nic.ip, true) },
      { key: 'cidr', header: 'Block', kind: 'code', cell: (nic) => code(nic.cidr) },
      { key: 'mac', header: 'MAC', kind: 'code', cell: (nic) => code(nic.macAddress) },
      {
        key: 'state',
        header: 'State',
        cell: (nic) => [nicBadge(nic.state), nic.requiresReboot && ' after the next reboot'],
      },
      {
        key: 'since',
        header: 'Since',
        cell: (nic) => (nic.attachedAt === null ? 'not yet' : moment(Date.parse(nic.attachedAt), nowMs)),
      },
      {
        key: 'detach',
        header: '',
        kind: 'actions',
        cell: (nic) => {
          if (nic.state === 'detaching') return '';
          if (nic.isLastInterface) return html`<span class="hint">last interface</span>`;
          return askButton(
            {
              id: `detach-${nic.networkId}`,
              label: 'Detach',
              title: `Detach from ${nic.name}?`,
              openKind: 'button',
              action: `/client/servers/${server.id}/networks/detach`,
              csrfToken: visitor.csrfToken,
              fields: { network: nic.networkId },
            },
            `Connections over ${nic.name} end at once, and ${nic.ip} may go to another server.`,
          );
        },
      },
    ],
    rows: server.privateNetworks,
    empty: {
      title: 'Not attached to a private network',
      text: 'A private network connects this server with your other servers, separate from the internet.',
    },
  });
}

function attachSection(options: ServerNetworksOptions): Content {
  const { visitor, server, candidates, refused } = options;
  if (server.provisioningState !== 'ready') return '';
  if (candidates.length === 0)
    return section(
      {
        title: 'Attach to a network',
        id: 'attach',
        description: 'No other network exists in this location.',
      },
      html`<p>${link(networksPath, 'Create a network', { kind: 'button' })}</p>`,
    );
  return section(
    { title: 'Attach to a network', id: 'attach' },
    form(
      {
        action: `/client/servers/${server.id}/networks/attach`,
        csrfToken: visitor.csrfToken,
        submit: 'Attach',
        error: refused && refused.fault.field !== 'ip' ? refused.fault.message : undefined,
      },
      [
        field({
          kind: 'select',
          name: 'network',
          label: 'Network',
          required: true,
          value: refused?.network,
          options: candidates.map((network) => ({
            value: String(network.id),
            label: `${network.name} (${network.cidr})`,
          })),
        }),
        field({
          name: 'ip',
          label: 'Address',
          hint: 'Leave empty for the next free address.',
          isCode: true,
          maxLength: 15,
          value: refused?.ip,
          error: refused?.fault.field === 'ip' ? refused.fault.message : undefined,
        }),
      ],
    ),
  );
}

function addressesTable(server: Server): Html {
  return table({
    caption: 'Public addresses of this server',
    card: { line: ['prefix', 'gateway'] },
    columns: [
      { key: 'address', header: 'Address', kind: 'code', cell: (given) => code(given.address, true) },
      { key: 'prefix', header: 'Prefix', kind: 'figure', cell: (given) => `/${given.prefixLength}` },
      { key: 'gateway', header: 'Gateway', kind: 'code', cell: (given) => code(given.gateway) },
      { key: 'name', header: 'Reverse name', cell: (given) => given.reverseDns ?? 'none' },
    ],
    rows: server.addresses,
    empty: {
      title: 'No public address',
      text: server.hasPublicIp
        ? 'Addresses are assigned when the server is provisioned.'
        : 'This server is reachable through its private network only.',
    },
  });
}
