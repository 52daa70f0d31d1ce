/** `/console/findings/`: potential vulnerabilities of all customers' servers. */

import { type CountedSeverity, countedSeverities } from '#contracts/findings.ts';
import type { Features } from '#operations/features.ts';
import type { FindingTotals, ListedFinding } from '#operations/views/finding-store.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  age,
  type Column,
  type Content,
  cellColumn,
  code,
  formatCount,
  html,
  link,
  moment,
  severityBadge,
  severityBar,
  type Tone,
  withQuery,
} from '#service-kit/pages/index.ts';
import { type ListFilter, type ListValues, readFilters, readList } from '#service-kit/web/index.ts';
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
import {
  customerColumn,
  customerFilter,
  sendListPage,
  serverCell,
  subjectFilters,
  subjectOf,
} from '../list-page.ts';

const findingsHref = '/console/findings/';
const findingStates = [
  { value: 'active', label: 'Active' },
  { value: 'ignored', label: 'Ignored' },
] as const;

const filters: readonly ListFilter[] = [
  { name: 'state', label: 'State', by: 'tabs', options: findingStates },
  { name: 'cve', label: 'CVE', placeholder: 'CVE-2024-6387', isValid: (value) => cveOf(value) !== undefined },
  customerFilter,
  {
    ...{ name: 'severity', label: 'Severity', any: 'All severities' },
    options: countedSeverities.map((value) => ({ value, label: value })),
  },
  ...subjectFilters,
];

export function registerFindings(app: App, deps: Features): void {
  app.get('/findings/', async (request, reply) => {
    const { actor } = request.staff!;
    const nowMs = deps.clock.nowMs();
    const { state, ...filter } = filterOf(readFilters(request, filters));
    const isWhole =
      state !== 'ignored' && filter.cveId === undefined && !Object.hasOwn(request.query as object, 'after');
    const [list, totals, worst] = await Promise.all([
      readList(request, {
        ...{
          id: 'potential-vulnerabilities',
          caption: 'Potential vulnerabilities',
          path: findingsHref,
          isStacked: true,
        },
        // Assessments change daily, and counting all of them is work.
        ...{ card: { line: ['severity', 'service', 'tenant'] }, refreshSeconds: 60 },
        filters,
        cursor: { write: writeFindingCursor, read: readFindingCursor },
        read: (values, { limit, after }) =>
          deps.protectFindings.listAll(actor, { ...filterOf(values), limit, after }),
        columns: columnsOf(nowMs),
        rowTone: ({ state, isKnownExploited }) =>
          state === 'active' && isKnownExploited ? 'bad' : undefined,
        empty: {
          title: 'No potential vulnerabilities',
          text: 'They appear here when a monitor delivers them. Its admin project needs the permission protect_vulnerability_ingest.',
          action: { label: 'Admin projects', href: '/console/projects/' },
        },
        noMatch: { title: 'No finding matches', text: 'Choose other filters.' },
      }),
      // The tabs count both states.
      deps.protectFindings.totalAll(actor, filter),
      isWhole ? deps.protectFindings.listAll(actor, { ...filter, state: 'active', limit: groupedMax }) : [],
    ]);
    const bar = severityBar({
      label: 'Active potential vulnerabilities by severity',
      counts: totals,
      href: (severity) => withQuery(list.url, { severity }),
    });
    const notice = [
      totals.active > 0 && bar,
      noticeOf(totals, filter.cveId, nowMs),
      worst.length > 0 && byService(worst, totals.active),
    ];
    const page = { title: 'Potential vulnerabilities', current: 'findings', notice } as const;
    return sendListPage(request, reply, { ...page, state: stateOf(totals, filter.cveId) }, [
      list.tabs('state', 'Potential vulnerabilities by state', {
        ...{ active: totals.active, ignored: totals.ignored },
      }),
      list.table,
    ]);
  });
}

/** Its name as it is written, or undefined. */
const cveOf = (value = '') => /^CVE-\d{4}-\d{4,19}$/.exec(value.toUpperCase())?.[0];

const filterOf = ({ state, severity, cve, ...subject }: ListValues) => ({
  ...subjectOf(subject),
  state: findingStates.find(({ value }) => value === state)?.value,
  severities: countedSeverities.some((name) => name === severity) ? [severity as CountedSeverity] : undefined,
  cveId: cveOf(cve),
});

/** What there is to upgrade, at which server. */
const byService = (worst: readonly ListedFinding[], active: number) =>
  servicesTable<ListedFinding>({
    ...{ findings: worst, active, isFirst: (_row, at) => at < servicesFirst },
    placeOf: ({ serverId }) => serverId,
    nameOf: softwareOf,
    columns: [
      cellColumn('server', 'Server', (row) => serverCell({ ...row, isReleased: false }, '')),
      customerColumn,
    ],
  });

/** The others on demand. */
const servicesFirst = 5;

function stateOf(totals: FindingTotals, cve: string | undefined): { tone: Tone; text: string } {
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

function noticeOf({ checkedAt, databaseAt }: FindingTotals, cve: string | undefined, nowMs: number): Content {
  const ages =
    checkedAt !== null &&
    html`Newest assessment ${moment(checkedAt.getTime(), nowMs)}. ${
      databaseAt !== null &&
      html`Oldest copy of the database that was compared, ${moment(databaseAt.getTime(), nowMs)}${
        isDatabaseOld(databaseAt, nowMs) && ': look at the monitor, it is fetched daily'
      }.`
    } `;
  const record = cve !== undefined && html`${link(recordHref(cve), `Record of ${cve}`)}. `;
  return html`<p class="hint">${record}${ages}${findingMeaning} ${nvdNotice}</p>`;
}

function columnsOf(nowMs: number): Column<ListedFinding>[] {
  return [
    cellColumn('cve', 'CVE', (row) =>
      link(withQuery(findingsHref, { cve: row.cveId }), row.cveId, {
        label: `Servers that ${row.cveId} may concern`,
      }),
    ),
    cellColumn('severity', 'Severity', (row) => severityBadge(row.severity, row.score)),
    cellColumn('server', 'Server', (row) =>
      serverCell({ ...row, isReleased: false }, html`<div>${code(row.address)}</div>`),
    ),
    customerColumn,
    cellColumn('service', 'Service', (row) => [
      code(`${row.transport}/${row.port}`),
      html`<div>${softwareOf(row)}</div>`,
    ]),
    cellColumn('evidence', 'Evidence', (row) => evidenceCell(row, nowMs)),
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
