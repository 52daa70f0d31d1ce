import type { Tenant } from '#operations/accounts/index.ts';
import { isStale, type LatestRow, type OpenAttack } from '#operations/protect/index.ts';
import { statusOf } from '#operations/servers/index.ts';
import type { Server, ServerFindingCount, ServerStatus } from '#operations/views/index.ts';
import {
  age,
  badge,
  banner,
  type Column,
  type Content,
  code,
  formatCount,
  formatMoneyAbout,
  type Html,
  html,
  link,
  pageHeader,
  readSort,
  refreshing,
  type Tone,
  table,
  tabs,
  withQuery,
} from '#service-kit/pages/index.ts';
import {
  changingStatuses,
  type DaySteps,
  daySpark,
  findingCountWords,
  openAttackBadge,
} from '../../parts/index.ts';
import { portalFrame } from '../frame.ts';
import type { Visitor } from '../guard.ts';
import { type AccountFigures, accountFigures } from './account-figures.ts';
import { rateNow } from './overview-figures.ts';
import { statusBadge, statusTone } from './server-frame.ts';

export interface ServersPageOptions {
  visitor: Visitor;
  servers: readonly Server[];
  tenants: readonly Tenant[];
  /** Counts of all their servers, without the filter. */
  counts: ReadonlyMap<ServerStatus, number>;
  /** What was asked for. */
  query: ServersQuery;
  /** Path and query of this page. */
  url: string;
  /** Servers that fit the filter, on all pages. */
  total: number;
  nextHref?: string | undefined;
  /** The newest observed minute, by server id. */
  traffic: ReadonlyMap<number, LatestRow>;
  day: DaySteps;
  /** Quanta of this month, by server id. */
  costs: ReadonlyMap<number, number>;
  /** Below the list of all servers; null below a part of them. */
  account: AccountFigures | null;
  /** Open attacks, by server id. */
  attacks: ReadonlyMap<number, OpenAttack>;
  /** Active potential vulnerabilities, by server id. */
  findings: ReadonlyMap<number, ServerFindingCount>;
  /** Where a visitor of the demo looks first. */
  demo: Content;
  nowMs: number;
}

export interface ServersQuery extends Record<string, string | undefined> {
  q?: string;
  /** One of `statusChoices`. */
  status?: string;
  sort?: string;
  direction?: string;
  after?: string;
}

/** Statuses that a person would look for, in words. */
export const statusChoices: readonly { value: string; label: string; statuses: readonly ServerStatus[] }[] = [
  { value: 'running', label: 'Running', statuses: ['running'] },
  { value: 'stopped', label: 'Stopped', statuses: ['stopped'] },
  { value: 'changing', label: 'Changing', statuses: changingStatuses },
  { value: 'failed', label: 'Failed or unknown', statuses: ['failed', 'unknown'] },
];

/** `/client/`: all servers of all tenants that the person reaches. */
export function serversPage(options: ServersPageOptions): Html {
  const { servers, visitor, counts, url } = options;
  const columns = columnsFor(options);
  return portalFrame(
    {
      visitor,
      title: 'Servers',
      current: 'servers',
      breadcrumb: [{ label: 'Servers' }],
      searched: options.query.q,
    },
    refreshing({ id: 'servers', url, everySeconds: 15 }, [
      pageHeader({
        title: 'Servers',
        state: stateOf(options),
        actions: link('/client/servers/new', 'Deploy a server', { kind: 'primary' }),
      }),
      options.demo,
      options.tenants.map(suspendedBanner),
      countOf(counts) > 0 && filterTabs(options),
      table({
        caption: 'Servers',
        card: { line: ['status', 'addresses'] },
        columns,
        rows: servers,
        url,
        sort: readSort(options.query, columns, { by: 'created', direction: 'asc' }),
        rowTone: (server) =>
          statusTone(server) === 'bad' || isAttacked(options.attacks.get(server.id)) ? 'bad' : undefined,
        pages: pagesOf(options),
        empty: emptyOf(options),
      }),
      options.account && accountFigures(options.account, options.nowMs),
    ]),
  );
}

/** Why nothing can be ordered, where people look first. */
function suspendedBanner({ id, name, status }: Tenant): Content {
  if (status !== 'SUSPENDED') return '';
  return banner({
    tone: 'bad',
    title: `${name} is suspended`,
    text: 'You cannot order servers, and its API keys are refused. Open billing to reactivate it.',
    actions: link(`/client/billing/?tenant=${id}`, 'Go to billing', { kind: 'button' }),
  });
}

const isAttacked = (open: OpenAttack | undefined) => open?.isActive === true && !open.isDrill;

const countOf = (counts: ServersPageOptions['counts'], statuses?: readonly ServerStatus[]) =>
  [...counts].reduce((sum, [status, count]) => (statuses?.includes(status) === false ? sum : sum + count), 0);

function filterTabs({ query, counts, url }: ServersPageOptions): Html {
  const href = (status: string | undefined) => withQuery(url, { status, after: undefined });
  return tabs('Servers by status', [
    { label: 'All', href: href(undefined), current: query.status === undefined, count: countOf(counts) },
    ...statusChoices.map((choice) => ({
      label: choice.label,
      href: href(choice.value),
      current: query.status === choice.value,
      count: countOf(counts, choice.statuses),
    })),
  ]);
}

