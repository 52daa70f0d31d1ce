/** `/client/servers/new`: deploys a server by the same operation that the API uses. */
import { randomUUID } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { Features } from '#operations/features.ts';
import type { CreateServerInput } from '#operations/ordering/index.ts';
import type { FieldFault } from '#operations/servers/index.ts';
import type { Server } from '#operations/views/server-store.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  banner,
  code,
  codeBlock,
  type Definition,
  definitionList,
  formatMoney,
  type Html,
  link,
  pageHeader,
  section,
  sendPage,
} from '#service-kit/pages/index.ts';
import { portalFrame } from '../frame.ts';
import type { Visitor } from '../guard.ts';
import { networksPath, sentence } from '../networks/network-frame.ts';
import { type DeployChoice, deployPage, type Estimate } from './deploy.page.ts';

const Preset = Type.Object({
  snapshot: Type.Optional(Type.String()),
  plan: Type.Optional(Type.String()),
  network: Type.Optional(Type.String()),
  tenant: Type.Optional(Type.String()),
  location: Type.Optional(Type.String()),
});
const DeployForm = Type.Object({
  tenant: Type.Optional(Type.String()),
  plan: Type.Optional(Type.String()),
  image: Type.Optional(Type.String()),
  snapshot: Type.Optional(Type.String()),
  location: Type.Optional(Type.String()),
  name: Type.Optional(Type.String()),
  ssh_key: Type.Optional(Type.String()),
  ssh_key_id: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String(), { maxItems: 100 })])),
  network: Type.Optional(Type.String()),
  network_ip: Type.Optional(Type.String()),
  private_only: Type.Optional(Type.String()),
  form_id: Type.Optional(Type.String({ pattern: '^[0-9a-f-]{36}$' })),
});

const networksMax = 500;

const statuses: Record<string, number> = {
  'orders.repeated': 409,
  'orders.not_eligible': 402,
  'orders.payment_failed': 402,
  'orders.refused': 409,
  'orders.deploy_rate': 429,
  'servers.capacity': 409,
};

/** Refusals that are about one field but come as a sentence. */
const fieldOf: Record<string, string> = {
  'networks.not_found': 'network_id',
  'networks.limit': 'network_id',
  'networks.ip_in_use': 'network_ip',
};

/** Where the operation speaks of its input's fields, the form speaks of its own. */
const wordsOf: Record<string, string> = {
  'network_id required':
    'Choose the network through which the server is reached, or give it a public address.',
  'network_id networks.not_found': 'This workspace has no such network.',
  'network_ip required_with': 'Choose the network that this address is in, or leave it empty.',
};

export function registerDeploy(app: App, deps: Features): void {
  app.get('/servers/new', { schema: { querystring: Preset } }, async (request, reply) =>
    show(deps, request.visitor!, reply, 200, { choice: request.query }),
  );

  app.post('/servers/new', { schema: { body: DeployForm } }, async (request, reply) => {
    const visitor = request.visitor!;
    const choice = request.body;
    const order = orderOf(visitor, choice);
    if (order === null)
      return show(deps, visitor, reply, 422, { choice, error: 'Choose one of your workspaces.' });
    try {
      const checkout = { formId: choice.form_id ?? null };
      const made = await deps.ordering.createServer(visitor.actor, order, { checkout });
      const server = await deps.servers.findServer(visitor.actor, order.tenantId, made.serverId);
      // The password is in this answer alone, so there is no redirect.
      return sendPage(reply, deployedPage({ visitor, server: server!, rootPassword: made.rootPassword }));
    } catch (error) {
      const refused = refusalOf(error);
      return show(deps, visitor, reply, refused.status, { choice, ...refused });
    }
  });

  /** The same form with the price of what is chosen; nothing is ordered. */
  app.post('/servers/new/check', { schema: { body: DeployForm } }, async (request, reply) =>
    show(deps, request.visitor!, reply, 200, { choice: request.body }),
  );
}

/** The chosen workspace, or the first; null for one that the visitor does not reach. */
function tenantOf({ actor: { tenantIds } }: Visitor, { tenant }: DeployChoice): number | null {
  const tenantId = tenant ? Number(tenant) : tenantIds[0];
  return tenantId !== undefined && tenantIds.includes(tenantId) ? tenantId : null;
}

/** What the form asks for; null for a workspace that the visitor does not reach. */
function orderOf(visitor: Visitor, choice: DeployChoice): CreateServerInput | null {
  const tenantId = tenantOf(visitor, choice);
  if (tenantId === null) return null;
  const given = (text: string | undefined) => (text?.trim() ? text.trim() : undefined);
  return {
    tenantId,
    plan: choice.plan ?? '',
    // A snapshot stands in the place of both.
    ...(choice.snapshot
      ? { snapshotId: idOf(choice.snapshot) }
      : { image: choice.image ?? '', location: choice.location }),
    name: given(choice.name),
    sshKeys: [
      ...[choice.ssh_key_id ?? []].flat().map(idOf),
      ...(choice.ssh_key ?? '').split('\n').flatMap((line) => given(line) ?? []),
    ],
    networkId: choice.network ? idOf(choice.network) : undefined,
    networkIp: given(choice.network_ip),
    publicIp: choice.private_only === undefined,
  };
}

/** An id as a form sends it; what is none finds nothing. */
function idOf(text: string): number {
  return /^[1-9]\d{0,14}$/.test(text) ? Number(text) : 0;
}

