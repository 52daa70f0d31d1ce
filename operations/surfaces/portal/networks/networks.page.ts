import type { Tenant } from '#operations/accounts/index.ts';
import type { Location } from '#operations/catalog/index.ts';
import type { Network } from '#operations/views/index.ts';
import {
  type Column,
  type Content,
  code,
  field,
  form,
  formatCount,
  type Html,
  link,
  pageHeader,
  refreshing,
  section,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';
import { portalFrame } from '../frame.ts';
import type { Visitor } from '../guard.ts';
import { type FormFault, syncBadge } from './network-frame.ts';

export interface NetworksPageOptions {
  visitor: Visitor;
  networks: readonly Network[];
  tenants: readonly Tenant[];
  locations: readonly Location[];
  /** Of one account. */
  networksMax: number;
  toast?: { tone: Tone; text: Content } | undefined;
  /** What was typed, and what was wrong with it. */
  draft?: { name: string; cidr: string; location: string; tenant: string } | undefined;
  fault?: FormFault | null;
}

export const networksPath = '/client/networks/';

/** `/client/networks/`: all private networks of all tenants that the person reaches, and how another one is made. */
export function networksPage(options: NetworksPageOptions): Html {
  const { visitor, networks } = options;
  return portalFrame(
    {
      visitor,
      title: 'Networks',
      current: 'networks',
      breadcrumb: [{ label: 'Networks' }],
      toast: options.toast,
    },
    [
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
    ],
  );
}

function columnsFor({ tenants }: NetworksPageOptions): Column<Network>[] {
  const names = new Map(tenants.map((tenant) => [tenant.id, tenant.name]));
  const columns: Column<Network>[] = [
    { key: 'name', header: 'Name', cell: (network) => link(`${networksPath}${network.id}`, network.name) },
    { key: 'cidr', header: 'Addresses', kind: 'code', cell: (network) => code(network.cidr) },
    {
      key: 'members',
      header: 'Servers',
      kind: 'figure',
      cell: (network) => formatCount(network.memberCount),
    },
    { key: 'sync', header: 'State', cell: syncBadge },
    { key: 'location', header: 'Location', cell: (network) => network.locationName },
    {
      key: 'description',
      header: 'Description',
      kind: 'prose',
      cell: (network) => network.description ?? '',
    },
  ];
  if (tenants.length > 1)
    columns.push({ key: 'tenant', header: 'Workspace', cell: (network) => names.get(network.tenantId) });
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
  const errorOf = (name: string) => (fault?.field === name ? fault.message : undefined);
  const isOfForm =
    fault !== undefined && fault !== null && !['name', 'cidr', 'location'].includes(fault.field ?? '');
  return section(
    {
      title: 'Create a network',
      id: 'create',
      description: `An account has at most ${formatCount(options.networksMax)}. Traffic on private networks is not counted.`,
    },
    form(
      {
        action: networksPath,
        csrfToken: visitor.csrfToken,
        submit: 'Create network',
        error: isOfForm ? fault.message : undefined,
      },
      [
        tenants.length > 1 &&
          field({
            kind: 'select',
            name: 'tenant',
            label: 'Workspace',
            required: true,
            value: draft?.tenant ?? String(tenants[0]!.id),
            options: tenants.map((tenant) => ({ value: String(tenant.id), label: tenant.name })),
          }),
        field({
          name: 'name',
          label: 'Name',
          required: true,
          maxLength: 64,
          value: draft?.name,
          error: errorOf('name'),
        }),
        locations.length > 1 &&
          field({
            kind: 'select',
            name: 'location',
            label: 'Location',
            hint: 'Only servers of this location can join.',
            required: true,
            value: draft?.location ?? locations[0]?.slug,
            options: locations.map((location) => ({ value: location.slug, label: location.name })),
            error: errorOf('location'),
          }),
        field({
          name: 'cidr',
          label: 'Address block',
          hint: 'For example 10.20.0.0/24: /16 to /29 within 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16. It cannot be changed later. Leave empty for the next free /24.',
          isCode: true,
          maxLength: 18,
          value: draft?.cidr,
          error: errorOf('cidr'),
        }),
      ],
    ),
  );
}
