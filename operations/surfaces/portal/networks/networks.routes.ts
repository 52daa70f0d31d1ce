/** `/client/networks/`: private networks by the same operations that the API uses. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Features } from '#operations/features.ts';
import { memberCapacity } from '#operations/networks/index.ts';
import type { Network, NetworkMember } from '#operations/views/network-store.ts';
import type { Server } from '#operations/views/server-store.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  actionButton,
  actionsColumn,
  askButton,
  banner,
  type Column,
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
  isConfirmed,
  link,
  moment,
  pageHeader,
  refreshing,
  section,
  segment,
  sendPage,
  type Tone,
  table,
  toastOf,
} from '#service-kit/pages/index.ts';
import { countColumn, linkColumn, noSuchPage, readAll } from '#service-kit/web/index.ts';
import { portalFrame, workspaceField } from '../frame.ts';
import { Done, Id, type Visitor } from '../guard.ts';
import { deployIntoPath } from '../servers/deploy.routes.ts';
import { type FormFault, faultOf, networksPath, nicBadge, nicState, syncBadge } from './network-frame.ts';

const listMax = 500;
const Text = Type.Optional(Type.String({ maxLength: 300 }));
const CreateForm = Type.Object({
  name: Type.String({ maxLength: 300 }),
  cidr: Text,
  location: Text,
  tenant: Text,
});
const AttachForm = Type.Object({ server: Type.String(), ip: Text });
const DetachForm = Type.Object({ server: Type.String() });
const ChangeForm = Type.Object({ name: Type.String({ maxLength: 300 }), description: Text });

/** What the toast says after a redirect; the name in the URL chooses, its text never comes from there. */
const outcomes: Record<string, string> = {
  created: 'The network was created.',
  attach: 'The server is being attached.',
  detach: 'The server is being detached.',
  sync: 'The network is being synced.',
  change: 'Saved.',
  deleted: 'The network was deleted.',
};

export function registerNetworks(app: App, deps: Features): void {
  app.get('/networks/', { schema: { querystring: Done } }, async (request, reply) =>
    showList(deps, request.visitor!, reply, 200, { toast: toastOf(outcomes, request.query.done) }),
  );

  app.post('/networks/', { schema: { body: CreateForm } }, async (request, reply) => {
    const visitor = request.visitor!;
    const { name, cidr = '', location = '', tenant = '' } = request.body;
    const tenantId = tenant === '' ? visitor.actor.tenantIds[0] : Number(tenant);
    const draft = { name, cidr, location, tenant };
    const fail = (message: string, field: string | null) =>
      showList(deps, visitor, reply, 422, { draft, fault: { message, field } });
    if (tenantId === undefined || !visitor.actor.tenantIds.includes(tenantId))
      return fail('Choose one of your workspaces.', null);
    if (!isName(name)) return fail('Give it a name of 1 to 64 characters.', 'name');
    let made: Network | undefined;
    const fault = await faultOf(async () => {
      made = await deps.networks.createNetwork(visitor.actor, {
        tenantId,
        name: name.trim(),
        ...(cidr.trim() === '' ? {} : { cidr: cidr.trim() }),
        ...(location === '' ? {} : { location }),
      });
    });
    if (fault !== null) return fail(fault.message, fault.field);
    return reply.redirect(`${networksPath}${made!.id}?done=created`, 303);
  });

  app.get('/networks/:id', { schema: { params: Id, querystring: Done } }, async (request, reply) =>
    showOne(deps, request, reply, 200, { toast: toastOf(outcomes, request.query.done) }),
  );
  registerChanges(app, deps);
}

