/** `/client/`: all servers of all tenants that the person reaches. */
import type { Tenant } from '#operations/accounts/index.ts';
import type { AccountBandwidth, Bandwidth } from '#operations/bandwidth/index.ts';
import type { Billing } from '#operations/billing/index.ts';
import type { Features } from '#operations/features.ts';
import { isStale, type LatestRow, type OpenAttack } from '#operations/protect/index.ts';
import { statusOf } from '#operations/servers/index.ts';
import type { ServerFindingCount } from '#operations/views/finding-store.ts';
import type { ServerFilter } from '#operations/views/server-list-store.ts';
import type { Server, ServerStatus } from '#operations/views/server-store.ts';
import { type StoredEntry, sentenceOf } from '#service-kit/audit/index.ts';
import { type Demo, type DemoAttack, demoBanner, registerDemoAttack } from '#service-kit/demo/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  age,
  badge,
  banner,
  type Column,
  type Content,
  cellColumn,
  code,
  codeColumn,
  formatBytes,
  formatCount,
  formatMoneyAbout,
  type Html,
  html,
  link,
  pageHeader,
  refreshing,
  type Sort,
  section,
  sendPage,
  stat,
  stats,
  type Tone,
} from '#service-kit/pages/index.ts';
import {
  figureColumn,
  type ListFilter,
  readFilters,
  readList,
  sendWantedFile,
} from '#service-kit/web/index.ts';
import {
  changingStatuses,
  daySpark,
  findingCountWords,
  openAttackBadge,
  readDaySteps,
} from '../../parts/index.ts';
import { readLatestActivity } from '../account/account.routes.ts';
import { portalFrame } from '../frame.ts';
import type { Visitor } from '../guard.ts';
import { rateNow } from './overview-figures.ts';
import type { ServerPagesDeps } from './server.routes.ts';
import { statusBadge, statusTone } from './server-frame.ts';

/** Statuses that a person would look for, in words. */
const statusChoices: readonly { value: string; label: string; statuses: readonly ServerStatus[] }[] = [
  { value: 'running', label: 'Running', statuses: ['running'] },
  { value: 'stopped', label: 'Stopped', statuses: ['stopped'] },
  { value: 'changing', label: 'Changing', statuses: changingStatuses },
  { value: 'failed', label: 'Failed or unknown', statuses: ['failed', 'unknown'] },
];
const filters: readonly ListFilter[] = [
  { name: 'status', label: 'Status', by: 'tabs', options: statusChoices },
  // The search of the frame.
  { name: 'q', label: 'Name, host name or address', by: 'link' },
];

/** Where a page ends, in both orders. */
const cursor = {
  write: ({ id, name }: Row) => `${id}.${name}`,
  read(text: string) {
    const [, id, name] = /^([1-9]\d{0,14})\.(.*)$/s.exec(text) ?? [];
    return id === undefined ? undefined : { id: Number(id), name: name! };
  },
};

type Row = Server & { attack: OpenAttack | undefined };

export function registerServers(app: App, deps: ServerPagesDeps): void {
  // What is left of a server's address without its id.
  app.get('/servers/', async (_request, reply) => reply.redirect('/client/', 302));
  app.get('/', async (request, reply) => {
    const visitor = request.visitor!;
    const { actor } = visitor;
    const { q, status } = readFilters(request, filters);
    const [counts, tenants] = await Promise.all([
      deps.servers.countByStatus(actor, null),
      deps.accounts.findTenants(actor.tenantIds),
    ]);
    const filter = {
      ...(q !== undefined && { search: q }),
      ...(status !== undefined && {
        statuses: statusChoices.find(({ value }) => value === status)!.statuses,
      }),
    };
    const list = await readList(request, {
      ...{ id: 'servers', caption: 'Servers', path: '/client/', filters, cursor },
      card: { line: ['status', 'addresses'] },
      order: { by: ['name', 'created'], fallback: { by: 'created', direction: 'asc' } },
      async read(_, { limit, after, sort }): Promise<Row[]> {
        const query = { ...filter, limit, order: orderOf(sort), ...(after && { after }) };
        const servers = await deps.servers.listServers(actor, null, query);
        const attacks = await deps.protectIncidents.readOpen(actor, idsOf(servers));
        return servers.map((server) => ({ ...server, attack: attacks.get(server.id) }));
      },
      count: () => deps.servers.countServers(actor, null, { ...filter, order: 'oldest', limit: 1 }),
      columns: (servers) => columnsFor(deps, visitor, servers, tenants),
      rowTone: (server) => (statusTone(server) === 'bad' || isAttacked(server.attack) ? 'bad' : undefined),
      empty: {
        title: 'No servers yet',
        text: 'Deploy your first one here or with the API.',
        action: { label: 'Deploy a server', href: '/client/servers/new' },
      },
      noMatch: {
        title: q === undefined ? 'No server matches this filter' : `No server matches “${q}”`,
        text: 'Names, host names and addresses are searched.',
        action: { label: 'Show all servers', href: '/client/' },
      },
    });
    const file = sendWantedFile(request, reply, 'client');
    if (file) return file;
    const isWhole = !list.isNarrowed && list.isFirst;
    const account = isWhole && list.rows.length > 0 && (await readAccountFigures(deps, visitor, tenants));
    const ofChoices = statusChoices.map(({ value, statuses }) => [value, countOf(counts, statuses)]);
    return sendPage(
      reply,
      portalFrame(
        { visitor, title: 'Servers', current: 'servers', searched: q },
        refreshing({ id: 'servers', url: request.url, everySeconds: 15 }, [
          pageHeader({
            title: 'Servers',
            state: stateOf(counts, list.rows),
            actions: link('/client/servers/new', 'Deploy a server', { kind: 'primary' }),
          }),
          deps.demo && isWhole && demoLine(deps.demo),
          tenants.map(suspendedBanner),
          countOf(counts) > 0 &&
            list.tabs('status', 'Servers by status', {
              '': countOf(counts),
              ...Object.fromEntries(ofChoices),
            }),
          list.table,
          account && accountFigures(account, deps.clock.nowMs()),
        ]),
      ),
    );
  });
}

