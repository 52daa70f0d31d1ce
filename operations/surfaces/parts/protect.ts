/** Attacks, port scans and potential vulnerabilities in words, alike on portal and console. */
import { type UnableReason, unableRows } from '#contracts/findings.ts';
import type { IncidentState } from '#contracts/incidents.ts';
import { describeNote, type ScanKind, type ScanProfile, type ScanState } from '#contracts/port-scan/index.ts';
import type { IncidentCursor, OpenAttack } from '#operations/protect/index.ts';
import type { FindingPlace, FindingRow, ServerFindingCount } from '#operations/views/finding-store.ts';
import {
  age,
  badge,
  type Column,
  type Content,
  cellColumn,
  code,
  codeColumn,
  formatCount,
  formatDuration,
  type Html,
  html,
  severityBadge,
  type TableOptions,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';

/** Why a service could not be assessed, as a sentence. */
export const unableText = (reason: string | null): string =>
  unableRows[reason as UnableReason]?.sentence ?? 'It could not be compared with the database.';

/** Why a finding is not certain even for this version, as a sentence; empty where nothing is missing. */
export function incompleteText(incomplete: 'platform' | 'bounded' | null): string {
  if (incomplete === 'platform')
    return 'Incomplete: it depends on something that scans do not see, such as the operating system or another program.';
  if (incomplete === 'bounded') return 'Incomplete: the record or the version is not exact enough to decide.';
  return '';
}

/** What a distribution says of its package, as a sentence. */
export const packageText = ({ fixed_in }: { fixed_in: string | null }): string =>
  fixed_in === null
    ? 'The distribution calls this version of its package affected, and has no fix yet.'
    : `The distribution fixed it in version ${fixed_in} of its package. Upgrade the package.`;

/** What the terms of the database require. */
export const nvdNotice = 'This product uses the NVD API but is not endorsed or certified by the NVD.';

/** What a finding is, and what it is not (NET-2.6.1). */
export const findingMeaning =
  'A potential vulnerability: the detected version matches a published vulnerability. It is not confirmed that the server can be attacked, and not known whether a patch is installed: a package of a distribution may keep the version when it is patched.';

/** Evidence that no scan has renewed for so long is stale: every port is scanned daily (NET-2.7.10). */
const freshMs = 27 * 3_600_000;
/** The copy is renewed every 24 hours; older than this, something is wrong with it. */
const databaseFreshMs = 3 * 86_400_000;

export const isDatabaseOld = (databaseAt: Date | null, nowMs: number): boolean =>
  databaseAt !== null && nowMs - databaseAt.getTime() > databaseFreshMs;

/** `OpenSSH 9.6p1`; what a service did not say reads as unknown. */
export const softwareOf = ({
  product,
  version,
}: {
  product: string | null;
  version: string | null;
}): string => (product === null ? 'unknown product' : [product, version ?? 'without version'].join(' '));

/** When the evidence was found, and that no scan has renewed it where that is so. */
export function evidenceCell({ observedAt }: { observedAt: Date }, nowMs: number): Content {
  return ['scan ', age(observedAt.getTime(), nowMs), ' ', staleMark(observedAt, nowMs)];
}

/** Says that no scan has seen it for longer than scans take turns. */
export const staleMark = (observedAt: Date, nowMs: number): Content =>
  nowMs - observedAt.getTime() > freshMs && badge('warn', 'stale');

/** What is to be known beside the severity: known to be exploited, disputed, incomplete. */
export function findingMarks(finding: {
  isKnownExploited: boolean;
  isDisputed: boolean;
  incomplete: 'platform' | 'bounded' | null;
}): Content {
  return [
    finding.isKnownExploited && [badge('bad', 'known exploited'), ' '],
    finding.isDisputed && [badge('neutral', 'disputed'), ' '],
    finding.incomplete !== null && badge('neutral', 'incomplete'),
  ];
}

/** The record in the database, for people who want all of it. */
export const recordHref = (cveId: string): string =>
  `https://nvd.nist.gov/vuln/detail/${encodeURIComponent(cveId)}`;

/** The active findings of a server in a few words. */
export function findingCountWords({ active, critical, high, knownExploited }: ServerFindingCount): {
  tone: Tone;
  text: string;
} {
  const worst =
    critical > 0 ? `, ${formatCount(critical)} critical` : high > 0 ? `, ${formatCount(high)} high` : '';
  return {
    tone: critical + knownExploited > 0 ? 'bad' : high > 0 ? 'warn' : 'neutral',
    text: `${formatCount(active)} active${worst}`,
  };
}

/** The place of a finding in a list, as it travels in a URL. */
export function writeFindingCursor(last: FindingRow): string {
  const { isKnownExploited, score, cveId, allocationId, transport, port } = last;
  return [isKnownExploited ? 1 : 0, score ?? -1, cveId, allocationId, transport, port].join('_');
}

const cursorPattern =
  /^([01])_(-1|\d{1,2}(?:\.\d{1,3})?)_(CVE-\d{4}-\d{4,19})_(\d{1,15})_(tcp|udp)_(\d{1,5})$/;

/** The cursor of a URL; what is none reads as the first page. */
export function readFindingCursor(text: string | undefined): FindingPlace | undefined {
  const [all, exploited, score, cveId, allocationId, transport, port] = cursorPattern.exec(text ?? '') ?? [];
  if (all === undefined) return undefined;
  return {
    isKnownExploited: exploited === '1',
    score: Number(score),
    cveId: cveId!,
    allocationId: Number(allocationId),
    transport: transport!,
    port: Number(port),
  };
}

/** Findings that a table of services is made of. */
export const groupedMax = 500;

/** A service with its findings, at all addresses that run the same version of it. */
interface ServiceGroup<Row> {
  /** Worst first; one of each CVE and address. */
  rows: [Row, ...Row[]];
  addresses: string[];
  cves: number;
}

interface ServicesTable<Row> extends Pick<TableOptions<ServiceGroup<Row>>, 'isFirst' | 'jsonHref'> {
  /** The worst active ones, at most `groupedMax`. */
  findings: readonly Row[];
  /** All active ones. */
  active: number;
  /** What tells services with the same software and port apart. */
  placeOf?: (row: Row) => unknown;
  nameOf: (worst: Row) => Content;
  /** Behind the name of the service. */
  columns?: readonly Column<Row>[];
}

/** One row a service, the worst first. */
export function servicesTable<Row extends FindingRow>(options: ServicesTable<Row>): Html {
  const { findings, active, placeOf, nameOf, columns = [], ...rest } = options;
  const groups = Map.groupBy(findings, (row) =>
    JSON.stringify([row.transport, row.port, row.product, row.version, placeOf?.(row)]),
  );
  return table<ServiceGroup<Row>>({
    ...rest,
    caption: 'Services with potential vulnerabilities',
    card: { line: ['server', 'cves', 'worst', 'fixed'] },
    columns: [
      cellColumn('service', 'Service', ({ rows: [worst] }) => [
        nameOf(worst),
        html` <span class="hint">${worst.transport}/${worst.port}</span>`,
      ]),
      ...columns.map(({ cell, ...column }) => ({
        ...{ key: column.key, header: column.header },
        cell: ({ rows: [worst] }: ServiceGroup<Row>) => cell(worst),
      })),
      { key: 'cves', header: 'CVEs', kind: 'figure', cell: ({ cves }) => formatCount(cves) },
      cellColumn('worst', 'Worst', ({ rows }) => [
        severityBadge(rows[0].severity, rows[0].score),
        ' ',
        rows.some(({ isKnownExploited }) => isKnownExploited) && badge('bad', 'known exploited'),
      ]),
      cellColumn('fixed', 'Worst fixed in', ({ rows: [worst] }) => worst.package?.fixed_in ?? ''),
      codeColumn('addresses', 'Addresses', ({ addresses }) =>
        addresses.map((address) => html`${code(address)} `),
      ),
    ],
    rows: [...groups.values()].map((rows) => ({
      rows: rows as ServiceGroup<Row>['rows'],
      addresses: [...new Set(rows.map(({ address }) => address))],
      cves: new Set(rows.map(({ cveId }) => cveId)).size,
    })),
    pages:
      active > findings.length
        ? { label: `Of the ${formatCount(findings.length)} worst findings` }
        : undefined,
    empty: { title: 'No findings', text: 'Services with potential vulnerabilities appear here.' },
  });
}

interface ShownIncident {
  isDrill: boolean;
  state: IncidentState;
  lastObservedAt: Date;
}

/** States of incidents in words, alike on portal and console. */
export function incidentBadge({ state, isDrill }: ShownIncident): Html {
  if (state === 'active') return badge(isDrill ? 'info' : 'bad', 'active');
  return state === 'stale' ? badge('warn', 'no recent data') : badge('neutral', 'recovered');
}

export const upperFirst = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** How long an incident has lasted, or did; of a stale one, as far as is known. */
export function durationOf(
  incident: ShownIncident & { startedAt: Date; recoveredAt: Date | null },
  nowMs: number,
): string {
  const endMs =
    incident.recoveredAt?.getTime() ??
    (incident.state === 'stale' ? incident.lastObservedAt.getTime() : nowMs);
  return formatDuration(Math.max(0, (endMs - incident.startedAt.getTime()) / 1000));
}

/** An attacked server in two or three words. */
export function openAttackWords(open: OpenAttack): { tone: Tone; text: string } {
  if (open.isDrill) return { tone: 'info', text: 'attack drill' };
  if (!open.isActive) return { tone: 'warn', text: 'attack, no recent data' };
  return { tone: 'bad', text: open.isInbound ? 'under attack' : 'sends an attack' };
}

/** The mark of an attacked server in a list. */
export function openAttackBadge(open: OpenAttack | undefined): Html | '' {
  if (open === undefined) return '';
  const { tone, text } = openAttackWords(open);
  return badge(tone, text);
}

/** The place of an incident in a list, as it travels in a URL: `1764500000000.UUID`. */
export function writeIncidentCursor(last: { startedAt: Date; id: string }): string {
  return `${last.startedAt.getTime()}.${last.id}`;
}

/** The cursor of a URL; what is none reads as the first page. */
export function readIncidentCursor(text: string | undefined): IncidentCursor | undefined {
  const [, ms, id] = /^(\d{1,14})\.([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/.exec(text ?? '') ?? [];
  return ms === undefined || id === undefined ? undefined : { startedMs: Number(ms), id };
}

interface ScanInWords {
  kind: ScanKind;
  profile: ScanProfile;
  state: ScanState;
  isOverdue: boolean;
  /** Null without a result. */
  result: { notes: readonly string[]; portsOpen: number } | null;
}

/** Port scans in words, alike on portal and console. */
export function scanKind({ kind, profile }: Pick<ScanInWords, 'kind' | 'profile'>): string {
  if (kind === 'manual') return 'Requested, all ports';
  if (kind === 'automatic') return 'First scan, all ports';
  return profile === 'full' ? 'Daily, all ports' : 'Hourly, 100 ports';
}

const tones: Readonly<Record<ScanInWords['state'], Tone>> = {
  queued: 'info',
  running: 'info',
  complete: 'good',
  partial: 'warn',
  expired: 'warn',
  cancelled: 'neutral',
};

export const scanStateWord = ({ state, isOverdue }: Pick<ScanInWords, 'state' | 'isOverdue'>): string =>
  isOverdue ? 'overdue' : state;

export const scanBadge = (scan: Pick<ScanInWords, 'state' | 'isOverdue'>): Html =>
  badge(scan.isOverdue ? 'warn' : tones[scan.state], scanStateWord(scan));

/** What came of a scan, and why it is not complete. */
export function scanOutcome({ state, result, isOverdue }: ScanInWords): string {
  if (isOverdue) return 'No contact with the sensor for over five minutes. The scan may go on.';
  if (result === null) {
    if (state === 'expired') return 'Not started within 24 hours.';
    if (state === 'cancelled') return 'Cancelled before it began.';
    return state === 'partial' ? 'Ended without a result.' : 'No result yet.';
  }
  const found = result.portsOpen === 1 ? '1 open port' : `${formatCount(result.portsOpen)} open ports`;
  return `${[found, ...result.notes.map(describeNote)].join('; ')}.`;
}
