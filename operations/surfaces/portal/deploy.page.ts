import type { Tenant } from '#operations/accounts/index.ts';
import type { Image, Location, Plan } from '#operations/catalog/index.ts';
import type { FieldFault, Server } from '#operations/servers/index.ts';
import {
  codeBlock,
  definitionList,
  field,
  form,
  formatMoney,
  type Html,
  link,
  notice,
  pageHeader,
  section,
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
}

export interface DeployPageOptions {
  visitor: Visitor;
  plans: readonly Plan[];
  images: readonly Image[];
  locations: readonly Location[];
  tenants: readonly Tenant[];
  choice?: DeployChoice;
  error?: string;
  faults?: readonly FieldFault[];
}

const breadcrumb = [{ label: 'Servers', href: '/client/' }, { label: 'Deploy' }];

export function deployPage(options: DeployPageOptions): Html {
  const { visitor, plans, images, locations, tenants, choice, error } = options;
  const faultOf = (path: string) => options.faults?.find((fault) => fault.path === path)?.message;
  const select = (
    name: 'plan' | 'image' | 'location',
    label: string,
    all: { slug: string; label: string }[],
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
    pageHeader({
      title: 'Deploy a server',
      state: { tone: 'neutral', text: 'Charged by the hour, out of your credit.' },
    }),
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
        select(
          'plan',
          'Plan',
          plans.map((plan) => ({ slug: plan.slug, label: describePlan(plan) })),
        ),
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
      ],
    ),
  ]);
}

function describePlan(plan: Plan): string {
  const size = `${plan.vcpus} vCPU, ${plan.memoryMb / 1024} GiB, ${plan.diskGb} GB`;
  return `${plan.name}: ${size}, ${formatMoney(plan.hourlyQuanta)} an hour, at most ${formatMoney(plan.monthlyCapQuanta)} a month`;
}

/** The answer to a deployment: the only page that ever shows the password. */
export function deployedPage(options: { visitor: Visitor; server: Server; rootPassword: string }): Html {
  const { visitor, server } = options;
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
      section(
        { title: 'Facts' },
        definitionList([
          { term: 'Plan', value: server.planName },
          { term: 'Image', value: server.imageName },
          { term: 'Location', value: server.locationName },
        ]),
      ),
    ],
  );
}
