/** Tables that count potential vulnerabilities: by server, and by record of the database. */

import { ratedSeverities } from '#contracts/findings.ts';
import type { AssessedServer, FindingCounts, TouchingCve } from '#monitor/vulnerabilities/index.ts';
import { age, badge, formatCount, html, isoTime, link } from '#service-kit/pages/index.ts';
import type { DataColumn, ListDeclaration } from '#service-kit/web/index.ts';
import { ageColumn, linkColumn, textColumn } from '#service-kit/web/index.ts';
import { cveHref, ratingBadge, remarks, serverHref } from './finding-text.ts';

/** What of a list is the same wherever its rows come from. */
export type Shown<Row> = Omit<ListDeclaration<Row, undefined>, 'path' | 'filters' | 'read'>;

export interface ServerLine {
  server: AssessedServer;
  name: string;
}

export const activeOf = ({ critical, high, medium, low, unrated }: FindingCounts): number =>
  critical + high + medium + low + unrated;

function figure<Row>(key: string, header: string, read: (row: Row) => number): DataColumn<Row> {
  const cell = (row: Row) => {
    const count = read(row);
    return count === 0 ? html`<span class="hint">0</span>` : formatCount(count);
  };
  return { key, header, kind: 'figure', cell, value: read };
}

export const serverList = (siteId: number, nowMs: number) =>
  ({
    ...{ id: 'servers', caption: 'Servers with open ports', isStacked: true },
    card: { line: [...ratedSeverities.slice(0, 3), 'checked'] },
    rowTone: ({ server }) => (server.critical + server.high > 0 ? 'warn' : undefined),
    columns: [
      {
        key: 'server',
        header: 'Server',
        cell: ({ server, name }) => link(serverHref(siteId, server), name),
        value: ({ name }) => name,
      },
      ...([...ratedSeverities, 'unrated'] as const).map((name) =>
        figure<ServerLine>(name, `${name[0]!.toUpperCase()}${name.slice(1)}`, ({ server }) => server[name]),
      ),
      figure('ignored', 'Ignored', ({ server }) => server.ignored),
      figure('services', 'Services', ({ server }) => server.services),
      figure('unable', 'Unable', ({ server }) => server.unable),
      {
        key: 'checked',
        header: 'Assessed',
        kind: 'figure',
        cell: ({ server }) =>
          server.checkedAtMs === null ? badge('info', 'waiting') : age(server.checkedAtMs, nowMs),
        field: 'checked_at',
        value: ({ server }) => isoTime(server.checkedAtMs),
      },
      {
        key: 'database',
        header: 'Records',
        kind: 'figure',
        cell: ({ server }) => (server.databaseAtMs === null ? 'none' : age(server.databaseAtMs, nowMs)),
        field: 'database_at',
        value: ({ server }) => isoTime(server.databaseAtMs),
      },
      ageColumn('evidence', 'Scanned', ({ server }) => server.evidenceAtMs, nowMs, { field: 'evidence_at' }),
    ],
    fields: [
      { field: 'cluster_id', value: ({ server }) => server.clusterId },
      { field: 'vm_id', value: ({ server }) => server.serverId },
    ],
    empty: {
      title: 'No open ports yet',
      text: 'Services that port scans find are assessed within minutes. Sensors scan each server every hour.',
    },
  }) satisfies Shown<ServerLine>;

export function cveList(siteId: number, titles: ReadonlyMap<string, string>) {
  const products = (row: TouchingCve) => row.products.map((key) => titles.get(key) ?? key).join(', ');
  return {
    ...{ id: 'cves', caption: 'Records that touch services', isStacked: true },
    card: { line: ['severity', 'products'] },
    columns: [
      linkColumn('cve', 'CVE', ({ cve }) => [cve, cveHref(siteId, cve)]),
      {
        key: 'severity',
        header: 'Severity',
        cell: ({ finding }) => ratingBadge(finding),
        value: ({ finding }) => finding.severity?.rating ?? null,
      },
      figure('services', 'Services', ({ services }) => services),
      figure('ignored', 'Ignored', ({ ignored }) => ignored),
      { key: 'products', header: 'Product', cell: products, value: products },
      {
        key: 'remarks',
        header: 'Remarks',
        kind: 'prose',
        cell: ({ finding }) => remarks(finding),
        field: 'incomplete',
        value: ({ finding }) => finding.incomplete.join(' '),
      },
      textColumn('summary', 'Summary', ({ finding }) => finding.summary, { kind: 'prose' }),
    ],
    fields: [
      { field: 'score', value: ({ finding }) => finding.severity?.score ?? null },
      { field: 'known_exploited', value: ({ finding }) => finding.isKnownExploited },
      { field: 'disputed', value: ({ finding }) => finding.isDisputed },
      { field: 'published_at', value: ({ finding }) => finding.publishedAt },
    ],
    empty: {
      title: 'No record touches a service',
      text: 'Records of the database whose ranges have the version of an assessed service appear here.',
    },
  } satisfies Shown<TouchingCve>;
}
