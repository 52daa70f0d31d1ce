import type { Tenant } from '#operations/accounts/index.ts';
import type { LatestRow } from '#operations/protect-traffic/index.ts';
import { type Server, statusOf } from '#operations/servers/index.ts';
import {
  age,
  type Column,
  code,
  formatBitRate,
  type Html,
  html,
  link,
  pageHeader,
  refreshing,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';
import { portalFrame } from './frame.ts';
import type { Visitor } from './guard.ts';
import { statusBadge, statusTone } from './server-frame.ts';

export interface ServersPageOptions {
  visitor: Visitor;
  servers: readonly Server[];
  tenants: readonly Tenant[];
  /** The newest observed minute, by server id. */
  traffic: ReadonlyMap<number, LatestRow>;
  nowMs: number;
}

/** Older than this, a rate says nothing about now. */
const staleMs = 5 * 60_000;

/** `/client/`: all servers of all tenants that the person reaches. */
export function serversPage(options: ServersPageOptions): Html {
  const { servers, visitor } = options;
  return portalFrame(
    { visitor, title: 'Servers', current: 'servers', breadcrumb: [{ label: 'Servers' }] },
    refreshing({ id: 'servers', url: '/client/', everySeconds: 15 }, [
      pageHeader({
        title: 'Servers',
        state: stateOf(servers),
        actions: link('/client/servers/new', 'Deploy a server', { kind: 'primary' }),
      }),
      table({
        caption: 'Servers',
        columns: columnsFor(options),
        rows: servers,
        rowTone: (server) => (statusTone(server) === 'bad' ? 'bad' : undefined),
        empty: {
          title: 'No servers yet',
          text: 'Your servers will stand here. Deploy one here, or by one call of the API.',
          action: { label: 'Deploy a server', href: '/client/servers/new' },
        },
      }),
    ]),
  );
}

function columnsFor({ tenants, traffic, nowMs }: ServersPageOptions): Column<Server>[] {
  const names = new Map(tenants.map((tenant) => [tenant.id, tenant.name]));
  const endOf = (latest: LatestRow | undefined) => (latest ? latest.minute.getTime() + 60_000 : null);
  const rateOf = (server: Server, name: 'inboundBps' | 'outboundBps') => {
    const latest = traffic.get(server.id);
    const rate = latest && nowMs - endOf(latest)! <= staleMs ? latest[name] : null;
    return rate === null ? null : formatBitRate(rate);
  };
  const columns: Column<Server>[] = [
    { key: 'name', header: 'Name', cell: (server) => link(`/client/servers/${server.id}`, server.name) },
    { key: 'status', header: 'Status', cell: statusBadge },
    { key: 'in', header: 'In', kind: 'figure', cell: (server) => rateOf(server, 'inboundBps') },
    { key: 'out', header: 'Out', kind: 'figure', cell: (server) => rateOf(server, 'outboundBps') },
    {
      key: 'observed',
      header: 'Observed',
      cell: (server) =>
        link(`/client/servers/${server.id}/protect`, age(endOf(traffic.get(server.id)), nowMs), {
          label: `Traffic of ${server.name}`,
        }),
    },
    { key: 'addresses', header: 'Addresses', kind: 'code', cell: addressesOf },
    { key: 'plan', header: 'Plan', cell: (server) => server.planName },
    { key: 'image', header: 'Image', cell: (server) => server.imageName },
    { key: 'location', header: 'Location', cell: (server) => server.locationName },
  ];
  // Whose workspace it is matters only to people who have several.
  if (tenants.length > 1)
    columns.push({ key: 'tenant', header: 'Workspace', cell: (server) => names.get(server.tenantId) });
  return columns;
}

function addressesOf(server: Server): Html {
  if (server.addresses.length === 0) return html`<span class="hint">none yet</span>`;
  return html`${server.addresses.map((each, index) => [index > 0 && ' ', code(each.address)])}`;
}

function stateOf(servers: readonly Server[]): { tone: Tone; text: string } {
  if (servers.length === 0) return { tone: 'neutral', text: 'You have no servers.' };
  const count = (tone: Tone) => servers.filter((server) => statusTone(server) === tone).length;
  const running = servers.filter((server) => statusOf(server) === 'running').length;
  const total = `${running} of ${servers.length} running`;
  const failed = servers.filter((server) => statusOf(server) === 'failed').length;
  if (failed > 0) return { tone: 'bad', text: `${failed} could not be provisioned, ${total}.` };
  if (count('info') > 0) return { tone: 'info', text: `${count('info')} on the way, ${total}.` };
  return { tone: running === servers.length ? 'good' : 'neutral', text: `${total}.` };
}