function registerChanges(app: App, deps: Features): void {
  app.post('/networks/:id', { schema: { params: Id, body: ChangeForm } }, async (request, reply) => {
    const { name, description = '' } = request.body;
    const typed = { name, description };
    const { network } = await findNetworkOf(deps, request);
    const fault = isName(name)
      ? await faultOf(() =>
          deps.networks.changeNetwork(request.visitor!.actor, null, network.id, {
            name: name.trim(),
            description: description.trim() === '' ? null : description.trim().slice(0, 255),
          }),
        )
      : { message: 'Give it a name of 1 to 64 characters.', field: 'name' };
    return answer(deps, request, reply, 'change', fault && { form: 'change', fault, typed });
  });

  app.post('/networks/:id/sync', { schema: { params: Id } }, async (request, reply) => {
    const { network } = await findNetworkOf(deps, request);
    await deps.networks.syncNetwork(request.visitor!.actor, null, network.id);
    return answer(deps, request, reply, 'sync', null);
  });

  app.post('/networks/:id/attach', { schema: { params: Id, body: AttachForm } }, async (request, reply) => {
    const { network } = await findNetworkOf(deps, request);
    const { server, ip = '' } = request.body;
    const fault = await faultOf(() =>
      deps.networks.attachServer(request.visitor!.actor, network.tenantId, {
        serverId: Number(server),
        networkId: network.id,
        ip: ip.trim() === '' ? undefined : ip.trim(),
      }),
    );
    return answer(deps, request, reply, 'attach', fault && { form: 'attach', fault, typed: { server, ip } });
  });

  app.post('/networks/:id/detach', { schema: { params: Id, body: DetachForm } }, async (request, reply) => {
    const { network } = await findNetworkOf(deps, request);
    const input = { serverId: Number(request.body.server), networkId: network.id };
    const fault = await faultOf(() =>
      deps.networks.detachServer(request.visitor!.actor, network.tenantId, input),
    );
    if (fault === null) return answer(deps, request, reply, 'detach', null);
    return showOne(deps, request, reply, 409, { toast: { tone: 'bad', text: fault.message } });
  });

  app.post('/networks/:id/delete', { schema: { params: Id } }, async (request, reply) => {
    const { network } = await findNetworkOf(deps, request);
    const isMeant = isConfirmed(request.body, network.name);
    const fault = isMeant
      ? await faultOf(() => deps.networks.deleteNetwork(request.visitor!.actor, null, network.id))
      : { message: `Nothing was deleted. Type ${network.name} to confirm.`, field: null };
    if (fault === null) return reply.redirect(`${networksPath}?done=deleted`, 303);
    return showOne(deps, request, reply, isMeant ? 409 : 422, {
      refused: { form: 'delete', fault, typed: {} },
    });
  });
}

type IdRequest = FastifyRequest<{ Params: { id: string } }>;

async function answer(
  deps: Features,
  request: IdRequest,
  reply: FastifyReply,
  done: string,
  refused: NetworkPageOptions['refused'] | null,
): Promise<FastifyReply> {
  if (refused) return showOne(deps, request, reply, 422, { refused });
  return reply.redirect(`${networksPath}${request.params.id}?done=${done}`, 303);
}

async function showList(
  deps: Features,
  visitor: Visitor,
  reply: FastifyReply,
  status: number,
  state: Pick<NetworksPageOptions, 'toast' | 'draft' | 'fault'>,
): Promise<FastifyReply> {
  const page = networksPage({ visitor, ...(await readNetworks(deps, visitor)), ...state });
  return sendPage(reply, page, status);
}

const readNetworks = ({ networks, accounts, catalog }: Features, { actor }: Visitor) =>
  readAll({
    networks: networks.listNetworks(actor, null, { limit: listMax }),
    tenants: accounts.findTenants(actor.tenantIds),
    locations: catalog.listLocations(),
    // Of one account.
    networksMax: networks.networksMax,
  });

async function showOne(
  deps: Features,
  request: IdRequest,
  reply: FastifyReply,
  status: number,
  state: Pick<NetworkPageOptions, 'toast' | 'refused'>,
): Promise<FastifyReply> {
  const { visitor, network } = await findNetworkOf(deps, request);
  const [members, servers] = await Promise.all([
    deps.networks.listMembers(visitor.actor, network.tenantId, network.id),
    deps.servers.listServers(visitor.actor, network.tenantId, { order: 'oldest', limit: listMax }),
  ]);
  const candidates = servers.filter((server) => mayJoin(server, network));
  const nowMs = deps.clock.nowMs();
  return sendPage(reply, networkPage({ visitor, network, members, candidates, nowMs, ...state }), status);
}

/** Servers that the attach form offers; the operation decides. */
function mayJoin(server: Server, network: Network): boolean {
  return (
    server.provisioningState === 'ready' &&
    server.locationId === network.locationId &&
    !server.privateNetworks.some((nic) => nic.networkId === network.id)
  );
}

/** The network of `/client/networks/:id…`; throws the portal's 404 for any other, also for another customer's. */
async function findNetworkOf(
  deps: Features,
  request: IdRequest,
): Promise<{ visitor: Visitor; network: Network }> {
  const visitor = request.visitor!;
  const { id } = request.params;
  if (!/^[1-9]\d{0,15}$/.test(id)) throw noSuchPage();
  const network = await deps.networks.findNetwork(visitor.actor, null, Number(id));
  if (network === null) throw noSuchPage();
  return { visitor, network };
}

function isName(text: string): boolean {
  const name = text.trim();
  return name.length >= 1 && name.length <= 64;
}

