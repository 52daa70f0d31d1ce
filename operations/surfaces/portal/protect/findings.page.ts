/** `/client/servers/{id}/protect/findings`: potential vulnerabilities, active and ignored ones apart, and what could not be assessed. */
import { schemas } from '#contracts/customer-api/index.ts';
import type { ScanTransport } from '#contracts/port-scan/index.ts';
import type { ServerFindings } from '#operations/protect/index.ts';
import type { FindingRow, UnableRow } from '#operations/views/finding-store.ts';
import type { Server } from '#operations/views/server-store.ts';
import {
  age,
  attributes,
  banner,
  type Column,
  type Content,
  cellColumn,
  code,
  codeColumn,
  field,
  form,
  formatCount,
  type Html,
  html,
  link,
  moment,
  pageHeader,
  section,
  severityBadge,
  severityBar,
  type TableOptions,
  type Tone,
  table,
  tabs,
  withQuery,
} from '#service-kit/pages/index.ts';
import { ageColumn, linkColumn } from '#service-kit/web/index.ts';
import {
  evidenceCell,
  findingMarks,
  findingMeaning,
  isDatabaseOld,
  nvdNotice,
  servicesTable,
  softwareOf,
  unableText,
} from '../../parts/index.ts';
import type { Visitor } from '../guard.ts';
import { serverFrame } from '../servers/server-frame.ts';

export type FindingsView = 'active' | 'ignored' | 'unable';

interface FindingsPageOptions {
  visitor: Visitor;
  server: Server;
  findings: Omit<FindingsOfPage, 'worst'>;
  /** The worst active ones for the table of services, on the first page of all of them. */
  worst: readonly FindingRow[];
  view: FindingsView;
  /** A page of the view; none of `unable`. */
  rows: readonly FindingRow[];
  severity: string | undefined;
  /** Path and query of the first page. */
  url: string;
  isFirst: boolean;
  nextHref: string | undefined;
  toast: { tone: Tone; text: string } | undefined;
  refused?: IgnoreInput | undefined;
}

export function findingsPage(options: FindingsPageOptions): Html {
  const { visitor, server, findings, view, severity } = options;
  const path = findingsPath(server.id);
  const { summary } = findings;
  const header = pageHeader({
    title: `${server.name}: potential vulnerabilities`,
    state: findingsState(findings),
  });
  const tab = (name: FindingsView, label: string, count: number) => ({
    ...{ label, count, current: view === name },
    href: name === 'active' ? path : withQuery(path, { view: name }),
  });
  return serverFrame(
    { visitor, server, tab: 'protect', part: 'Potential vulnerabilities', toast: options.toast },
    header,
    [
      oldDatabase(findings),
      summary.active > 0 && bar(server.id, findings),
      options.worst.length > 0 && servicesOf(server.id, options.worst, summary.active),
      tabs('Potential vulnerabilities', [
        tab('active', 'Active', summary.active),
        tab('ignored', 'Ignored', summary.ignored),
        tab('unable', 'Not assessed', summary.unable),
      ]),
      severity !== undefined &&
        html`<p>Only severity ${severity}. ${link(withQuery(options.url, { severity: undefined }), 'Show all severities')}</p>`,
      view === 'unable'
        ? unableTable(options)
        : view === 'active'
          ? ignorable(options, listOf(options))
          : listOf(options),
      section({ title: 'How to read this', id: 'reading' }, [
        html`<p>${findingMeaning}</p>`,
        html`<p>Ignored findings are counted apart. Services that could not be assessed have no findings, which does not mean that there are none.</p>`,
        summary.checkedAt !== null && agesLine(findings),
        html`<p class="hint">${nvdNotice}</p>`,
      ]),
    ],
  );
}

/** A list with a box for each active finding, and the form that ignores the ticked ones. */
export function ignorable(
  { visitor, server, rows, refused }: Pick<FindingsPageOptions, 'visitor' | 'server' | 'rows' | 'refused'>,
  list: Html,
): Html {
  if (!rows.some(({ state }) => state === 'active')) return list;
  return form(
    {
      action: `${findingsPath(server.id)}/ignore`,
      csrfToken: visitor.csrfToken,
      submit: 'Ignore the selected findings',
      submitKind: 'button',
      error: refused?.error,
    },
    [list, ignoreFields(server, refused)],
  );
}

