/** `/client/servers/new`: deploys a server by the same operation that the API uses. */
import { randomUUID } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { Tenant } from '#operations/accounts/index.ts';
import type { Image, Location, Plan } from '#operations/catalog/index.ts';
import type { Features } from '#operations/features.ts';
import type { CreateServerInput, ServerForecast } from '#operations/ordering/index.ts';
import type { FieldFault } from '#operations/servers/index.ts';
import type { SshKey } from '#operations/ssh-keys/index.ts';
import type { Network } from '#operations/views/network-store.ts';
import type { Server } from '#operations/views/server-store.ts';
import type { Snapshot } from '#operations/views/snapshot-store.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  type Column,
  type Content,
  cellColumn,
  code,
  codeBlock,
  type Definition,
  definitionList,
  estimate,
  field,
  fieldGroup,
  form,
  formatCount,
  formatMoney,
  formatMoneyAbout,
  type Html,
  hiddenField,
  html,
  link,
  otherSubmit,
  pageHeader,
  prose,
  section,
  sendPage,
  shownOnce,
  type Tone,
  table,
  withQuery,
} from '#service-kit/pages/index.ts';
import { figureColumn } from '#service-kit/web/index.ts';
import { sshKeysPath } from '../developer/ssh-keys.routes.ts';
import { portalFrame, workspaceField } from '../frame.ts';
import type { Visitor } from '../guard.ts';
import { networksPath, sentence } from '../networks/network-frame.ts';

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
      shownOnce('Root password', options.rootPassword),
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

/** What the form held, or begins with. */
interface DeployChoice {
  tenant?: string | undefined;
  plan?: string | undefined;
  image?: string | undefined;
  /** In place of image and location. */
  snapshot?: string | undefined;
  location?: string | undefined;
  name?: string | undefined;
  ssh_key?: string | undefined;
  /** Of keys that the workspace keeps. */
  ssh_key_id?: string | string[] | undefined;
  network?: string | undefined;
  network_ip?: string | undefined;
  private_only?: string | undefined;
}

const deployPath = '/client/servers/new';

/** The form with this network chosen already. */
export function deployIntoPath(network: Network): string {
  return withQuery(deployPath, {
    network: String(network.id),
    tenant: String(network.tenantId),
    location: network.locationSlug,
  });
}

/** The form with this snapshot chosen already. */
export const deployFromPath = ({ id, tenantId }: Snapshot): string =>
  withQuery(deployPath, { snapshot: String(id), tenant: String(tenantId) });

interface DeployPageOptions {
  visitor: Visitor;
  plans: readonly Plan[];
  images: readonly Image[];
  /** Complete ones of the chosen workspace. */
  snapshots: readonly Snapshot[];
  locations: readonly Location[];
  tenants: readonly Tenant[];
  /** Of the chosen workspace. */
  sshKeys: readonly SshKey[];
  /** Networks of these workspaces. */
  networks: readonly Network[];
  /** About the choice, or about what the form begins with; null where nothing can be ordered at all. */
  estimate: Estimate | null;
  /** Names this form, so that it orders once however often it is sent. */
  formId: string;
  choice: DeployChoice;
  error?: string;
  faults?: readonly FieldFault[];
}

function deployPage(options: DeployPageOptions): Html {
  const { visitor, images, locations, choice, estimate, error } = options;
  const faultOf = faultsIn(options);
  const workspace = workspaceField(options.tenants, choice.tenant);
  const select = (
    name: 'image' | 'location',
    label: string,
    all: readonly { slug: string; label: string }[],
  ) =>
    field({
      kind: 'select',
      name,
      label,
      required: true,
      value: choice[name] ?? all[0]?.slug,
      options: all.map((each) => ({ value: each.slug, label: each.label })),
      error: faultOf(name),
    });
  return portalFrame({ visitor, title: 'Deploy a server', current: 'servers', breadcrumb, isNarrow: true }, [
    pageHeader({ title: 'Deploy a server', state: deployState(estimate) }),
    form(
      {
        action: deployPath,
        csrfToken: visitor.csrfToken,
        submit: 'Deploy server',
        cancel: [
          otherSubmit({ action: `${deployPath}/check`, label: 'Check the price' }),
          link('/client/', 'Cancel', { kind: 'button' }),
        ],
        error,
      },
      [
        hiddenField('form_id', options.formId),
        workspace && field(workspace),
        planTable(options),
        faultOf('plan') !== undefined && html`<p class="field-error">■ ${faultOf('plan')}</p>`,
        select(
          'image',
          'Image',
          images.map((image) => ({ slug: image.slug, label: image.name })),
        ),
        snapshotField(options),
        select(
          'location',
          'Location',
          locations.map((location) => ({
            slug: location.slug,
            label: `${location.name}, ${location.country}`,
          })),
        ),
        field({
          name: 'name',
          label: 'Name',
          hint: 'For example web-1. Leave empty for server- and a number.',
          maxLength: 64,
          value: choice.name,
          error: faultOf('name'),
        }),
        savedKeysField(options),
        field({
          kind: 'textarea',
          name: 'ssh_key',
          label: options.sshKeys.length > 0 ? 'Other SSH public keys' : 'SSH public keys',
          hint: 'One per line, for example the content of ~/.ssh/id_ed25519.pub. Without a key, sign in with the root password.',
          isCode: true,
          rows: 2,
          value: choice.ssh_key,
          error: faultOf('ssh_keys'),
        }),
        networkFields(options),
        estimateBox(estimate, `${deployPath}/check`),
      ],
    ),
  ]);
}

