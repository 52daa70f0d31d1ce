/** `/client/addresses/`: public addresses that the person's workspaces keep, by the same operations that the API uses. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Features } from '#operations/features.ts';
import type { ReservedAddress } from '#operations/views/reserved-address-store.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  actionButton,
  actionsColumn,
  askButton,
  badge,
  type Column,
  type Content,
  cellColumn,
  code,
  codeColumn,
  formatCount,
  formatTime,
  type Html,
  inputForm,
  link,
  pageHeader,
  refreshing,
  section,
  sendPage,
  type Tone,
  table,
  toastOf,
} from '#service-kit/pages/index.ts';
import { noSuchPage, readAll } from '#service-kit/web/index.ts';
import { portalFrame, workspaceField } from '../frame.ts';
import { Done, type Visitor } from '../guard.ts';
import { type FormFault, faultOf } from './network-frame.ts';

const addressesPath = '/client/addresses/';
const listMax = 500;
const Text = Type.Optional(Type.String({ maxLength: 300 }));
const Id = Type.String({ pattern: '^[1-9]\\d{0,14}$' });
const ReserveForm = Type.Object({
  what: Type.String({ maxLength: 60 }),
  name: Text,
  location: Text,
  tenant: Text,
});
const AttachForm = Type.Object({ address: Id, server: Type.String({ maxLength: 20 }) });
const OneForm = Type.Object({ address: Id });
/** What the toast says after a redirect; the name in the URL chooses, its text never comes from there. */
const outcomes = {
  kept: 'The address is kept for you.',
  attach: 'The address is being attached.',
  detach: 'The address is being detached.',
  released: 'The address was released.',
};

interface PageState {
  done?: string | undefined;
  /** What was typed, what was wrong with it, and in which form. */
  draft?: { what: string; name?: string; location?: string; tenant?: string };
  chosen?: { address: string; server: string };
  fault?: FormFault & { form: 'keep' | 'attach' | 'list' };
}

export function registerAddresses(app: App, deps: Features): void {
  app.get('/addresses/', { schema: { querystring: Done } }, async (request, reply) =>
    show(deps, request.visitor!, reply, request.query),
  );

  app.post('/addresses/', { schema: { body: ReserveForm } }, async (request, reply) => {
    const visitor = request.visitor!;
    const { what, name = '', location = '', tenant } = request.body;
    const tenantId = tenant === undefined ? visitor.actor.tenantIds[0] : Number(tenant);
    if (tenantId === undefined) throw noSuchPage();
    const source =
      what === '4' || what === '6'
        ? { family: what === '4' ? (4 as const) : (6 as const), ...(location !== '' && { location }) }
        : { address: what };
    const named = name.trim() === '' ? {} : { name: name.trim() };
    const fault = await faultOf(() =>
      deps.addresses.reserveAddress(visitor.actor, { tenantId, ...named, ...source }),
    );
    if (fault !== null)
      return show(deps, visitor, reply, { draft: request.body, fault: { ...fault, form: 'keep' } });
    return reply.redirect(`${addressesPath}?done=kept`, 303);
  });

  app.post('/addresses/attach', { schema: { body: AttachForm } }, async (request, reply) => {
    const { address, server } = request.body;
    const of = await find(deps, request, address);
    const input = { serverId: Number(server), addressId: of.id };
    const fault = await faultOf(() => deps.servers.attachAddress(request.visitor!.actor, of.tenantId, input));
    return answer(deps, request, reply, 'attach', {
      ...(fault && { chosen: request.body, fault: { ...fault, form: 'attach' } }),
    });
  });

  app.post('/addresses/detach', { schema: { body: OneForm } }, async (request, reply) => {
    const { id, tenantId } = await find(deps, request, request.body.address);
    const fault = await faultOf(() => deps.servers.detachAddress(request.visitor!.actor, tenantId, id));
    return answer(deps, request, reply, 'detach', { ...(fault && { fault: { ...fault, form: 'list' } }) });
  });

  app.post('/addresses/release', { schema: { body: OneForm } }, async (request, reply) => {
    const { id, tenantId } = await find(deps, request, request.body.address);
    const fault = await faultOf(() =>
      deps.addresses.releaseAddress(request.visitor!.actor, { tenantId, id }),
    );
    return answer(deps, request, reply, 'released', { ...(fault && { fault: { ...fault, form: 'list' } }) });
  });
}

