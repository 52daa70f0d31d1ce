/** `/console/findings/`: potential vulnerabilities of all customers' servers. */
import { Type } from 'typebox';
import type { Clock } from '#common/clock/index.ts';
import { countedSeverities } from '#contracts/findings.ts';
import type { ProtectFindings } from '#operations/protect/index.ts';
import type { FindingListQuery, FindingTotals, ListedFinding } from '#operations/views/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  age,
  type Column,
  type Content,
  code,
  field,
  formatCount,
  type Html,
  html,
  link,
  moment,
  sendPage,
  severityBadge,
  severityBar,
  type Tone,
  withQuery,
} from '#service-kit/pages/index.ts';
import {
  evidenceCell,
  findingMarks,
  findingMeaning,
  groupedMax,
  isDatabaseOld,
  nvdNotice,
  readFindingCursor,
  recordHref,
  servicesTable,
  softwareOf,
  writeFindingCursor,
} from '../../parts/index.ts';
import type { Staff } from '../guard.ts';
import {
  customerColumn,
  knownQuery,
  numberOf,
  type ServerListQuery,
  serverCell,
  serverListPage,
} from '../server-list.ts';

const pageSize = 100;
const text = Type.Optional(Type.String({ maxLength: 100 }));
const Query = Type.Object({
  ...{ state: text, severity: text, cve: text, customer: text, tenant: text, server: text, after: text },
});

export function registerFindings(
  app: App,
  deps: {
    protectFindings: Pick<ProtectFindings, 'listAll' | 'totalAll'>;
    clock: Clock;
  },
): void {
  app.get('/findings/', { schema: { querystring: Query } }, async (request, reply) => {
    const staff = request.staff!;
    const { cve } = request.query;
    const given = cve === undefined ? request.query : { ...request.query, cve: cve.trim().toUpperCase() };
    const query = knownQuery<FindingsQuery>(given, known);
    const { state, ...filter } = filterOf(query);
    const isWhole = state !== 'ignored' && query.cve === undefined && query.after === undefined;
    const [found, totals, worst] = await Promise.all([
      deps.protectFindings.listAll(staff.actor, {
        ...filter,
        state,
        after: readFindingCursor(query.after),
        limit: pageSize + 1,
      }),
      // The tabs count both states.
      deps.protectFindings.totalAll(staff.actor, filter),
      isWhole
        ? deps.protectFindings.listAll(staff.actor, { ...filter, state: 'active', limit: groupedMax })
        : [],
    ]);
    const findings = found.slice(0, pageSize);
    const last = findings.at(-1);
    const url = withQuery(findingsHref, { ...query, after: undefined });
    const nextHref =
      found.length > pageSize && last ? withQuery(url, { after: writeFindingCursor(last) }) : undefined;
    const nowMs = deps.clock.nowMs();
    return sendPage(reply, findingsPage({ staff, findings, worst, totals, query, url, nextHref, nowMs }));
  });
}

const known = {
  state: (value: string) => findingStates.some((choice) => choice.value === value),
  severity: (value: string) => countedSeverities.some((name) => name === value),
  cve: (value: string) => /^CVE-\d{4}-\d{4,19}$/.test(value),
  customer: (value: string) => value.trim() !== '' && !value.includes('\0'),
  after: (value: string) => readFindingCursor(value) !== undefined,
};

function filterOf({
  state,
  severity,
  cve,
  customer,
  tenant,
  server,
}: FindingsQuery): Omit<FindingListQuery, 'after' | 'limit'> {
  const name = countedSeverities.find((each) => each === severity);
  return {
    state: findingStates.find((choice) => choice.value === state)?.value,
    severities: name && [name],
    cveId: cve,
    customer: customer?.trim(),
    tenantId: numberOf(tenant),
    serverId: numberOf(server),
  };
}

interface FindingsQuery extends ServerListQuery {
  severity?: string;
  /** `CVE-2024-6387`. */
  cve?: string;
  /** Part of a name. */
  customer?: string;
}

interface FindingsPageOptions {
  staff: Staff;
  findings: readonly ListedFinding[];
  /** The worst active ones, where the list is not of one record or a later page. */
  worst: readonly ListedFinding[];
  /** Over what the filter leaves. */
  totals: FindingTotals;
  query: FindingsQuery;
  /** Path and query of the first page. */
  url: string;
  nextHref: string | undefined;
  nowMs: number;
}

const findingsHref = '/console/findings/';

const findingStates = [
  { value: 'active', label: 'Active' },
  { value: 'ignored', label: 'Ignored' },
] as const;

/** `/console/findings/`: potential vulnerabilities of all customers' servers, the worst first. */
function findingsPage(options: FindingsPageOptions): Html {
  const { staff, findings, totals, query, url, nextHref, nowMs } = options;
  const counts: Readonly<Record<string, number>> = { active: totals.active, ignored: totals.ignored };
  return serverListPage<ListedFinding>({
    ...{
      staff,
      title: 'Potential vulnerabilities',
      current: 'findings',
      path: findingsHref,
      query,
      url,
      nextHref,
    },
    // Assessments change daily, and counting all of them is work.
    refreshSeconds: 60,
    state: stateOf(totals, query),
    notice: [
      totals.active > 0 &&
        severityBar({
          label: 'Active potential vulnerabilities by severity',
          counts: totals,
          href: (severity) => withQuery(url, { severity }),
        }),
      noticeOf(options),
      options.worst.length > 0 && byService(options),
    ],
    tabs: findingStates.map(({ value, label }) => ({ value, label, count: counts[value] })),
    fields: fieldsOf(query),
    columns: columnsOf(nowMs),
    rows: findings,
    rowTone: ({ state, isKnownExploited }) => (state === 'active' && isKnownExploited ? 'bad' : undefined),
    empty: {
      title: 'No potential vulnerabilities',
      text: 'They appear here when a monitor delivers them. Its admin project needs the permission protect_vulnerability_ingest.',
    },
    noMatch: { title: 'No finding matches', text: 'Choose other filters.' },
  });
}

