/** One potential vulnerability of one service, and one service with what its original would have. */
import type { FindingRow, UnableRow } from '#operations/views/finding-store.ts';
import type { Server } from '#operations/views/server-store.ts';
import {
  actionButton,
  banner,
  type Content,
  code,
  definitionList,
  form,
  formatCount,
  type Html,
  hiddenField,
  html,
  link,
  moment,
  pageHeader,
  section,
  severityBadge,
  type Tone,
} from '#service-kit/pages/index.ts';
import {
  findingMarks,
  findingMeaning,
  incompleteText,
  nvdNotice,
  packageText,
  recordHref,
  softwareOf,
  staleMark,
  unableText,
} from '../../parts/index.ts';
import type { Visitor } from '../guard.ts';
import { serverFrame } from '../servers/server-frame.ts';
import {
  findingHref,
  findingsPath,
  findingsTable,
  type IgnoreInput,
  ignorable,
  ignoreFields,
  ignorerOf,
  pickColumn,
  serviceHref,
  untilOf,
} from './findings.page.ts';

export interface FindingPageOptions {
  visitor: Visitor;
  server: Server;
  finding: FindingRow;
  /** Of the original of a package: nothing to ignore. */
  isUpstream: boolean;
  nowMs: number;
  toast?: { tone: Tone; text: string } | undefined;
  /** What a refused form held, and what was wrong with it. */
  refused?: IgnoreInput;
}

export function findingPage(options: FindingPageOptions): Html {
  const { visitor, server, finding, isUpstream, nowMs } = options;
  const header = pageHeader({ title: finding.cveId, state: stateOf(options) });
  return serverFrame(
    {
      visitor,
      server,
      tab: 'protect',
      part: `${finding.cveId}, ${finding.transport}/${finding.port} of ${finding.address}`,
      toast: options.toast,
    },
    header,
    [
      // Written by strangers: text of the page, nothing else.
      section({ title: 'What the record says', id: 'record' }, [
        html`<p>${finding.summary}</p>`,
        recordOf(finding, nowMs),
      ]),
      section(
        { title: 'Evidence', id: 'evidence', description: 'What a scan from outside read of this service.' },
        definitionList([
          {
            term: 'Service',
            value: link(serviceHref(server.id, finding), `${finding.transport}/${finding.port}`),
          },
          { term: 'Address', value: code(finding.address) },
          { term: 'Answer', value: softwareOf(finding) },
          {
            term: 'Observed',
            value: [moment(finding.observedAt.getTime(), nowMs), ' ', staleMark(finding.observedAt, nowMs)],
          },
          { term: 'Scan', value: code(finding.scanId) },
          { term: 'Assessed', value: moment(finding.checkedAt.getTime(), nowMs) },
          ...(isUpstream
            ? []
            : [{ term: 'Known since', value: moment(finding.firstFoundAt?.getTime(), nowMs) }]),
        ]),
      ),
      !isUpstream && (finding.state === 'ignored' ? ignoredSection(options) : ignoreSection(options)),
      html`<p class="hint">${findingMeaning}</p>`,
      html`<p class="hint">${nvdNotice} ${link(findingsPath(server.id), 'All findings')}</p>`,
    ],
  );
}

function stateOf({ finding, isUpstream, nowMs }: FindingPageOptions): { tone: Tone; text: Content } {
  if (isUpstream)
    return {
      tone: 'neutral',
      text: 'Of the original of a package. Not counted: the package may have it fixed.',
    };
  if (finding.state === 'ignored')
    return {
      tone: 'neutral',
      text: html`Ignored by ${ignorerOf(finding)} until ${untilOf(finding, nowMs)}.`,
    };
  const isWorst = finding.severity === 'critical' || finding.severity === 'high' || finding.isKnownExploited;
  return {
    tone: isWorst ? 'bad' : 'warn',
    text: `Active potential vulnerability of ${softwareOf(finding)}.`,
  };
}

