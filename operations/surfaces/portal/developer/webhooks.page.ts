/** The webhooks of the organizations that one owns: the list, and the form for another endpoint. */
import { webhookEvents } from '#contracts/customer-api/index.ts';
import type { Membership, Tenant } from '#operations/accounts/index.ts';
import type { Endpoint } from '#operations/webhooks/index.ts';
import {
  age,
  badge,
  banner,
  type Content,
  codeBlock,
  field,
  fieldGroup,
  form,
  type Html,
  hiddenField,
  link,
  pageHeader,
  section,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';
import { portalFrame } from '../frame.ts';
import type { Visitor } from '../guard.ts';
import { developerTabs } from './usage.page.ts';

/** What a refused form held. */
export interface EndpointForm {
  url: string;
  description: string;
  eventTypes: readonly string[];
}

export interface WebhooksPageOptions {
  visitor: Visitor;
  /** Those whose owner the visitor is. */
  organizations: readonly Membership[];
  tenants: readonly Tenant[];
  endpoints: readonly Endpoint[];
  nowMs: number;
  error?: string;
  form?: EndpointForm;
}

export function webhooksPage(options: WebhooksPageOptions): Html {
  const { visitor, organizations, endpoints } = options;
  return portalFrame(
    {
      visitor,
      title: 'Webhooks',
      current: 'developer',
      breadcrumb: [{ label: 'API keys', href: '/client/developer/' }, { label: 'Webhooks' }],
    },
    [
      pageHeader({
        title: 'Webhooks',
        state: stateOf(endpoints),
        actions: link('/client/developer/docs/#webhooks', 'Verify signatures', { kind: 'button' }),
      }),
      developerTabs('webhooks'),
      organizations.length === 0
        ? banner({
            tone: 'info',
            title: 'Only the owner of the organization sets up webhooks',
            text: 'Ask the owner to add an endpoint.',
          })
        : [endpointTable(options), createSection(options)],
    ],
  );
}

function stateOf(endpoints: readonly Endpoint[]): { tone: Tone; text: string } {
  if (endpoints.length === 0) return { tone: 'neutral', text: 'No endpoints. No events are delivered.' };
  const disabled = endpoints.filter((one) => one.disabledAt !== null).length;
  const failing = endpoints.filter((one) => one.disabledAt === null && one.failingSince !== null).length;
  if (failing > 0)
    return { tone: 'bad', text: `Deliveries are failing for ${failing} of ${endpoints.length} endpoints.` };
  if (disabled > 0)
    return { tone: 'warn', text: `${disabled} of ${endpoints.length} endpoints are disabled.` };
  const count = endpoints.length === 1 ? 'One endpoint is' : `${endpoints.length} endpoints are`;
  return { tone: 'good', text: `${count} delivering, none failing.` };
}

/** One word about an endpoint. */
export function endpointBadge(endpoint: Endpoint): Html {
  if (endpoint.disabledReason === 'gone') return badge('warn', 'disabled: it answered 410');
  if (endpoint.disabledAt !== null) return badge('neutral', 'disabled');
  return endpoint.failingSince === null ? badge('good', 'active') : badge('bad', 'failing');
}

function endpointTable({ endpoints, tenants, nowMs }: WebhooksPageOptions): Html {
  const nameOf = (tenantId: number | null) =>
    tenantId === null ? 'all' : (tenants.find((one) => one.id === tenantId)?.name ?? 'unknown');
  return table<Endpoint>({
    caption: 'Endpoints',
    card: { line: ['state', 'created'] },
    columns: [
      {
        key: 'url',
        header: 'Address',
        kind: 'code',
        cell: (row) => link(`/client/developer/webhooks/${row.id}`, row.url),
      },
      { key: 'state', header: 'State', cell: endpointBadge },
      { key: 'events', header: 'Events', kind: 'figure', cell: (row) => String(row.eventTypes.length) },
      { key: 'workspace', header: 'Workspace', cell: (row) => nameOf(row.tenantId) },
      { key: 'what', header: 'Description', cell: (row) => row.description },
      { key: 'created', header: 'Created', cell: (row) => age(row.createdAt.getTime(), nowMs) },
    ],
    rows: endpoints,
    empty: {
      title: 'No endpoints yet',
      text: 'Enter your endpoint URL. We send it an event when a server is ready, a network is synced or a key is created.',
    },
  });
}

function createSection(options: WebhooksPageOptions): Html {
  const { visitor, organizations, tenants, error } = options;
  const owned = tenants.filter((tenant) =>
    organizations.some((one) => one.organizationId === tenant.organizationId),
  );
  // One field for both: an organization stands for all of its workspaces.
  const scopes = organizations.flatMap((one) => [
    { value: `organization:${one.organizationId}`, label: `All of ${one.organizationName}` },
    ...owned
      .filter((tenant) => tenant.organizationId === one.organizationId)
      .map((tenant) => ({ value: `tenant:${tenant.id}`, label: tenant.name })),
  ]);
  return section(
    { title: 'Add an endpoint', id: 'create' },
    form(
      { action: '/client/developer/webhooks/', csrfToken: visitor.csrfToken, submit: 'Add endpoint', error },
      [
        scopes.length === 2
          ? hiddenField('scope', scopes[0]!.value)
          : field({
              kind: 'select',
              name: 'scope',
              label: 'Workspaces',
              value: scopes[0]!.value,
              options: scopes,
            }),
        endpointFields(options.form),
      ],
    ),
  );
}

/** The fields of a new endpoint and of one that is changed. */
export function endpointFields(given: EndpointForm | undefined): Content {
  const chosen = given?.eventTypes ?? webhookEvents.map((event) => event.type);
  return [
    field({
      kind: 'url',
      name: 'url',
      label: 'Address',
      hint: 'HTTPS URL that receives our POST requests.',
      required: true,
      maxLength: 500,
      value: given?.url ?? '',
      placeholder: 'https://example.com/webhooks',
      autocomplete: 'off',
      isCode: true,
    }),
    field({ name: 'description', label: 'Description', maxLength: 200, value: given?.description ?? '' }),
    fieldGroup(
      { legend: 'Events' },
      webhookEvents.map((event) =>
        field({
          kind: 'checkbox',
          id: `event-${event.type.replaceAll(/[._]/g, '-')}`,
          name: 'events',
          label: event.type,
          hint: event.summary,
          value: event.type,
          checked: (chosen as readonly string[]).includes(event.type),
        }),
      ),
    ),
  ];
}

/** The secret, in the answer to the request that made it and on no other page. */
export function newSecret(secret: string): Content {
  return [
    banner({
      tone: 'warn',
      title: 'Copy the secret now',
      text: 'It is shown on this page only. Your receiver needs it to verify the signature of deliveries.',
    }),
    codeBlock({ code: secret, label: 'Secret' }),
  ];
}