const idsOf = (servers: readonly Server[]) => servers.map(({ id }) => id);

function orderOf({ by, direction }: Sort): ServerFilter['order'] {
  if (by === 'name') return direction === 'desc' ? '-name' : 'name';
  return direction === 'desc' ? 'newest' : 'oldest';
}

function demoLine({ attack }: Demo): Content {
  const best = { href: '/client/traffic/', label: 'Explore traffic' };
  return attack === null
    ? demoBanner('See what each server talks to, minute by minute.', [best])
    : demoBanner('Attack one of your servers, and watch how it is detected within seconds.', [
        { href: attackHref, label: 'Attack a server' },
        best,
      ]);
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

type Counts = ReadonlyMap<ServerStatus, number>;

const countOf = (counts: Counts, statuses?: readonly ServerStatus[]) =>
  [...counts].reduce((sum, [status, count]) => (statuses?.includes(status) === false ? sum : sum + count), 0);

/** How old the newest minute is, where it is too old to be the present. */
const observedHint = (latest: LatestRow | undefined, nowMs: number): Content =>
  latest !== undefined &&
  isStale(latest.minute.getTime(), nowMs) &&
  html`<div class="hint">observed ${age(latest.minute.getTime() + 60_000, nowMs)}</div>`;

async function columnsFor(
  deps: ServerPagesDeps,
  { actor }: Visitor,
  servers: readonly Server[],
  tenants: readonly Tenant[],
): Promise<Column<Row>[]> {
  const ids = idsOf(servers);
  const nowMs = deps.clock.nowMs();
  const [traffic, day, costs, findings] = await Promise.all([
    deps.protectTraffic.readLatest(actor, ids),
    readDaySteps(deps.protectTraffic, actor, { serverIds: ids }, 'server', nowMs),
    deps.servers.costOfMonth(actor, ids),
    deps.protectFindings.countOf(actor, ids),
  ]);
  const names = new Map(tenants.map((tenant) => [tenant.id, tenant.name]));
  const rateOf = (server: Server, name: 'inboundBps' | 'outboundBps') =>
    rateNow(traffic.get(server.id), name, nowMs);
  const columns: Column<Row>[] = [
    cellColumn('name', 'Name', (server) => link(`/client/servers/${server.id}`, server.name)),
    cellColumn('status', 'Status', (server) => [
      statusBadge(server),
      ' ',
      openAttackBadge(server.attack),
      ' ',
      findingsBadge(server, findings.get(server.id)),
    ]),
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
    figureColumn('cost', 'This month', (server) => costs.get(server.id) ?? 0, formatMoneyAbout, {
      field: 'month_quanta',
    }),
    codeColumn('addresses', 'Address', addressesOf),
    cellColumn('plan', 'Plan', (server) => server.planName),
    cellColumn('location', 'Location', (server) => server.locationName),
    cellColumn('created', 'Created', (server) => age(server.createdAt.getTime(), nowMs)),
  ];
  // Whose workspace it is matters only to people who have several.
  if (tenants.length > 1)
    columns.push(cellColumn('tenant', 'Workspace', (server) => names.get(server.tenantId)));
  return columns;
}

/** How many findings; which of them is on their page. */
function findingsBadge(server: Server, count: ServerFindingCount | undefined): Content {
  if (count === undefined) return '';
  const { tone, text } = findingCountWords(count);
  const shown = count.active === 1 ? '1 finding' : `${formatCount(count.active)} findings`;
  return link(`/client/servers/${server.id}/protect/findings`, badge(tone, shown), {
    kind: 'quiet',
    label: `${shown} of ${server.name}: ${text}`,
  });
}

function addressesOf(server: Server): Html {
  if (server.addresses.length === 0)
    return html`<span class="hint">${statusOf(server) === 'queued' ? 'none yet' : 'none'}</span>`;
  const [first, ...others] = server.addresses;
  const more = others.map((each) => each.address).join(', ');
  return html`${code(first!.address)}${others.length > 0 && html` <span class="hint" title="${more}">+${others.length}</span>`}`;
}

function stateOf(counts: Counts, shown: readonly Row[]): { tone: Tone; text: string } {
  const total = countOf(counts);
  const attacked = shown.filter(({ attack }) => isAttacked(attack)).length;
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

interface AccountFigures {
  workspaces: readonly ({ tenant: Tenant; balanceQuanta: number } & Pick<
    AccountBandwidth,
    'pool' | 'overage'
  >)[];
  /** The newest first. */
  activity: readonly StoredEntry[];
}

/** Workspaces with figures; the page of billing has all. */
const workspacesShown = 3;
const activityShown = 5;

/** What stands below the list of all servers: credit, the pool of the month, and what was done last. */
async function readAccountFigures(
  deps: { billing: Pick<Billing, 'balanceOf'>; bandwidth: Bandwidth } & Features,
  visitor: Visitor,
  tenants: readonly Tenant[],
): Promise<AccountFigures> {
  const { actor } = visitor;
  const [workspaces, activity] = await Promise.all([
    Promise.all(
      tenants.slice(0, workspacesShown).map(async (tenant) => {
        const [balanceQuanta, { pool, overage }] = await Promise.all([
          deps.billing.balanceOf(actor, tenant.id),
          deps.bandwidth.readAccount(actor, { tenantId: tenant.id, openedAt: tenant.createdAt }),
        ]);
        return { tenant, balanceQuanta, pool, overage };
      }),
    ),
    readLatestActivity(deps, visitor),
  ]);
  return { workspaces, activity };
}

function accountFigures({ workspaces, activity }: AccountFigures, nowMs: number): Content {
  const nameOf = ({ name }: Tenant) => (workspaces.length > 1 ? `${name}: ` : '');
  const figures = workspaces.flatMap(({ tenant, balanceQuanta, pool, overage }) => [
    stat({
      label: `${nameOf(tenant)}Credit`,
      value: formatMoneyAbout(balanceQuanta, tenant.currency),
      ...(balanceQuanta < 0 && { tone: 'bad' as const }),
      source: 'current ledger balance',
      href: `/client/billing/?tenant=${tenant.id}`,
    }),
    stat({
      label: `${nameOf(tenant)}Bandwidth pool this month`,
      value: `${formatBytes(pool.usedBytes)} of ${formatBytes(pool.allowanceBytes)}`,
      source: poolOutlook(pool, overage, tenant),
      ...(pool.usedBytes > pool.allowanceBytes && { tone: 'warn' as const }),
    }),
  ]);
  return [
    stats(...figures),
    activity.length > 0 &&
      section(
        {
          title: 'Latest activity',
          id: 'activity',
          actions: link('/client/activity/', 'All activity', { kind: 'button' }),
        },
        html`<ul class="plain-list">${activity
          .slice(0, activityShown)
          .map(
            (entry) =>
              html`<li>${sentenceOf(entry)} <span class="hint">${age(entry.occurredAtMs, nowMs)}</span></li>`,
          )}</ul>`,
      ),
  ];
}

/** What the month comes to, in bytes and, where what is beyond the pool costs something, in money. */
function poolOutlook(
  pool: AccountBandwidth['pool'],
  overage: AccountBandwidth['overage'],
  { currency }: Tenant,
): string | undefined {
  const expected =
    pool.projection === null ? [] : [`about ${formatBytes(pool.projection.bytes)} by the end of the month`];
  const quanta = overage.projectedQuanta ?? overage.quanta;
  const cost = quanta === 0 ? [] : [`${formatMoneyAbout(quanta, currency)} for what is beyond the pool`];
  const parts = [...expected, ...cost];
  return parts.length === 0 ? undefined : parts.join(', ');
}

const shownMax = 20;

/** `/client/demo/attack` of a demo: one's own servers, but for those of the hypervisor that does not exist. */
export function registerAttack(
  app: App,
  { servers, attack, settings }: Features & { attack: DemoAttack },
): void {
  const { node: simulated } = JSON.parse(settings.demoSimulatedSite ?? '{}') as { node?: string };
  registerDemoAttack(app, {
    ...{ attack, path: '/demo/attack', href: attackHref },
    async targetsOf({ visitor }) {
      const filter = { order: 'oldest', limit: shownMax, statuses: ['running'] } as const;
      const found = await servers.listServers(visitor!.actor, null, filter);
      return found.flatMap(({ id, name, node, addresses }) =>
        (node === simulated ? [] : addresses.slice(0, 1)).map(({ address }) => ({
          address,
          name,
          href: `/client/servers/${id}/protect`,
        })),
      );
    },
    csrfTokenOf: ({ visitor }) => visitor!.csrfToken,
    send({ visitor }, reply, content, status) {
      const frame = { visitor: visitor!, title: 'Attack a server', current: 'servers' } as const;
      return sendPage(reply, portalFrame({ ...frame, isNarrow: true }, content), status);
    },
  });
}

const attackHref = '/client/demo/attack';