export const pickColumn = (checked: boolean): Column<FindingRow> => ({
  key: 'pick',
  header: 'Ignore',
  kind: 'actions',
  cell: (row) =>
    row.state === 'active'
      ? html`<input${attributes({
          type: 'checkbox',
          name: 'finding',
          value: pickOf(row),
          checked,
          'aria-label': `Select ${row.cveId}, ${row.transport}/${row.port} of ${row.address}`,
        })}>`
      : 'ignored',
});

function listOf({ server, findings, view, rows, severity, ...options }: FindingsPageOptions): Html {
  const { nowMs } = findings;
  const { isFirst, nextHref, url } = options;
  return findingsTable(server.id, rows, nowMs, {
    caption: view === 'ignored' ? 'Ignored findings' : 'Active potential vulnerabilities',
    jsonHref: `${findingsPath(server.id)}.json`,
    pages:
      nextHref === undefined && isFirst ? undefined : { nextHref, previousHref: isFirst ? undefined : url },
    columns:
      view === 'ignored'
        ? [
            { key: 'reason', header: 'Reason', kind: 'prose', cell: (row) => row.ignoreReason },
            cellColumn('by', 'Ignored', (row) => [ignorerOf(row), ' ', age(row.ignoredAt?.getTime(), nowMs)]),
            cellColumn('until', 'Until', (row) => untilOf(row, nowMs)),
          ]
        : [ageColumn('since', 'Known since', (row) => row.firstFoundAt?.getTime(), nowMs), pickColumn(false)],
    empty:
      severity !== undefined
        ? { title: 'None of this severity', text: 'Other severities may have some.' }
        : view === 'ignored'
          ? {
              title: 'No ignored findings',
              text: 'Open a finding and ignore it with a reason. It is then counted here, not among the active ones.',
            }
          : emptyOf(findings),
  });
}

export const ignorerOf = (row: Pick<FindingRow, 'ignoredBy' | 'isIgnoredByKey'>): string =>
  `${row.ignoredBy ?? 'a former member'}${row.isIgnoredByKey ? ' (API key)' : ''},`;

export const untilOf = ({ ignoredUntil }: Pick<FindingRow, 'ignoredUntil'>, nowMs: number) =>
  ignoredUntil === null ? 'no expiry' : moment(ignoredUntil.getTime(), nowMs);

function unableTable({ server, findings }: FindingsPageOptions): Html {
  return table<UnableRow>({
    caption: 'Services that could not be assessed',
    card: { line: ['address', 'software'] },
    columns: [
      linkColumn('service', 'Service', (row) => [
        `${row.transport}/${row.port}`,
        serviceHref(server.id, row),
      ]),
      codeColumn('address', 'Address', ({ address }) => code(address)),
      cellColumn('software', 'Answer', softwareOf),
      { key: 'reason', header: 'Why not', kind: 'prose', cell: ({ reason }) => unableText(reason) },
      cellColumn('original', 'Of the original', (row) =>
        row.upstreamCount === 0
          ? 'none listed'
          : link(serviceHref(server.id, row), `${formatCount(row.upstreamCount)} not counted`),
      ),
      cellColumn('evidence', 'Evidence', (row) => evidenceCell(row, findings.nowMs)),
    ],
    rows: findings.unable,
    isStacked: true,
    jsonHref: `${findingsPath(server.id)}.json`,
    empty: {
      title: 'Every service could be assessed',
      text: 'A service that hides its version, or is a package of a Linux distribution, appears here with the reason.',
    },
  });
}

export interface FindingsOfPage extends ServerFindings {
  /** The worst active ones, at most `groupedMax`. */
  worst: readonly FindingRow[];
  /** Whether any scan of the server is known. */
  hasScan: boolean;
}

interface Place {
  address: string;
  transport: ScanTransport;
  port: number;
}

