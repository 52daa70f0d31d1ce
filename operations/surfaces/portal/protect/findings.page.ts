/** `/client/servers/{id}/protect/findings`: potential vulnerabilities, active and ignored ones apart, and what could not be assessed. */
import type { FindingRow, Server, UnableRow } from '#operations/views/index.ts';
import {
  age,
  attributes,
  code,
  form,
  formatCount,
  type Html,
  html,
  link,
  moment,
  pageHeader,
  section,
  type Tone,
  table,
  tabs,
  withQuery,
} from '#service-kit/pages/index.ts';
import { evidenceCell, findingMeaning, nvdNotice, softwareOf, unableText } from '../../parts/index.ts';
import type { Visitor } from '../guard.ts';
import { serverFrame } from '../servers/server-frame.ts';
import {
  agesLine,
  bar,
  emptyOf,
  type FindingsOfPage,
  findingsPath,
  findingsState,
  findingsTable,
  oldDatabase,
  serviceHref,
  servicesOf,
} from './findings.section.ts';
import { type IgnoreInput, ignoreFields, pickOf } from './ignore-fields.ts';

export type FindingsView = 'active' | 'ignored' | 'unable';

export interface FindingsPageOptions {
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
      view === 'unable' ? unableTable(options) : view === 'active' ? ignorable(options) : listOf(options),
      section({ title: 'How to read this', id: 'reading' }, [
        html`<p>${findingMeaning}</p>`,
        html`<p>Ignored findings are counted apart. Services that could not be assessed have no findings, which does not mean that there are none.</p>`,
        summary.checkedAt !== null && agesLine(findings),
        html`<p class="hint">${nvdNotice}</p>`,
      ]),
    ],
  );
}

/** The list with a box for each finding, and the form that ignores the ticked ones. */
function ignorable(options: FindingsPageOptions): Html {
  const { visitor, server, rows, refused } = options;
  if (rows.length === 0) return listOf(options);
  return form(
    {
      action: `${findingsPath(server.id)}/ignore`,
      csrfToken: visitor.csrfToken,
      submit: 'Ignore the selected findings',
      submitKind: 'button',
      error: refused?.error,
    },
    [listOf(options), ignoreFields(server, refused)],
  );
}

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
            {
              key: 'by',
              header: 'Ignored',
              cell: (row) => [ignorerOf(row), ' ', age(row.ignoredAt?.getTime(), nowMs)],
            },
            { key: 'until', header: 'Until', cell: (row) => untilOf(row, nowMs) },
          ]
        : [
            {
              key: 'since',
              header: 'Known since',
              kind: 'figure',
              cell: (row) => age(row.firstFoundAt?.getTime(), nowMs),
            },
            {
              key: 'pick',
              header: 'Ignore',
              kind: 'actions',
              cell: (row) =>
                html`<input${attributes({
                  type: 'checkbox',
                  name: 'finding',
                  value: pickOf(row),
                  'aria-label': `Select ${row.cveId}, ${row.transport}/${row.port} of ${row.address}`,
                })}>`,
            },
          ],
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
      {
        key: 'service',
        header: 'Service',
        cell: (row) => link(serviceHref(server.id, row), `${row.transport}/${row.port}`),
      },
      { key: 'address', header: 'Address', kind: 'code', cell: ({ address }) => code(address) },
      { key: 'software', header: 'Answer', cell: softwareOf },
      { key: 'reason', header: 'Why not', kind: 'prose', cell: ({ reason }) => unableText(reason) },
      {
        key: 'original',
        header: 'Of the original',
        cell: (row) =>
          row.upstreamCount === 0
            ? 'none listed'
            : link(serviceHref(server.id, row), `${formatCount(row.upstreamCount)} not counted`),
      },
      { key: 'evidence', header: 'Evidence', cell: (row) => evidenceCell(row, findings.nowMs) },
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