interface NetworksPageOptions extends Awaited<ReturnType<typeof readNetworks>> {
  visitor: Visitor;
  toast?: { tone: Tone; text: Content } | undefined;
  /** What was typed, and what was wrong with it. */
  draft?: { name: string; cidr: string; location: string; tenant: string } | undefined;
  fault?: FormFault | null;
}

/** `/client/networks/`: all private networks of all tenants that the person reaches, and how another one is made. */
function networksPage(options: NetworksPageOptions): Html {
  const { visitor, networks } = options;
  return portalFrame({ visitor, title: 'Networks', current: 'networks', toast: options.toast }, [
    refreshing({ id: 'networks', url: networksPath, everySeconds: 15 }, [
      pageHeader({ title: 'Private networks', state: stateOf(options) }),
      table({
        caption: 'Private networks',
        card: { line: ['cidr', 'members', 'sync'] },
        columns: columnsFor(options),
        rows: networks,
        rowTone: (network) => (network.syncState === 'error' ? 'bad' : undefined),
        empty: {
          title: 'No private networks yet',
          text: 'A private network connects your servers with each other only. Create one below, then attach servers to it.',
        },
      }),
    ]),
    createSection(options),
  ]);
}

function columnsFor({ tenants }: NetworksPageOptions): Column<Network>[] {
  const names = new Map(tenants.map((tenant) => [tenant.id, tenant.name]));
  const columns: Column<Network>[] = [
    linkColumn('name', 'Name', (network) => [network.name, `${networksPath}${network.id}`]),
    codeColumn('cidr', 'Addresses', (network) => code(network.cidr)),
    countColumn('members', 'Servers', (network) => network.memberCount),
    cellColumn('sync', 'State', syncBadge),
    cellColumn('location', 'Location', (network) => network.locationName),
    {
      key: 'description',
      header: 'Description',
      kind: 'prose',
      cell: (network) => network.description ?? '',
    },
  ];
  if (tenants.length > 1)
    columns.push(cellColumn('tenant', 'Workspace', (network) => names.get(network.tenantId)));
  return columns;
}

function stateOf({ networks }: NetworksPageOptions): { tone: Tone; text: string } {
  if (networks.length === 0) return { tone: 'neutral', text: 'You have no private networks.' };
  const count = (state: Network['syncState']) =>
    networks.filter((network) => network.syncState === state).length;
  const servers = networks.reduce((sum, network) => sum + network.memberCount, 0);
  const total = `${formatCount(networks.length)} ${networks.length === 1 ? 'network' : 'networks'} with ${formatCount(servers)} ${servers === 1 ? 'server' : 'servers'} on them`;
  if (count('error') > 0) return { tone: 'bad', text: `${count('error')} could not be synced; ${total}.` };
  if (count('pending') > 0) return { tone: 'info', text: `${count('pending')} being synced; ${total}.` };
  return { tone: 'good', text: `${total}, all in sync.` };
}

function createSection(options: NetworksPageOptions): Html {
  const { visitor, tenants, locations, draft, fault } = options;
  return section(
    {
      title: 'Create a network',
      id: 'create',
      description: `An account has at most ${formatCount(options.networksMax)}. Traffic on private networks is not counted.`,
    },
    inputForm(
      { action: networksPath, csrfToken: visitor.csrfToken, submit: 'Create network' },
      [
        workspaceField(tenants),
        { name: 'name', label: 'Name', required: true, maxLength: 64 },
        locations.length > 1 && {
          kind: 'select',
          name: 'location',
          label: 'Location',
          hint: 'Only servers of this location can join.',
          required: true,
          value: locations[0]?.slug,
          options: locations.map((location) => ({ value: location.slug, label: location.name })),
        },
        {
          name: 'cidr',
          label: 'Address block',
          hint: 'For example 10.20.0.0/24: /16 to /29 within 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16. It cannot be changed later. Leave empty for the next free /24.',
          isCode: true,
          maxLength: 18,
        },
      ],
      { typed: draft, fault },
    ),
  );
}

interface NetworkPageOptions {
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
function networkPage(options: NetworkPageOptions): Html {
  const { visitor, network } = options;
  const path = `${networksPath}${network.id}`;
  return portalFrame({ visitor, title: network.name, current: 'networks', toast: options.toast }, [
    refreshing({ id: 'network-state', url: path, everySeconds: 5 }, [
      pageHeader({
        title: network.name,
        state: stateOfNetwork(options),
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
  ]);
}

function stateOfNetwork({ network, members }: NetworkPageOptions): { tone: Tone; text: string } {
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