function pagesOf({ servers, total, nextHref, query, url }: ServersPageOptions) {
  const isFirst = query.after === undefined;
  if (nextHref === undefined && isFirst) return undefined;
  return {
    label: `${formatCount(servers.length)} of ${formatCount(total)}`,
    nextHref,
    previousHref: isFirst ? undefined : withQuery(url, { after: undefined }),
  };
}

function emptyOf({ counts, query }: ServersPageOptions) {
  if (countOf(counts) > 0)
    return {
      title: query.q === undefined ? 'No server matches this filter' : `No server matches “${query.q}”`,
      text: 'Names, host names and addresses are searched.',
      action: { label: 'Show all servers', href: '/client/' },
    };
  return {
    title: 'No servers yet',
    text: 'Deploy your first one here or with the API.',
    action: { label: 'Deploy a server', href: '/client/servers/new' },
  };
}

/** How old the newest minute is, where it is too old to be the present. */
const observedHint = (latest: LatestRow | undefined, nowMs: number): Content =>
  latest !== undefined &&
  isStale(latest.minute.getTime(), nowMs) &&
  html`<div class="hint">observed ${age(latest.minute.getTime() + 60_000, nowMs)}</div>`;

function columnsFor(options: ServersPageOptions): Column<Server>[] {
  const { tenants, traffic, attacks, findings, day, costs, nowMs } = options;
  const names = new Map(tenants.map((tenant) => [tenant.id, tenant.name]));
  const rateOf = (server: Server, name: 'inboundBps' | 'outboundBps') =>
    rateNow(traffic.get(server.id), name, nowMs);
  const columns: Column<Server>[] = [
    {
      key: 'name',
      header: 'Name',
      sortable: true,
      cell: (server) => link(`/client/servers/${server.id}`, server.name),
    },
    {
      key: 'status',
      header: 'Status',
      cell: (server) => [
        statusBadge(server),
        ' ',
        openAttackBadge(attacks.get(server.id)),
        ' ',
        findingsBadge(server, findings.get(server.id)),
      ],
    },
    { key: 'in', header: 'In', kind: 'figure', cell: (server) => rateOf(server, 'inboundBps') },
    { key: 'out', header: 'Out', kind: 'figure', cell: (server) => rateOf(server, 'outboundBps') },
    {
      key: 'day',
      header: '24 hours',
      kind: 'picture',
      cell: (server) => {
        const picture = daySpark(day, server.id);
        const label = `Traffic of ${server.name}`;
        return [
          picture && link(`/client/servers/${server.id}/traffic`, picture, { kind: 'quiet', label }),
          observedHint(traffic.get(server.id), nowMs),
        ];
      },
    },
    {
      key: 'cost',
      header: 'This month',
      kind: 'figure',
      cell: (server) => formatMoneyAbout(costs.get(server.id) ?? 0),
    },
    { key: 'addresses', header: 'Address', kind: 'code', cell: addressesOf },
    { key: 'plan', header: 'Plan', cell: (server) => server.planName },
    { key: 'location', header: 'Location', cell: (server) => server.locationName },
    {
      key: 'created',
      header: 'Created',
      sortable: true,
      cell: (server) => age(server.createdAt.getTime(), nowMs),
    },
  ];
  // Whose workspace it is matters only to people who have several.
  if (tenants.length > 1)
    columns.push({ key: 'tenant', header: 'Workspace', cell: (server) => names.get(server.tenantId) });
  return columns;
}

/** How many findings; which of them is on their page. */
function findingsBadge(server: Server, count: ServerFindingCount | undefined): Content {
  if (count === undefined) return '';
  const { tone, text } = findingCountWords(count);
  const shown = count.active === 1 ? '1 finding' : `${formatCount(count.active)} findings`;
  return link(`/client/servers/${server.id}/protect/findings`, badge(tone, shown), {
    kind: 'quiet',
    label: `${server.name}: potential vulnerabilities, ${text}`,
  });
}

function addressesOf(server: Server): Html {
  if (server.addresses.length === 0)
    return html`<span class="hint">${statusOf(server) === 'queued' ? 'none yet' : 'none'}</span>`;
  const [first, ...others] = server.addresses;
  const more = others.map((each) => each.address).join(', ');
  return html`${code(first!.address)}${others.length > 0 && html` <span class="hint" title="${more}">+${others.length}</span>`}`;
}

function stateOf({ counts, attacks }: ServersPageOptions): { tone: Tone; text: string } {
  const total = countOf(counts);
  const attacked = [...attacks.values()].filter(isAttacked).length;
  if (attacked > 0)
    return { tone: 'bad', text: `${formatCount(attacked)} of ${formatCount(total)} with an attack now.` };
  if (total === 0) return { tone: 'neutral', text: 'You have no servers.' };
  const running = counts.get('running') ?? 0;
  const told = `${formatCount(running)} of ${formatCount(total)} running`;
  const failed = counts.get('failed') ?? 0;
  const underway = countOf(counts, changingStatuses);
  if (failed > 0)
    return {
      tone: 'bad',
      text: `${failed} could not be provisioned, ${told}. Our operators are working on it.`,
    };
  if (underway > 0) return { tone: 'info', text: `${underway} changing, ${told}.` };
  return { tone: running === total ? 'good' : 'neutral', text: `${told}.` };
}