/** Of one of the person's workspaces; throws the portal's 404 for any other. */
async function find({ addresses }: Features, request: FastifyRequest, id: string): Promise<ReservedAddress> {
  const { actor } = request.visitor!;
  for (const tenantId of actor.tenantIds) {
    const found = await addresses.findReserved(actor, tenantId, Number(id));
    if (found !== null) return found;
  }
  throw noSuchPage();
}

function answer(
  deps: Features,
  request: FastifyRequest,
  reply: FastifyReply,
  done: keyof typeof outcomes,
  state: PageState,
): FastifyReply | Promise<FastifyReply> {
  if (state.fault) return show(deps, request.visitor!, reply, state);
  return reply.redirect(`${addressesPath}?done=${done}`, 303);
}

interface Shown extends Awaited<ReturnType<typeof readAddresses>>, PageState {
  visitor: Visitor;
}

const readAddresses = ({ accounts, addresses, catalog, servers }: Features, { actor }: Visitor) =>
  readAll({
    tenants: accounts.findTenants(actor.tenantIds),
    kept: Promise.all(actor.tenantIds.map((id) => addresses.listReserved(actor, id))).then((all) =>
      all.flat(),
    ),
    servers: servers.listServers(actor, null, { order: 'oldest', limit: listMax }),
    locations: catalog.listLocations(),
    // Of one account.
    addressesMax: addresses.addressesMax,
  });

async function show(deps: Features, visitor: Visitor, reply: FastifyReply, state: PageState) {
  const shown = { visitor, ...(await readAddresses(deps, visitor)), ...state };
  const failed = state.fault?.form === 'list' ? state.fault.message : undefined;
  const toast = failed === undefined ? toastOf(outcomes, state.done) : { tone: 'bad' as const, text: failed };
  const page = portalFrame({ visitor, title: 'Addresses', current: 'addresses', toast }, [
    refreshing({ id: 'addresses', url: addressesPath, everySeconds: 15 }, [
      pageHeader({ title: 'Addresses', state: stateOf(shown.kept) }),
      addressTable(shown),
    ]),
    attachSection(shown),
    keepSection(shown),
  ]);
  return sendPage(reply, page, state.fault === undefined ? 200 : 422);
}

function stateOf(kept: readonly ReservedAddress[]): { tone: Tone; text: string } {
  if (kept.length === 0) return { tone: 'neutral', text: 'You keep no addresses.' };
  const free = kept.filter(({ state }) => state === 'available').length;
  const total = `${formatCount(kept.length)} ${kept.length === 1 ? 'address' : 'addresses'} kept`;
  return {
    tone: 'info',
    text: free === 0 ? `${total}, all with servers.` : `${total}, ${free} without a server.`,
  };
}

const states: Record<ReservedAddress['state'], { tone: Tone; text: string }> = {
  available: { tone: 'neutral', text: 'available' },
  attaching: { tone: 'info', text: 'attaching' },
  attached: { tone: 'good', text: 'attached' },
  detaching: { tone: 'warn', text: 'detaching' },
};

function addressTable({ kept, tenants, servers, visitor }: Shown): Html {
  const workspaces = new Map(tenants.map(({ id, name }) => [id, name]));
  const names = new Map(servers.map(({ id, name }) => [id, name]));
  const columns: Column<ReservedAddress>[] = [
    codeColumn('address', 'Address', (one) => code(one.address)),
    cellColumn('name', 'Name', (one) => (one.name === one.address ? '' : one.name)),
    cellColumn('state', 'State', ({ state }) => badge(states[state].tone, states[state].text)),
    cellColumn('server', 'Server', ({ serverId }) =>
      serverId === null
        ? ''
        : link(`/client/servers/${serverId}`, names.get(serverId) ?? `Server ${serverId}`),
    ),
    cellColumn('location', 'Location', (one) => one.locationSlug),
    ...(tenants.length > 1
      ? [cellColumn('tenant', 'Workspace', (one: ReservedAddress) => workspaces.get(one.tenantId))]
      : []),
    cellColumn('created', 'Kept since', (one) => formatTime(one.createdAt.getTime(), 'day')),
    actionsColumn('actions', (one) => buttonsOf(visitor, one)),
  ];
  return table({
    caption: 'Kept addresses',
    card: { line: ['state', 'server', 'location'] },
    columns,
    rows: kept,
    empty: {
      title: 'No addresses yet',
      text: 'A kept address stays yours when its server is destroyed. Keep one below, then attach it to any of your servers.',
    },
  });
}