/** What there is to upgrade, at which server. */
const byService = ({ worst, totals }: FindingsPageOptions) =>
  servicesTable<ListedFinding>({
    ...{ findings: worst, active: totals.active, isFirst: (_row, at) => at < servicesFirst },
    placeOf: ({ serverId }) => serverId,
    nameOf: softwareOf,
    columns: [
      { key: 'server', header: 'Server', cell: (row) => serverCell({ ...row, isReleased: false }, '') },
      customerColumn,
    ],
  });

/** The others on demand. */
const servicesFirst = 5;

function stateOf(totals: FindingTotals, { cve }: FindingsQuery): { tone: Tone; text: string } {
  const { active, servers, critical, high, knownExploited, checkedAt, unable } = totals;
  if (checkedAt === null) return { tone: 'neutral', text: 'No monitor has delivered an assessment yet.' };
  if (cve !== undefined)
    return {
      tone: active > 0 ? 'warn' : 'neutral',
      text: `${cve}: active at ${many(active, 'service')} of ${many(servers, 'server')}.`,
    };
  const rest = unable > 0 ? ` ${many(unable, 'service')} of all servers could not be assessed.` : '';
  if (active === 0) return { tone: 'neutral', text: `None active.${rest}` };
  const worst = [
    knownExploited > 0 && `${formatCount(knownExploited)} known to be exploited`,
    critical > 0 && `${formatCount(critical)} critical`,
    high > 0 && `${formatCount(high)} high`,
  ].filter(Boolean);
  return {
    tone: worst.length > 0 ? 'bad' : 'warn',
    text: `${[`${formatCount(active)} active on ${many(servers, 'server')}`, ...worst].join(', ')}.${rest}`,
  };
}

const many = (count: number, one: string) => `${formatCount(count)} ${one}${count === 1 ? '' : 's'}`;

function noticeOf({ totals, query, nowMs }: FindingsPageOptions): Content {
  const { checkedAt, databaseAt } = totals;
  const ages =
    checkedAt !== null &&
    html`Newest assessment ${moment(checkedAt.getTime(), nowMs)}. ${
      databaseAt !== null &&
      html`Oldest copy of the database that was compared, ${moment(databaseAt.getTime(), nowMs)}${
        isDatabaseOld(databaseAt, nowMs) && ': look at the monitor, it is fetched daily'
      }.`
    } `;
  const record = query.cve !== undefined && html`${link(recordHref(query.cve), `Record of ${query.cve}`)}. `;
  return html`<p class="hint">${record}${ages}${findingMeaning} ${nvdNotice}</p>`;
}

function fieldsOf({ severity, cve, customer }: FindingsQuery): Html[] {
  return [
    field({
      kind: 'text',
      name: 'cve',
      label: 'CVE',
      value: cve ?? '',
      placeholder: 'CVE-2024-6387',
      isCode: true,
    }),
    field({ kind: 'text', name: 'customer', label: 'Customer', value: customer ?? '' }),
    field({
      kind: 'select',
      name: 'severity',
      label: 'Severity',
      value: severity ?? '',
      options: [
        { value: '', label: 'All severities' },
        ...countedSeverities.map((value) => ({ value, label: value })),
      ],
    }),
  ];
}

function columnsOf(nowMs: number): Column<ListedFinding>[] {
  return [
    {
      key: 'cve',
      header: 'CVE',
      cell: (row) =>
        link(withQuery(findingsHref, { cve: row.cveId }), row.cveId, {
          label: `Servers that ${row.cveId} may concern`,
        }),
    },
    { key: 'severity', header: 'Severity', cell: (row) => severityBadge(row.severity, row.score) },
    {
      key: 'server',
      header: 'Server',
      cell: (row) => serverCell({ ...row, isReleased: false }, html`<div>${code(row.address)}</div>`),
    },
    customerColumn,
    {
      key: 'service',
      header: 'Service',
      cell: (row) => [code(`${row.transport}/${row.port}`), html`<div>${softwareOf(row)}</div>`],
    },
    { key: 'evidence', header: 'Evidence', cell: (row) => evidenceCell(row, nowMs) },
    {
      key: 'since',
      header: 'Known since',
      kind: 'figure',
      cell: (row) => age(row.firstFoundAt?.getTime(), nowMs),
    },
    {
      key: 'notes',
      header: 'Notes',
      kind: 'prose',
      cell: (row) => [
        findingMarks(row),
        row.state === 'ignored' &&
          html`ignored by ${row.ignoredBy ?? 'a former member'}: ${reasonOf(row.ignoreReason ?? '')}`,
      ],
    },
  ];
}

/** A long reason opens where it stands, so that it does not fill the list. */
function reasonOf(text: string): Content {
  if (text.length <= 80) return text;
  return html`<details><summary>${text.slice(0, 60)}…</summary>${text}</details>`;
}
