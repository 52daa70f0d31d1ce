import { attackClasses, titleOfClass } from '#contracts/attack-classes.ts';
import type { AttackRow, OpenAttackCounts } from '#operations/views/index.ts';
import {
  age,
  badge,
  type Column,
  code,
  field,
  formatBitRate,
  formatCount,
  type Html,
  link,
  section,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';
import { durationOf, incidentBadge } from '../../parts/index.ts';
import type { Staff } from '../guard.ts';
import type { MonitorLink } from '../monitor-link.ts';
import { customerColumn, type ServerListQuery, serverCell, serverListPage } from '../server-list.ts';

export interface AttacksQuery extends ServerListQuery {
  class?: string;
  /** `info`; default attacks. */
  severity?: string;
}

export interface AttacksPageOptions {
  staff: Staff;
  attacks: readonly AttackRow[];
  open: OpenAttackCounts;
  query: AttacksQuery;
  /** Path and query of the first page. */
  url: string;
  nextHref: string | undefined;
  inMonitor: MonitorLink;
  nowMs: number;
}

export const stateChoices = [
  { value: 'open', label: 'Active', states: ['active', 'stale'] },
  { value: 'stale', label: 'No recent data', states: ['stale'] },
  { value: 'recovered', label: 'Recovered', states: ['recovered'] },
] as const;

/** `/console/attacks/`: attacks of all customers, newest first. */
export function attacksPage(options: AttacksPageOptions): Html {
  const { staff, attacks, open, query, url, nextHref, nowMs } = options;
  return serverListPage<AttackRow>({
    ...{ staff, title: 'Attacks', current: 'attacks', path: '/console/attacks/', query, url, nextHref },
    state: stateOf(open),
    tabs: stateChoices.map(({ value, label }) => ({
      ...{ value, label, count: value === 'open' ? open.attacks + open.stale : undefined },
    })),
    fields: fieldsOf(query),
    columns: columnsOf(options.inMonitor, nowMs),
    rows: attacks,
    rowTone,
    empty: {
      title: 'No attacks',
      text: 'Attacks appear here when a monitor delivers them. Its admin project needs the permission ddos_incident_ingest.',
    },
    noMatch: { title: 'No attack matches', text: 'Choose other filters.' },
  });
}

/** The last ones, for the overview. */
export function latestAttacks(attacks: readonly AttackRow[], inMonitor: MonitorLink, nowMs: number): Html {
  return section(
    {
      title: 'Latest attacks',
      id: 'attacks',
      actions: link('/console/attacks/', 'All attacks', { kind: 'button' }),
    },
    table<AttackRow>({
      caption: 'Latest attacks',
      card: { line: ['customer', 'class', 'state'] },
      columns: columnsOf(inMonitor, nowMs),
      rows: attacks,
      rowTone,
      empty: { title: 'No attacks', text: 'Attacks appear here when a monitor delivers them.' },
    }),
  );
}

const rowTone = (row: AttackRow) =>
  isOpen(row) && !row.isDrill && row.state !== 'stale' ? ('bad' as const) : undefined;

const isOpen = (row: AttackRow) => row.state !== 'recovered' && !row.isReleased;

function stateOf({ attacks, servers, stale }: OpenAttackCounts): { tone: Tone; text: string } {
  const many = (count: number, one: string) => `${formatCount(count)} ${one}${count === 1 ? '' : 's'}`;
  if (attacks === 0 && stale > 0)
    return { tone: 'warn', text: `No recent data on ${many(stale, 'attack')}.` };
  if (attacks === 0) return { tone: 'good', text: 'All quiet.' };
  return { tone: 'bad', text: `${many(attacks, 'attack')} on ${many(servers, 'server')} now.` };
}

function fieldsOf({ class: name, severity }: AttacksQuery): Html[] {
  return [
    field({
      kind: 'select',
      name: 'class',
      label: 'Class',
      value: name ?? '',
      options: [
        { value: '', label: 'All classes' },
        ...attackClasses.map((value) => ({ value, label: titleOfClass(value) })),
      ],
    }),
    field({
      kind: 'select',
      name: 'severity',
      label: 'Severity',
      value: severity ?? '',
      options: [
        { value: '', label: 'Attacks' },
        { value: 'info', label: 'Information' },
      ],
    }),
  ];
}

function columnsOf(inMonitor: MonitorLink, nowMs: number): Column<AttackRow>[] {
  return [
    {
      key: 'server',
      header: 'Server',
      cell: (row) => serverCell(row, code(row.address)),
    },
    customerColumn,
    {
      key: 'class',
      header: 'Class',
      cell: (row) => [
        titleOfClass(row.class),
        row.isDrill && [' ', badge('info', 'drill')],
        ' ',
        inMonitor(
          { kind: 'incident', incidentId: row.id },
          { kind: 'plain', about: `${titleOfClass(row.class)} of ${row.address}` },
        ),
      ],
    },
    { key: 'direction', header: 'Direction', cell: (row) => row.direction },
    { key: 'state', header: 'State', cell: (row) => stateBadge(row) },
    { key: 'since', header: 'Since', cell: (row) => age(row.startedAt.getTime(), nowMs) },
    {
      key: 'lasted',
      header: 'Duration',
      cell: (row) => (isOpen(row) || row.recoveredAt ? durationOf(row, nowMs) : null),
    },
    {
      key: 'pps',
      header: 'Peak',
      unit: 'packets/s',
      kind: 'figure',
      cell: (row) => formatCount(Math.round(row.peakPps)),
    },
    { key: 'bps', header: 'Peak bit rate', kind: 'figure', cell: (row) => formatBitRate(row.peakBps) },
  ];
}

function stateBadge(row: AttackRow): Html {
  if (row.state !== 'recovered' && row.isReleased) return badge('neutral', 'server destroyed');
  return incidentBadge(row);
}