export const findingsPath = (serverId: number): string => `/client/servers/${serverId}/protect/findings`;

export const serviceHref = (serverId: number, { address, transport, port }: Place): string =>
  `${findingsPath(serverId)}/${encodeURIComponent(address)}/${transport}-${port}`;

export const findingHref = (serverId: number, finding: Place & { cveId: string }): string =>
  `${serviceHref(serverId, finding)}/${finding.cveId}`;

/** Potential vulnerabilities on the Protect page: how many, how severe, the worst of them, and what could not be assessed. */
export function findingsSection(server: Server, findings: FindingsOfPage): Html {
  const path = findingsPath(server.id);
  const { summary, hasScan } = findings;
  return section(
    {
      title: 'Potential vulnerabilities',
      id: 'findings',
      description: 'What a public database says of the versions that scans read. None of it is confirmed.',
      actions: summary.checkedAt !== null && link(path, 'All findings', { kind: 'button' }),
    },
    [
      html`<p>${findingsState(findings).text}</p>`,
      oldDatabase(findings),
      summary.active > 0 && bar(server.id, findings),
      summary.active > 0 && servicesOf(server.id, findings.worst, summary.active),
      summary.checkedAt !== null && agesLine(findings),
      (hasScan || summary.checkedAt !== null) && html`<p class="hint">${findingMeaning} ${nvdNotice}</p>`,
    ],
  );
}

function bar(serverId: number, { summary }: Pick<ServerFindings, 'summary'>): Html {
  return severityBar({
    label: 'Active potential vulnerabilities by severity',
    counts: summary,
    href: (severity) => withQuery(findingsPath(serverId), { severity }),
  });
}

/** Findings by service: what there is to upgrade, the worst first. */
const servicesOf = (serverId: number, findings: readonly FindingRow[], active: number): Html =>
  servicesTable({
    ...{ findings, active, jsonHref: `${findingsPath(serverId)}.json` },
    nameOf: (worst) => link(serviceHref(serverId, worst), softwareOf(worst)),
  });

/** The state in a sentence. It never says that a server is safe: only what was compared is known. */
function findingsState({ summary, hasScan }: Pick<FindingsOfPage, 'summary' | 'hasScan'>): {
  tone: Tone;
  text: string;
} {
  const { active, ignored, unable, assessed, critical, high, checkedAt, knownExploited } = summary;
  if (!hasScan && checkedAt === null)
    return { tone: 'neutral', text: 'No scan yet. Services are assessed after the first port scan.' };
  if (checkedAt === null)
    return { tone: 'neutral', text: 'Not assessed yet. The services that scans found are assessed next.' };
  const rest = [
    ignored > 0 && `${formatCount(ignored)} ignored`,
    unable > 0 && `${services(unable)} could not be assessed`,
  ].filter(Boolean);
  const also = rest.length === 0 ? '' : ` ${rest.join(', ')}.`;
  if (active > 0) {
    const worst = [
      knownExploited > 0 && `${formatCount(knownExploited)} known to be exploited`,
      critical > 0 && `${formatCount(critical)} critical`,
      high > 0 && `${formatCount(high)} high`,
    ].filter(Boolean);
    const tone = worst.length > 0 ? 'bad' : 'warn';
    return { tone, text: `${[`${formatCount(active)} active`, ...worst].join(', ')}.${also}` };
  }
  if (assessed + unable === 0)
    return { tone: 'neutral', text: 'No open service was found, so there is nothing to assess.' };
  if (assessed === 0)
    return { tone: 'neutral', text: `${services(unable)} found, none of which could be assessed.` };
  return {
    tone: unable === 0 ? 'good' : 'neutral',
    text: `None active in ${services(assessed)} assessed.${also}`,
  };
}

const services = (count: number) => (count === 1 ? '1 service' : `${formatCount(count)} services`);