interface Refusal {
  status: number;
  /** The form's; left out where fields say everything. */
  error?: string;
  faults: readonly FieldFault[];
}

/** What to show of a refusal; throws what is none. */
function refusalOf(error: unknown): Refusal {
  if (!(error instanceof CodedError) || !/^(servers|orders|networks)\./.test(error.code)) throw error;
  const field = fieldOf[error.code];
  const given = [...((error.details.fields ?? []) as FieldFault[])];
  if (field !== undefined) given.push({ path: field, code: error.code, message: error.message });
  const faults = given.map((fault) => ({
    ...fault,
    message: wordsOf[`${fault.path} ${fault.code}`] ?? sentence(fault.message),
  }));
  if (faults.length > 0) return { status: 422, faults };
  return { status: statuses[error.code] ?? 409, error: error.message, faults };
}

async function show(
  deps: Features,
  visitor: Visitor,
  reply: FastifyReply,
  status: number,
  state: { choice: DeployChoice; error?: string; faults?: readonly FieldFault[] },
): Promise<FastifyReply> {
  const { actor } = visitor;
  const tenantId = tenantOf(visitor, state.choice);
  const [plans, images, locations, tenants, networks, sshKeys, kept] = await Promise.all([
    deps.catalog.listPlans(),
    deps.catalog.listImages(),
    deps.catalog.listLocations(),
    deps.accounts.findTenants(actor.tenantIds),
    deps.networks.listNetworks(actor, null, { limit: networksMax }),
    tenantId === null ? [] : deps.sshKeys.listKeys(actor, tenantId),
    tenantId === null ? [] : deps.servers.listSnapshots(actor, tenantId, null),
  ]);
  const snapshots = kept.filter((one) => one.state === 'ready');
  const diskGb = snapshots.find(({ id }) => String(id) === state.choice.snapshot)?.diskGb ?? 0;
  const plan =
    plans.find((one) => one.slug === state.choice.plan) ??
    plans.find((one) => one.diskGb >= diskGb) ??
    plans[0];
  const choice = { ...state.choice, plan: plan?.slug };
  const order = orderOf(visitor, {
    ...choice,
    image: choice.image ?? images[0]?.slug,
    location: choice.location ?? locations[0]?.slug,
  });
  const isOffered = plan !== undefined && images.length > 0 && locations.length > 0;
  const checked = isOffered && order !== null ? await check(deps, visitor, order) : null;
  const faults = state.faults ?? checked?.faults ?? [];
  const estimate: Estimate | null =
    checked === null
      ? null
      : {
          planName: plan!.name,
          hourlyQuanta: plan!.hourlyQuanta,
          monthlyCapQuanta: plan!.monthlyCapQuanta,
          forecast: checked.forecast,
          faults: faults.map((fault) => fault.message),
        };
  const offered = { plans, images, snapshots, locations, tenants, networks, sshKeys };
  const page = { visitor, ...offered, estimate, formId: randomUUID(), ...state, choice, faults };
  return sendPage(reply, deployPage(page), status);
}

/** What the order would come to, by its own rules; else what is wrong with it. */
async function check(deps: Features, visitor: Visitor, order: CreateServerInput) {
  try {
    return { forecast: await deps.ordering.forecastServer(visitor.actor, order), faults: [] };
  } catch (error) {
    return { forecast: null, faults: refusalOf(error).faults };
  }
}

const breadcrumb = [{ label: 'Servers', href: '/client/' }, { label: 'Deploy' }];

/** The answer to a deployment: the only page that ever shows the password. */
function deployedPage(options: { visitor: Visitor; server: Server; rootPassword: string }): Html {
  const { visitor, server } = options;
  const publicAddress = server.addresses.find((each) => each.isPrimary)?.address;
  const address = publicAddress ?? server.privateNetworks[0]?.ip;
  const label = publicAddress === undefined ? 'As soon as it runs, from its network' : 'As soon as it runs';
  return portalFrame(
    { visitor, title: `${server.name} is ordered`, current: 'servers', breadcrumb, isNarrow: true },
    [
      pageHeader({
        title: `${server.name} is ordered`,
        state: { tone: 'info', text: 'It starts within a minute or two; its page shows when it runs.' },
        actions: link(`/client/servers/${server.id}`, 'Go to the server', { kind: 'primary' }),
      }),
      banner({
        tone: 'warn',
        title: 'Copy the root password now',
        text: 'It is shown on this page only.',
      }),
      codeBlock({ code: options.rootPassword, label: 'Root password' }),
      address !== undefined && codeBlock({ code: `ssh root@${address}`, label }),
      section({ title: 'Details' }, definitionList(factsOf(server))),
    ],
  );
}

function factsOf(server: Server): Definition[] {
  const [card] = server.privateNetworks;
  return [
    { term: 'Plan', value: server.planName },
    { term: 'Image', value: server.imageName },
    { term: 'Location', value: server.locationName },
    ...(server.hasPublicIp ? [] : [{ term: 'Public address', value: 'None' }]),
    ...(card
      ? [
          {
            term: 'Private network',
            value: [link(`${networksPath}${card.networkId}`, card.name), ', ', code(card.ip, true)],
          },
        ]
      : []),
    {
      term: 'Price',
      value: `${formatMoney(server.hourlyQuanta)} an hour, at most ${formatMoney(server.monthlyCapQuanta)} a month`,
    },
  ];
}