function recordOf(finding: FindingRow, nowMs: number): Html {
  const incomplete = incompleteText(finding.incomplete);
  return definitionList([
    { term: 'Severity', value: [severityBadge(finding.severity, finding.score), ' ', findingMarks(finding)] },
    {
      term: 'CVSS',
      value:
        finding.cvssVector === null
          ? finding.score === null
            ? 'not rated'
            : `score ${finding.score.toFixed(1)}, without a vector`
          : [`${finding.cvssVersion ?? ''} `, code(finding.cvssVector)],
    },
    ...(incomplete === '' ? [] : [{ term: 'Certainty', value: incomplete }]),
    ...(finding.package ? [{ term: 'Package', value: packageText(finding.package) }] : []),
    { term: 'Published', value: moment(finding.publishedAt.getTime(), nowMs) },
    { term: 'Changed', value: moment(finding.modifiedAt.getTime(), nowMs) },
    { term: 'Record', value: link(recordHref(finding.cveId), 'nvd.nist.gov') },
  ]);
}

const bound =
  'It holds for this version of this service, on this port. Another version, or another server with this address, starts without it.';

function ignoreSection({ visitor, server, finding, refused }: FindingPageOptions): Html {
  return section(
    {
      title: 'Ignore',
      id: 'ignore',
      description: `${bound} An ignored finding is counted apart and not alerted.`,
    },
    form(
      {
        action: `${findingHref(server.id, finding)}/ignore`,
        csrfToken: visitor.csrfToken,
        submit: 'Ignore this finding',
        submitKind: 'button',
        error: refused?.error,
      },
      [
        // The version that the person has seen: if it has changed since, nothing is ignored.
        hiddenField('fingerprint', finding.fingerprint),
        ignoreFields(server, refused),
      ],
    ),
  );
}

function ignoredSection({ visitor, server, finding, nowMs }: FindingPageOptions): Html {
  return section({ title: 'Ignored', id: 'ignore', description: bound }, [
    definitionList([
      { term: 'Reason', value: finding.ignoreReason },
      { term: 'By', value: [ignorerOf(finding), ' ', moment(finding.ignoredAt?.getTime(), nowMs)] },
      { term: 'Until', value: untilOf(finding, nowMs) },
    ]),
    actionButton({
      action: `${findingHref(server.id, finding)}/end-ignore`,
      csrfToken: visitor.csrfToken,
      label: 'End ignoring',
      fields: { fingerprint: finding.fingerprint },
    }),
  ]);
}

export function servicePage({
  visitor,
  server,
  service,
  reason,
  rows,
  isCut,
  nowMs,
}: {
  visitor: Visitor;
  server: Server;
  service: Pick<
    UnableRow,
    'address' | 'transport' | 'port' | 'product' | 'version' | 'scanId' | 'observedAt'
  >;
  /** Null: it was assessed. */
  reason: UnableRow['reason'];
  /** Its own, or those of the original of a package; the worst first. */
  rows: readonly FindingRow[];
  /** There are more than are listed. */
  isCut: boolean;
  nowMs: number;
}): Html {
  const name = `${service.transport}/${service.port}`;
  const title = `${name} of ${service.address}`;
  const state: { tone: Tone; text: string } =
    reason === null
      ? { tone: 'neutral', text: 'Assessed.' }
      : { tone: 'neutral', text: `Could not be assessed. ${unableText(reason)}` };
  return serverFrame({ visitor, server, tab: 'protect', part: title }, pageHeader({ title, state }), [
    section(
      { title: 'Evidence', id: 'evidence' },
      definitionList([
        { term: 'Answer', value: softwareOf(service) },
        {
          term: 'Observed',
          value: [moment(service.observedAt.getTime(), nowMs), ' ', staleMark(service.observedAt, nowMs)],
        },
        { term: 'Scan', value: code(service.scanId) },
      ]),
    ),
    reason !== null &&
      rows.length > 0 &&
      banner({
        tone: 'info',
        title: 'These are findings of the original software, not of this package',
        text: 'A distribution fixes faults without changing the version. Your package manager says which of these it has fixed. They are counted nowhere.',
      }),
    reason === null
      ? ignorable(
          { visitor, server, rows },
          findingsTable(server.id, rows, nowMs, {
            caption: 'Findings of this service',
            columns: [pickColumn(true)],
            empty: { title: 'No findings', text: 'The database has no record of this version.' },
          }),
        )
      : findingsTable(server.id, rows, nowMs, {
          caption: 'Findings of the original',
          empty: {
            title: 'Nothing is listed',
            text: 'Without a product and a version that are certain, nothing can be compared.',
          },
        }),
    isCut && html`<p class="hint">The worst ${formatCount(rows.length)} are listed.</p>`,
    html`<p class="hint">${findingMeaning}</p>`,
    html`<p class="hint">${nvdNotice} ${link(findingsPath(server.id), 'All findings')}</p>`,
  ]);
}
