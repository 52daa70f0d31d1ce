import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Features } from '#operations/features.ts';
import type { Network } from '#operations/views/network-store.ts';
import type { Server } from '#operations/views/server-store.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  actionsColumn,
  askButton,
  type Content,
  cellColumn,
  code,
  codeColumn,
  formatCount,
  type Html,
  html,
  inputForm,
  link,
  moment,
  pageHeader,
  refreshing,
  section,
  sendPage,
  type Tone,
  table,
  toastOf,
} from '#service-kit/pages/index.ts';
import { Done, Id, type Visitor } from '../guard.ts';
import { type FormFault, faultOf, networksPath, nicBadge } from '../networks/network-frame.ts';
import { findServerOf, serverFrame } from './server-frame.ts';

const AttachForm = Type.Object({
  network: Type.String(),
  ip: Type.Optional(Type.String({ maxLength: 300 })),
});
const DetachForm = Type.Object({ network: Type.String() });
const listMax = 500;

const outcomes: Record<string, string> = {
  attach: 'The server is being attached.',
  detach: 'The server is being detached.',
};

export function registerServerNetworks(app: App, deps: Features): void {
  app.get('/servers/:id/networks', { schema: { params: Id, querystring: Done } }, async (request, reply) =>
    show(deps, request, reply, 200, { toast: toastOf(outcomes, request.query.done) }),
  );

  app.post(
    '/servers/:id/networks/attach',
    { schema: { params: Id, body: AttachForm } },
    async (request, reply) => {
      const { visitor, server } = await findServerOf(deps.servers, request);
      const { network, ip = '' } = request.body;
      const fault = await faultOf(() =>
        deps.networks.attachServer(visitor.actor, server.tenantId, {
          serverId: server.id,
          networkId: Number(network),
          ip: ip.trim() === '' ? undefined : ip.trim(),
        }),
      );
      if (fault !== null) return show(deps, request, reply, 422, { refused: { fault, network, ip } });
      return reply.redirect(`/client/servers/${server.id}/networks?done=attach`, 303);
    },
  );

  app.post(
    '/servers/:id/networks/detach',
    { schema: { params: Id, body: DetachForm } },
    async (request, reply) => {
      const { visitor, server } = await findServerOf(deps.servers, request);
      const input = { serverId: server.id, networkId: Number(request.body.network) };
      const fault = await faultOf(() => deps.networks.detachServer(visitor.actor, server.tenantId, input));
      if (fault !== null)
        return show(deps, request, reply, 409, { toast: { tone: 'bad', text: fault.message } });
      return reply.redirect(`/client/servers/${server.id}/networks?done=detach`, 303);
    },
  );
}

async function show(
  deps: Features,
  request: FastifyRequest<{ Params: { id: string } }>,
  reply: FastifyReply,
  status: number,
  state: Pick<ServerNetworksOptions, 'toast' | 'refused'>,
): Promise<FastifyReply> {
  const { visitor, server } = await findServerOf(deps.servers, request);
  const networks = await deps.networks.listNetworks(visitor.actor, server.tenantId, { limit: listMax });
  const joined = new Set(server.privateNetworks.map((nic) => nic.networkId));
  const candidates = networks.filter(
    (network) => network.locationId === server.locationId && !joined.has(network.id),
  );
  const nowMs = deps.clock.nowMs();
  return sendPage(reply, serverNetworksPage({ visitor, server, candidates, nowMs, ...state }), status);
}

interface ServerNetworksOptions {
  visitor: Visitor;
  server: Server;
  /** Networks that it could join. */
  candidates: readonly Network[];
  nowMs: number;
  toast?: { tone: Tone; text: Content } | undefined;
  refused?: { fault: FormFault; network: string; ip: string } | undefined;
}

/** `/client/servers/{id}/networks`: the server's network interfaces, public and private. */
function serverNetworksPage(options: ServerNetworksOptions): Html {
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
  return table<Server['privateNetworks'][number]>({
    caption: 'Private networks of this server',
    card: { line: ['state', 'ip'] },
    columns: [
      cellColumn('name', 'Network', (nic) => link(`${networksPath}${nic.networkId}`, nic.name)),
      codeColumn('ip', 'Address', (nic) => code(nic.ip, true)),
      codeColumn('cidr', 'Block', (nic) => code(nic.cidr)),
      codeColumn('mac', 'MAC', (nic) => code(nic.macAddress)),
      cellColumn('state', 'State', (nic) => [
        nicBadge(nic.state),
        nic.requiresReboot && ' after the next reboot',
      ]),
      cellColumn('since', 'Since', (nic) =>
        nic.attachedAt === null ? 'not yet' : moment(Date.parse(nic.attachedAt), nowMs),
      ),
      actionsColumn('detach', (nic) => {
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
      }),
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
    inputForm(
      {
        action: `/client/servers/${server.id}/networks/attach`,
        csrfToken: visitor.csrfToken,
        submit: 'Attach',
      },
      [
        {
          kind: 'select',
          name: 'network',
          label: 'Network',
          required: true,
          options: candidates.map((network) => ({
            value: String(network.id),
            label: `${network.name} (${network.cidr})`,
          })),
        },
        {
          name: 'ip',
          label: 'Address',
          hint: 'Leave empty for the next free address.',
          isCode: true,
          maxLength: 15,
        },
      ],
      refused,
    ),
  );
}

function addressesTable(server: Server): Html {
  return table<Server['addresses'][number]>({
    caption: 'Public addresses of this server',
    card: { line: ['prefix', 'gateway'] },
    columns: [
      codeColumn('address', 'Address', (given) => code(given.address, true)),
      { key: 'prefix', header: 'Prefix', kind: 'figure', cell: (given) => `/${given.prefixLength}` },
      codeColumn('gateway', 'Gateway', (given) => code(given.gateway)),
      cellColumn('name', 'Reverse name', (given) => given.reverseDns ?? 'none'),
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
