import { memberCapacity } from '#operations/networks/index.ts';
import type { Network, NetworkMember } from '#operations/views/network-store.ts';
import type { Server } from '#operations/views/server-store.ts';
import {
  actionButton,
  actionsColumn,
  askButton,
  banner,
  type Content,
  cellColumn,
  code,
  codeColumn,
  confirm,
  definitionList,
  formatCount,
  type Html,
  html,
  inputForm,
  link,
  moment,
  pageHeader,
  refreshing,
  section,
  segment,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';
import { linkColumn } from '#service-kit/web/index.ts';
import { portalFrame } from '../frame.ts';
import type { Visitor } from '../guard.ts';
import { deployIntoPath } from '../servers/deploy.page.ts';
import { type FormFault, networksPath, nicBadge, nicState, syncBadge } from './network-frame.ts';

export interface NetworkPageOptions {
  visitor: Visitor;
  network: Network;
  members: readonly NetworkMember[];
  /** Servers that could be attached. */
  candidates: readonly Server[];
  nowMs: number;
  toast?: { tone: Tone; text: Content } | undefined;
  /** A refused form: which one, what was typed, and why. */
  refused?:
    | { form: 'attach' | 'change' | 'delete'; fault: FormFault; typed: Record<string, string> }
    | undefined;
}

/** Most members that the picture shows; the table has all. */
const drawnMax = 12;

/** `/client/networks/{id}`: the network as a picture, its members, and how they change. */
export function networkPage(options: NetworkPageOptions): Html {
  const { visitor, network } = options;
  const path = `${networksPath}${network.id}`;
  return portalFrame(
    {
      visitor,
      title: network.name,
      current: 'networks',
      breadcrumb: [{ label: 'Networks', href: networksPath }, { label: network.name }],
      toast: options.toast,
    },
    [
      refreshing({ id: 'network-state', url: path, everySeconds: 5 }, [
        pageHeader({
          title: network.name,
          state: stateOf(options),
          actions: actionButton({ action: `${path}/sync`, csrfToken: visitor.csrfToken, label: 'Sync' }),
        }),
        network.syncState === 'error' &&
          banner({
            tone: 'bad',
            title: 'The last sync failed',
            text: `${network.syncError?.message ?? ''} Servers may not reach each other until one succeeds.`,
          }),
        picture(options),
        section({ title: 'Servers' }, membersTable(options)),
      ]),
      attachSection(options),
      section({ title: 'Details' }, facts(options)),
      changeSection(options),
      deleteSection(options),
    ],
  );
}

function stateOf({ network, members }: NetworkPageOptions): { tone: Tone; text: string } {
  const attached = members.filter((member) => member.state === 'attached').length;
  const total = `${formatCount(attached)} of ${formatCount(members.length)} servers attached`;
  if (network.syncState === 'error') return { tone: 'bad', text: `The last sync failed; ${total}.` };
  if (members.some((member) => member.state === 'error'))
    return { tone: 'bad', text: `${total}; one is not connected. Sync the network to try again.` };
  if (members.length === 0)
    return network.syncState === 'pending'
      ? { tone: 'info', text: 'Being set up. No server is on this network yet.' }
      : { tone: 'neutral', text: 'No server is on this network yet.' };
  if (network.syncState === 'pending') return { tone: 'info', text: `Being synced; ${total}.` };
  return { tone: attached === members.length ? 'good' : 'info', text: `${total}.` };
}

function picture({ network, members }: NetworkPageOptions): Html {
  const free = memberCapacity(network.cidr) - members.length;
  return segment({
    label: `${network.name} and the servers on it`,
    title: code(network.cidr),
    note: `${formatCount(free)} addresses free, ${network.locationName}`,
    members: members.slice(0, drawnMax).map((member) => ({
      name: link(`/client/servers/${member.serverId}/networks`, member.name),
      detail: member.ip,
      tone: nicState(member.state).tone,
      state: nicState(member.state).text,
    })),
    more: Math.max(0, members.length - drawnMax),
    emptyText: 'Attached servers appear here.',
  });
}

function membersTable({ visitor, network, members }: NetworkPageOptions): Html {
  return table<NetworkMember>({
    caption: 'Servers on this network',
    card: { line: ['state', 'ip'] },
    columns: [
      linkColumn('name', 'Server', (member) => [member.name, `/client/servers/${member.serverId}`]),
      codeColumn('ip', 'Address', (member) => code(member.ip, true)),
      codeColumn('mac', 'MAC', (member) => code(member.macAddress)),
      cellColumn('state', 'State', (member) => nicBadge(member.state)),
      actionsColumn('detach', (member) =>
        member.state === 'detaching'
          ? ''
          : askButton(
              {
                id: `detach-${member.serverId}`,
                label: 'Detach',
                title: `Detach ${member.name}?`,
                openKind: 'button',
                action: `${networksPath}${network.id}/detach`,
                csrfToken: visitor.csrfToken,
                fields: { server: member.serverId },
              },
              `Its connections over ${network.name} end at once, and its address there may go to another server.`,
            ),
      ),
    ],
    rows: members,
    empty: {
      title: 'No servers yet',
      text: 'Attach one below, or select this network when you deploy a server.',
    },
  });
}

function attachSection({ visitor, network, candidates, refused }: NetworkPageOptions): Content {
  if (candidates.length === 0)
    return section(
      {
        title: 'Attach a server',
        id: 'attach',
        description: `All your running servers in ${network.locationName} are attached to this network.`,
      },
      html`<p>${link(deployIntoPath(network), 'Deploy a server here', { kind: 'button' })}</p>`,
    );
  return section(
    {
      title: 'Attach a server',
      id: 'attach',
      description: 'The server gets a second network interface. It does not restart.',
    },
    inputForm(
      {
        action: `${networksPath}${network.id}/attach`,
        csrfToken: visitor.csrfToken,
        submit: 'Attach server',
      },
      [
        {
          kind: 'select',
          name: 'server',
          label: 'Server',
          required: true,
          options: candidates.map((server) => ({ value: String(server.id), label: server.name })),
        },
        {
          name: 'ip',
          label: 'Address',
          hint: `An address in ${network.cidr}. Leave empty for the next free address.`,
          isCode: true,
          maxLength: 15,
        },
      ],
      refused?.form === 'attach' ? refused : {},
    ),
  );
}

function facts({ network, nowMs }: NetworkPageOptions): Html {
  const labels = Object.entries(network.labels).map(([name, value]) => `${name}=${value}`);
  return definitionList([
    { term: 'Id', value: code(String(network.id)) },
    { term: 'Addresses', value: code(network.cidr, true) },
    { term: 'Gateway', value: 'none: a private network has no route to other networks' },
    { term: 'Location', value: network.locationName },
    { term: 'Sync', value: [syncBadge(network), ' ', moment(network.lastSyncedAt?.getTime(), nowMs)] },
    { term: 'Labels', value: labels.length > 0 ? labels.join(', ') : 'none' },
    { term: 'Created', value: moment(network.createdAt.getTime(), nowMs) },
  ]);
}

function changeSection({ visitor, network, refused }: NetworkPageOptions): Html {
  return section(
    { title: 'Name and description', id: 'change' },
    inputForm(
      {
        action: `${networksPath}${network.id}`,
        csrfToken: visitor.csrfToken,
        submit: 'Save',
        submitKind: 'button',
      },
      [
        { name: 'name', label: 'Name', required: true, maxLength: 64, value: network.name },
        { name: 'description', label: 'Description', maxLength: 255, value: network.description ?? '' },
      ],
      refused?.form === 'change' ? refused : {},
    ),
  );
}

function deleteSection({ visitor, network, members, refused }: NetworkPageOptions): Html {
  const mine = refused?.form === 'delete' ? refused : undefined;
  return section(
    {
      title: 'Delete this network',
      id: 'delete',
      ...(members.length > 0
        ? { description: 'Detach its servers first. A network with servers cannot be deleted.' }
        : {}),
    },
    confirm({
      action: `${networksPath}${network.id}/delete`,
      csrfToken: visitor.csrfToken,
      name: network.name,
      consequence: 'Its block of addresses is free again. Nothing else is lost.',
      submit: 'Delete network',
      error: mine?.fault.message,
    }),
  );
}
