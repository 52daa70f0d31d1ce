import type { Tenant } from '#operations/accounts/index.ts';
import type { Image, Location, Plan } from '#operations/catalog/index.ts';
import type { FieldFault, Server, ServerForecast } from '#operations/servers/index.ts';
import {
  codeBlock,
  definitionList,
  field,
  form,
  formatMoney,
  type Html,
  html,
  link,
  notice,
  pageHeader,
  section,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';
import { portalFrame } from './frame.ts';
import type { Visitor } from './guard.ts';

/** What a refused form held. */
export interface DeployChoice {
  tenant?: string | undefined;
  plan: string;
  image: string;
  location: string;
  name: string;
  ssh_key?: string | undefined;
}

export interface DeployPageOptions {
  visitor: Visitor;
  plans: readonly Plan[];
  images: readonly Image[];
  locations: readonly Location[];
  tenants: readonly Tenant[];
  /** What the cheapest order would come to now; null where nothing can be ordered at all. */
  forecast: ServerForecast | null;
  choice?: DeployChoice;
  error?: string;
  faults?: readonly FieldFault[];
}

const breadcrumb = [{ label: 'Servers', href: '/client/' }, { label: 'Deploy' }];

export function deployPage(options: DeployPageOptions): Html {
  const { visitor, images, locations, tenants, choice, error } = options;
  const faultOf = (path: string) =>
    options.faults?.find((fault) => fault.path === path || fault.path.startsWith(`${path}.`))?.message;
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
      value: choice?.[name] ?? all[0]?.slug,
      options: all.map((each) => ({ value: each.slug, label: each.label })),
      error: faultOf(name),
    });
  return portalFrame({ visitor, title: 'Deploy a server', current: 'servers', breadcrumb, isNarrow: true }, [
    pageHeader({ title: 'Deploy a server', state: stateOf(options) }),
    form(
      {
        action: '/client/servers/new',
        csrfToken: visitor.csrfToken,
        submit: 'Deploy server',
        cancel: link('/client/', 'Cancel', { kind: 'button' }),
        error,
      },
      [
        tenants.length > 1 &&
          field({
            kind: 'select',
            name: 'tenant',
            label: 'Workspace',
            value: choice?.tenant ?? String(tenants[0]!.id),
            options: tenants.map((tenant) => ({ value: String(tenant.id), label: tenant.name })),
          }),
        planTable(options),
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
          hint: 'Letters, digits and dashes, such as web-1.',
          maxLength: 63,
          value: choice?.name ?? '',
          error: faultOf('name'),
        }),
        field({
          kind: 'textarea',
          name: 'ssh_key',
          label: 'SSH public key',
          hint: 'Such as the content of ~/.ssh/id_ed25519.pub. Without one, the root password lets you in.',
          isCode: true,
          rows: 2,
          value: choice?.ssh_key,
          error: faultOf('ssh_keys'),
        }),
      ],
    ),
  ]);
}

/** The plans with their prices, one of them chosen. */
function planTable({ plans, choice }: DeployPageOptions): Html {
  const chosen = plans.some((plan) => plan.slug === choice?.plan) ? choice?.plan : plans[0]?.slug;
  return table<Plan>({
    caption: 'Plan',
    captionVisible: true,
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
      { key: 'hour', header: 'An hour', kind: 'figure', cell: (plan) => formatMoney(plan.hourlyQuanta) },
      {
        key: 'month',
        header: 'A month at most',
        kind: 'figure',
        cell: (plan) => formatMoney(plan.monthlyCapQuanta),
      },
    ],
    rows: plans,
    empty: { title: 'No plans are offered', text: 'There is nothing to deploy right now.' },
  });
}

/** Whether an order would go through, said before the form is filled in, in the words of its refusal. */
function stateOf({ forecast }: DeployPageOptions): { tone: Tone; text: string } {
  if (forecast === null) return { tone: 'warn', text: 'Nothing can be ordered right now.' };
  const refusals: Record<string, string> = {
    credit_required: 'Another server needs credit above zero or a saved card. Add one of them under Billing.',
    hourly_not_eligible:
      'Your account is not eligible for hourly billing yet. Add credit or a card under Billing.',
    no_billing_profile: 'Your account has no billing profile. Add one under Billing.',
    account_suspended: 'Your account is suspended. Settle its balance under Billing.',
    account_closed: 'Your account is closed.',
    deploy_rate: 'Your account has deployed as many servers as it may within an hour. Try again later.',
    capacity_unavailable: 'There is no room for another server right now. Try again later.',
  };
  if (forecast.reason !== null)
    return { tone: 'warn', text: refusals[forecast.reason] ?? 'An order would be refused right now.' };
  if ((forecast.dueQuanta ?? 0) > 0)
    return {
      tone: 'info',
      text: 'Your saved card is charged one month of the plan first; that becomes credit, and hours are taken from it.',
    };
  const credit = formatMoney(forecast.balanceQuanta);
  return { tone: 'good', text: `Nothing is due now. Hours are taken from your credit of ${credit}.` };
}

/** The answer to a deployment: the only page that ever shows the password. */
export function deployedPage(options: { visitor: Visitor; server: Server; rootPassword: string }): Html {
  const { visitor, server } = options;
  const address = server.addresses.find((each) => each.isPrimary)?.address;
  return portalFrame(
    { visitor, title: `${server.name} is on its way`, current: 'servers', breadcrumb, isNarrow: true },
    [
      pageHeader({
        title: `${server.name} is on its way`,
        state: { tone: 'info', text: 'It is being provisioned, which takes a moment.' },
        actions: link(`/client/servers/${server.id}`, 'Go to the server', { kind: 'primary' }),
      }),
      notice({
        tone: 'warn',
        title: 'Copy the root password now',
        text: 'It is shown on this page only.',
      }),
      codeBlock({ code: options.rootPassword, label: 'Root password' }),
      address !== undefined && codeBlock({ code: `ssh root@${address}`, label: 'As soon as it runs' }),
      section(
        { title: 'Facts' },
        definitionList([
          { term: 'Plan', value: server.planName },
          { term: 'Image', value: server.imageName },
          { term: 'Location', value: server.locationName },
          {
            term: 'Price',
            value: `${formatMoney(server.hourlyQuanta)} an hour, at most ${formatMoney(server.monthlyCapQuanta)} a month`,
          },
        ]),
      ),
    ],
  );
}