/** A warning where the copy of the database is old. */
function oldDatabase({ summary, nowMs }: Pick<ServerFindings, 'summary' | 'nowMs'>): Content {
  const { databaseAt } = summary;
  if (databaseAt === null || !isDatabaseOld(databaseAt, nowMs)) return '';
  return banner({
    tone: 'warn',
    title: html`The copy of the database was fetched ${age(databaseAt.getTime(), nowMs)}`,
    text: 'It is fetched daily. Records that were published since then are missing.',
  });
}

/** How old the assessment and the database are, and what the page leaves out. */
function agesLine({ summary, nowMs }: Pick<ServerFindings, 'summary' | 'nowMs'>): Html {
  const { checkedAt, databaseAt, truncated } = summary;
  const database =
    databaseAt === null
      ? 'No records of these products have been fetched yet.'
      : html`Database fetched ${moment(databaseAt.getTime(), nowMs)}.`;
  const more =
    truncated > 0 && ` ${formatCount(truncated)} more findings are not listed: a service has at most 500.`;
  return html`<p class="hint">Assessed ${moment(checkedAt?.getTime(), nowMs)}. ${database}${more}</p>`;
}

type More = Pick<TableOptions<FindingRow>, 'pages' | 'empty' | 'jsonHref' | 'caption'> & {
  /** Columns after the common ones. */
  columns?: readonly Column<FindingRow>[];
};

export function findingsTable(
  serverId: number,
  findings: readonly FindingRow[],
  nowMs: number,
  { columns = [], ...more }: More,
): Html {
  return table<FindingRow>({
    columns: [
      linkColumn('cve', 'CVE', (row) => [row.cveId, findingHref(serverId, row)]),
      cellColumn('severity', 'Severity', (row) => severityBadge(row.severity, row.score)),
      cellColumn('service', 'Service', (row) => [
        code(`${row.transport}/${row.port}`),
        html` ${softwareOf(row)} <span class="hint">${row.address}</span>`,
      ]),
      cellColumn('evidence', 'Evidence', (row) => evidenceCell(row, nowMs)),
      cellColumn('marks', 'Notes', findingMarks),
      ...columns,
    ],
    card: { line: ['severity', 'service'] },
    rows: findings,
    isStacked: true,
    ...more,
  });
}

/** Why the list is empty. */
function emptyOf(findings: Pick<FindingsOfPage, 'summary' | 'hasScan'>): { title: string; text: string } {
  if (findings.summary.checkedAt === null)
    return {
      title: 'Not assessed yet',
      text: 'After a port scan the versions that services show are compared with a public database. What is found appears here.',
    };
  return {
    title: 'No active potential vulnerabilities',
    text: 'The database has no record of the versions that were assessed. New records are compared without a new scan.',
  };
}

/** How long an ignore may hold, in days; empty: until it is ended. */
export const ignoreDays = ['', '30', '90', '180', '365'] as const;

/** What a refused form held, and what was wrong with it. */
export interface IgnoreInput {
  reason: string;
  days: string;
  isEverywhere: boolean;
  error: string;
}

/** What is asked for to ignore findings, of one or of several. */
export function ignoreFields(server: Pick<Server, 'addresses'>, refused: IgnoreInput | undefined): Content {
  return [
    field({
      name: 'reason',
      label: 'Reason',
      hint: 'For example: patched by the distribution, or not reachable from the internet.',
      required: true,
      maxLength: schemas.findingReasonMax,
      value: refused?.reason ?? '',
    }),
    field({
      kind: 'select',
      name: 'days',
      label: 'For how long',
      value: refused?.days ?? '90',
      options: ignoreDays.map((value) => ({
        value,
        label: value === '' ? 'Until it is ended' : value === '365' ? 'A year' : `${value} days`,
      })),
    }),
    server.addresses.length > 1 &&
      field({
        kind: 'checkbox',
        name: 'everywhere',
        label: 'At every address of this server',
        hint: 'Where the same version on the same port has this finding.',
        checked: refused?.isEverywhere ?? true,
      }),
  ];
}

/** A finding as the value of a box: with the version that the reader has seen. */
const pickOf = ({ address, transport, port, cveId, fingerprint }: FindingRow): string =>
  [address, `${transport}-${port}`, cveId, fingerprint].join(' ');