function buttonsOf({ csrfToken }: Visitor, one: ReservedAddress): Content {
  const fields = { address: one.id };
  if (one.state === 'attached' && !one.isPrimary && !one.cameWithServer)
    return detachButton(csrfToken, fields);
  if (one.state !== 'available' && one.state !== 'attached') return '';
  const release = askButton(
    {
      id: `release-${one.id}`,
      label: 'Release',
      title: `Release ${one.address}?`,
      openKind: 'button',
      action: `${addressesPath}release`,
      csrfToken,
      fields,
    },
    one.state === 'available'
      ? 'Another customer may get it, and it can’t be called back.'
      : 'Its server has it until the server is destroyed. Then another customer may get it.',
  );
  return one.state === 'attached' && !one.isPrimary ? [detachButton(csrfToken, fields), release] : release;
}

const detachButton = (csrfToken: string, fields: { address: number }) =>
  actionButton({ action: `${addressesPath}detach`, csrfToken, label: 'Detach', fields });

function attachSection({ visitor, kept, servers, chosen, fault }: Shown): Content {
  const free = kept.filter(({ state }) => state === 'available');
  const able = servers.filter(
    ({ provisioningState, hasPublicIp }) => provisioningState === 'ready' && hasPublicIp,
  );
  if (free.length === 0 || able.length === 0) return '';
  return section(
    {
      title: 'Attach an address',
      id: 'attach',
      description:
        'The server may use the address when it shows as attached. Add it to the network interface inside the server as well.',
    },
    inputForm(
      { action: `${addressesPath}attach`, csrfToken: visitor.csrfToken, submit: 'Attach' },
      [
        {
          kind: 'select',
          name: 'address',
          label: 'Address',
          value: String(free[0]!.id),
          options: free.map(({ id, address, name }) => ({
            value: String(id),
            label: name === address ? address : `${address} (${name})`,
          })),
        },
        {
          kind: 'select',
          name: 'server',
          label: 'Server',
          value: String(able[0]!.id),
          options: able.map(({ id, name }) => ({ value: String(id), label: name })),
        },
      ],
      fault?.form === 'attach' ? { typed: chosen, fault } : {},
    ),
  );
}

function keepSection(shown: Shown): Html {
  const { visitor, tenants, servers, kept, locations, draft, fault } = shown;
  const isKept = new Set(kept.map(({ address }) => address));
  const held = servers.flatMap(({ name, addresses }) =>
    addresses
      .filter(({ address }) => !isKept.has(address))
      .map(({ address }) => ({ value: address, label: `${address} of ${name}` })),
  );
  return section(
    {
      title: 'Keep an address',
      id: 'keep',
      description: `An account keeps at most ${formatCount(shown.addressesMax)}. They cost nothing.`,
    },
    inputForm(
      { action: addressesPath, csrfToken: visitor.csrfToken, submit: 'Keep address' },
      [
        workspaceField(tenants),
        {
          kind: 'select',
          name: 'what',
          label: 'Address',
          value: '4',
          options: [
            { value: '4', label: 'A new IPv4 address' },
            { value: '6', label: 'A new IPv6 address' },
            ...held,
          ],
        },
        locations.length > 1 && {
          kind: 'select',
          name: 'location',
          label: 'Location',
          hint: 'Of a new address: only servers of this location can have it.',
          value: locations[0]!.slug,
          options: locations.map(({ slug, name }) => ({ value: slug, label: name })),
        },
        { name: 'name', label: 'Name', maxLength: 64 },
      ],
      fault?.form === 'keep' ? { typed: draft, fault } : {},
    ),
  );
}
