/** Potential vulnerabilities on the Protect page: how many, how severe, the worst of them, and what could not be assessed. */
import type { ScanTransport } from '#contracts/port-scan/index.ts';
import type { ServerFindings } from '#operations/protect/index.ts';
import type { FindingRow, Server } from '#operations/views/index.ts';
import {
  age,
  banner,
  type Column,
  type Content,
  code,
  formatCount,
  type Html,
  html,
  link,
  moment,
  section,
  severityBadge,
  severityBar,
  type TableOptions,
  type Tone,
  table,
  withQuery,
} from '#service-kit/pages/index.ts';
import {
  evidenceCell,
  findingMarks,
  findingMeaning,
  isDatabaseOld,
  nvdNotice,
  servicesTable,
  softwareOf,
} from '../../parts/index.ts';

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

export function bar(serverId: number, { summary }: Pick<ServerFindings, 'summary'>): Html {
  return severityBar({
    label: 'Active potential vulnerabilities by severity',
    counts: summary,
    href: (severity) => withQuery(findingsPath(serverId), { severity }),
  });
}

/** Findings by service: what there is to upgrade, the worst first. */
export const servicesOf = (serverId: number, findings: readonly FindingRow[], active: number): Html =>
  servicesTable({
    ...{ findings, active, jsonHref: `${findingsPath(serverId)}.json` },
    nameOf: (worst) => link(serviceHref(serverId, worst), softwareOf(worst)),
  });

/** The state in a sentence. It never says that a server is safe: only what was compared is known. */
export function findingsState({ summary, hasScan }: Pick<FindingsOfPage, 'summary' | 'hasScan'>): {
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
export function oldDatabase({ summary, nowMs }: Pick<ServerFindings, 'summary' | 'nowMs'>): Content {
  const { databaseAt } = summary;
  if (databaseAt === null || !isDatabaseOld(databaseAt, nowMs)) return '';
  return banner({
    tone: 'warn',
    title: html`The copy of the database was fetched ${age(databaseAt.getTime(), nowMs)}`,
    text: 'It is fetched daily. Records that were published since then are missing.',
  });
}

/** How old the assessment and the database are, and what the page leaves out. */
export function agesLine({ summary, nowMs }: Pick<ServerFindings, 'summary' | 'nowMs'>): Html {
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
      { key: 'cve', header: 'CVE', cell: (row) => link(findingHref(serverId, row), row.cveId) },
      { key: 'severity', header: 'Severity', cell: (row) => severityBadge(row.severity, row.score) },
      {
        key: 'service',
        header: 'Service',
        cell: (row) => [
          code(`${row.transport}/${row.port}`),
          html` ${softwareOf(row)} <span class="hint">${row.address}</span>`,
        ],
      },
      { key: 'evidence', header: 'Evidence', cell: (row) => evidenceCell(row, nowMs) },
      { key: 'marks', header: 'Notes', cell: findingMarks },
      ...columns,
    ],
    card: { line: ['severity', 'service'] },
    rows: findings,
    isStacked: true,
    ...more,
  });
}

/** Why the list is empty. */
export function emptyOf(findings: Pick<FindingsOfPage, 'summary' | 'hasScan'>): {
  title: string;
  text: string;
} {
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
