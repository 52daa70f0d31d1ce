import type { Tenant } from '#operations/accounts/index.ts';
import type { Image, Location, Plan } from '#operations/catalog/index.ts';
import type { ServerForecast } from '#operations/ordering/index.ts';
import type { FieldFault } from '#operations/servers/index.ts';
import type { SshKey } from '#operations/ssh-keys/index.ts';
import type { Network } from '#operations/views/network-store.ts';
import type { Snapshot } from '#operations/views/snapshot-store.ts';
import {
  type Column,
  type Content,
  cellColumn,
  code,
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
  type Tone,
  table,
  withQuery,
} from '#service-kit/pages/index.ts';
import { figureColumn } from '#service-kit/web/index.ts';
import { sshKeysPath } from '../developer/ssh-keys.routes.ts';
import { portalFrame, workspaceField } from '../frame.ts';
import type { Visitor } from '../guard.ts';
import { networksPath } from '../networks/network-frame.ts';

/** What the form held, or begins with. */
export interface DeployChoice {
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

const breadcrumb = [{ label: 'Servers', href: '/client/' }, { label: 'Deploy' }];

export function deployPage(options: DeployPageOptions): Html {
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
export interface Estimate {
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

function refusalOf(reason: string, planName: string): string {
  if (reason === 'capacity_unavailable')
    return `There is no room for another ${planName} right now. Choose another plan or location, or try again later.`;
  return refusals[reason] ?? 'An order would be refused right now.';
}

/** Whether an order would go through, said before the form is filled in, in the words of its refusal. */
function deployState(choice: Estimate | null): { tone: Tone; text: string } {
  if (choice === null) return { tone: 'warn', text: 'Nothing can be ordered right now.' };
  const { planName, forecast } = choice;
  if (forecast === null) return { tone: 'bad', text: 'Nothing is ordered yet. Correct the marked fields.' };
  if (forecast.reason !== null) return { tone: 'warn', text: refusalOf(forecast.reason, planName) };
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
      html`<p class="field-error">■ ${refusalOf(forecast.reason, planName)}</p>`,
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