type Faults = (path: string) => string | undefined;

/** The operation's refusals, by the field of the form that they are about. */
function faultsIn({ faults }: DeployPageOptions): Faults {
  return (path) => faults?.find((fault) => fault.path === path || fault.path.startsWith(`${path}.`))?.message;
}

/** A snapshot to make the disk from. */
function snapshotField(options: DeployPageOptions): Content {
  const { snapshots, choice } = options;
  if (snapshots.length === 0 && choice.snapshot === undefined) return '';
  return field({
    kind: 'select',
    name: 'snapshot',
    label: 'Snapshot',
    hint: 'In place of the image. The server is made in the location of the snapshot.',
    value: choice.snapshot ?? '',
    options: [
      { value: '', label: 'None' },
      ...snapshots.map(({ id, name, serverName, diskGb }) => ({
        value: String(id),
        label: `${name} of ${serverName}, ${diskGb} GB`,
      })),
    ],
    error: faultsIn(options)('snapshot'),
  });
}

/** The keys that the workspace keeps, to choose from. */
function savedKeysField({ sshKeys, choice }: DeployPageOptions): Content {
  if (sshKeys.length === 0) return '';
  const chosen = [choice.ssh_key_id ?? []].flat();
  return fieldGroup(
    { legend: 'SSH keys', hint: link(sshKeysPath, 'Manage SSH keys') },
    sshKeys.map(({ id, name, fingerprint }) =>
      field({
        kind: 'checkbox',
        id: `ssh-key-${id}`,
        name: 'ssh_key_id',
        label: name,
        hint: code(fingerprint),
        value: String(id),
        checked: chosen.includes(String(id)),
      }),
    ),
  );
}

/** Joining a network from the first boot on, and doing without a public address, for which there must be one. */
function networkFields(options: DeployPageOptions): Content {
  const { networks, choice } = options;
  const faultOf = faultsIn(options);
  if (networks.length === 0)
    return section(
      {
        title: 'Private network',
        description: [
          'There is none to join yet. A server can also join one later. ',
          link(networksPath, 'Create a network'),
        ],
      },
      '',
    );
  return section({ title: 'Private network', description: 'A server can also join one later.' }, [
    field({
      kind: 'select',
      name: 'network',
      label: 'Network',
      value: choice.network ?? '',
      options: [
        { value: '', label: 'None' },
        ...networks.map((network) => ({ value: String(network.id), label: networkLabel(network, options) })),
      ],
      error: faultOf('network_id'),
    }),
    field({
      name: 'network_ip',
      label: 'Private address',
      hint: 'Leave empty for the next free address.',
      isCode: true,
      maxLength: 15,
      value: choice.network_ip,
      error: faultOf('network_ip'),
    }),
    field({
      kind: 'checkbox',
      name: 'private_only',
      label: 'No public address',
      hint: 'The server has no internet access. It is reachable through its private network only.',
      checked: choice.private_only !== undefined,
      error: faultOf('public_ip'),
    }),
  ]);
}

/** With its workspace and location, where there is more than one to choose from. */
function networkLabel(network: Network, { tenants, locations }: DeployPageOptions): string {
  const tenant = tenants.length > 1 && tenants.find((one) => one.id === network.tenantId)?.name;
  const place = locations.length > 1 && network.locationName;
  const where = [tenant, place].filter((part) => part).join(', ');
  return `${network.name} (${network.cidr})${where === '' ? '' : `, ${where}`}`;
}

const portColumn: Column<Plan> = {
  key: 'port',
  header: 'Port',
  unit: 'Mbit/s',
  kind: 'figure',
  cell: (plan) => (plan.portMbit === null ? 'not limited' : formatCount(plan.portMbit)),
};

