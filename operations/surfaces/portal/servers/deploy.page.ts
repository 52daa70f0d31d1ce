import type { Tenant } from '#operations/accounts/index.ts';
import type { Image, Location, Plan } from '#operations/catalog/index.ts';
import type { FieldFault } from '#operations/servers/index.ts';
import type { SshKey } from '#operations/ssh-keys/index.ts';
import type { Network } from '#operations/views/index.ts';
import {
  type Content,
  code,
  field,
  fieldGroup,
  form,
  formatMoney,
  type Html,
  hiddenField,
  html,
  link,
  otherSubmit,
  pageHeader,
  section,
  table,
  withQuery,
} from '#service-kit/pages/index.ts';
import { sshKeysPath } from '../developer/ssh-keys.routes.ts';
import { portalFrame } from '../frame.ts';
import type { Visitor } from '../guard.ts';
import { networksPath } from '../networks/networks.page.ts';
import { deployState, type Estimate, estimateBox } from './deploy-estimate.ts';

/** What the form held, or begins with. */
export interface DeployChoice {
  tenant?: string | undefined;
  plan?: string | undefined;
  image?: string | undefined;
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

export interface DeployPageOptions {
  visitor: Visitor;
  plans: readonly Plan[];
  images: readonly Image[];
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
        workspaceField(options),
        planTable(options),
        faultOf('plan') !== undefined && html`<p class="field-error">■ ${faultOf('plan')}</p>`,
        select(
          'image',
          'Image',
          images.map((image) => ({ slug: image.slug, label: image.name })),
        ),
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

function workspaceField({ tenants, choice }: DeployPageOptions): Content {
  if (tenants.length < 2) return '';
  return field({
    kind: 'select',
    name: 'tenant',
    label: 'Workspace',
    value: choice.tenant ?? String(tenants[0]!.id),
    options: tenants.map((tenant) => ({ value: String(tenant.id), label: tenant.name })),
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

/** The plans with their prices, one of them chosen. */
function planTable({ plans, choice }: DeployPageOptions): Html {
  const chosen = plans.some((plan) => plan.slug === choice.plan) ? choice.plan : plans[0]?.slug;
  return table<Plan>({
    caption: 'Plans',
    card: { line: ['vcpus', 'memory', 'disk'] },
    refreshSeconds: 0,
    columns: [
      {
        key: 'name',
        header: 'Plan',
        cell: (plan) =>
          html`<label class="choice"><input type="radio" name="plan" value="${plan.slug}" required${
            plan.slug === chosen ? html` checked` : ''
          }> ${plan.name}</label>`,
      },
      { key: 'vcpus', header: 'vCPU', kind: 'figure', cell: (plan) => plan.vcpus },
      { key: 'memory', header: 'Memory', unit: 'GiB', kind: 'figure', cell: (plan) => plan.memoryMb / 1024 },
      { key: 'disk', header: 'Disk', unit: 'GB', kind: 'figure', cell: (plan) => plan.diskGb },
      { key: 'hour', header: 'Per hour', kind: 'figure', cell: (plan) => formatMoney(plan.hourlyQuanta) },
      {
        key: 'month',
        header: 'Monthly cap',
        kind: 'figure',
        cell: (plan) => formatMoney(plan.monthlyCapQuanta),
      },
    ],
    rows: plans,
    empty: { title: 'No plans available', text: 'You cannot deploy a server right now.' },
  });
}