/** The plans with their prices, one of them chosen. */
function planTable({ plans, choice }: DeployPageOptions): Html {
  return table<Plan>({
    caption: 'Plans',
    card: { line: ['vcpus', 'memory', 'disk', 'port'] },
    refreshSeconds: 0,
    columns: [
      cellColumn(
        'name',
        'Plan',
        (plan) =>
          html`<label class="choice"><input type="radio" name="plan" value="${plan.slug}" required${
            plan.slug === choice.plan ? html` checked` : ''
          }> ${plan.name}</label>`,
      ),
      { key: 'vcpus', header: 'vCPU', kind: 'figure', cell: (plan) => plan.vcpus },
      { key: 'memory', header: 'Memory', unit: 'GiB', kind: 'figure', cell: (plan) => plan.memoryMb / 1024 },
      { key: 'disk', header: 'Disk', unit: 'GB', kind: 'figure', cell: (plan) => plan.diskGb },
      ...(plans.some(({ portMbit }) => portMbit !== null) ? [portColumn] : []),
      figureColumn('hour', 'Per hour', (plan: Plan) => plan.hourlyQuanta, formatMoney),
      figureColumn('month', 'Monthly cap', (plan: Plan) => plan.monthlyCapQuanta, formatMoney),
    ],
    rows: plans,
    empty: { title: 'No plans available', text: 'You cannot deploy a server right now.' },
  });
}

/** The forecast of one choice, by the order's own rules. */
interface Estimate {
  planName: string;
  hourlyQuanta: number;
  monthlyCapQuanta: number;
  /** Null where the choice can't be an order. */
  forecast: ServerForecast | null;
  /** Why it can't. */
  faults: readonly string[];
}

const refusals: Record<string, string> = {
  credit_required: 'Another server needs credit above zero or a saved card. Add one of them under Billing.',
  hourly_not_eligible:
    'Your workspace is not eligible for hourly billing yet. Add credit or a card under Billing.',
  no_billing_profile: 'Your workspace has no billing profile. Add one under Settings.',
  account_suspended: 'Your workspace is suspended. Add credit under Billing.',
  account_closed: 'Your workspace is closed.',
  deploy_rate: 'Your workspace has reached its limit of deployments per hour. Try again later.',
};

function orderRefusal(reason: string, planName: string): string {
  if (reason === 'capacity_unavailable')
    return `There is no room for another ${planName} right now. Choose another plan or location, or try again later.`;
  return refusals[reason] ?? 'An order would be refused right now.';
}

/** Whether an order would go through, said before the form is filled in, in the words of its refusal. */
function deployState(choice: Estimate | null): { tone: Tone; text: string } {
  if (choice === null) return { tone: 'warn', text: 'Nothing can be ordered right now.' };
  const { planName, forecast } = choice;
  if (forecast === null) return { tone: 'bad', text: 'Nothing is ordered yet. Correct the marked fields.' };
  if (forecast.reason !== null) return { tone: 'warn', text: orderRefusal(forecast.reason, planName) };
  if ((forecast.dueQuanta ?? 0) > 0)
    return {
      tone: 'info',
      text: 'We charge your default card for one month of the plan. The amount becomes credit, and hours are charged to the credit.',
    };
  const credit = forecast.balanceQuanta === null ? '' : ` of ${formatMoneyAbout(forecast.balanceQuanta)}`;
  return { tone: 'good', text: `Nothing is due now. Hours are charged to your credit${credit}.` };
}

/** What the choice comes to, above the form's buttons. */
function estimateBox(choice: Estimate | null, checkPath: string): Html {
  return estimate({ id: 'estimate', url: checkPath }, choice !== null && linesOf(choice));
}

function linesOf(choice: Estimate): Content {
  const { planName, hourlyQuanta, monthlyCapQuanta, forecast, faults } = choice;
  return [
    html`<p><strong>${planName}</strong> ${formatMoney(hourlyQuanta)} an hour, at most ${formatMoney(monthlyCapQuanta)} a month</p>`,
    forecast?.reason === null && html`<p class="hint">${dueOf(forecast)}</p>`,
    forecast !== null &&
      forecast.reason !== null &&
      html`<p class="field-error">■ ${orderRefusal(forecast.reason, planName)}</p>`,
    faults.map((fault) => html`<p class="field-error">■ ${prose(fault)}</p>`),
  ];
}

function dueOf({ dueQuanta, afterFirstDayQuanta }: ServerForecast): string {
  const left =
    afterFirstDayQuanta === null
      ? ''
      : ` Credit after its first day: ${formatMoneyAbout(afterFirstDayQuanta)}.`;
  if (dueQuanta === null || dueQuanta === 0) return `Due now: nothing.${left}`;
  return `Due now: ${formatMoney(dueQuanta)} by your saved card.${left}`;
}
