/** `/console/attacks/`: attacks on all customers' servers, and from them, newest first. */

import { attackClasses, titleOfClass } from '#contracts/attack-classes.ts';
import type { Features } from '#operations/features.ts';
import type { AttackRow, OpenAttackCounts } from '#operations/views/attack-list-store.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  age,
  badge,
  type Column,
  cellColumn,
  code,
  formatBitRate,
  formatCount,
  type Html,
  link,
  section,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';
import { figureColumn, readList } from '#service-kit/web/index.ts';
import { durationOf, incidentBadge, readIncidentCursor, writeIncidentCursor } from '../../parts/index.ts';
import { type MonitorLink, readMonitorLink } from '../links.ts';
import { customerColumn, sendListPage, serverCell, subjectFilters, subjectOf } from '../list-page.ts';

const stateChoices = [
  { value: 'open', label: 'Active', states: ['active', 'stale'] },
  { value: 'stale', label: 'No recent data', states: ['stale'] },
  { value: 'recovered', label: 'Recovered', states: ['recovered'] },
];

export function registerAttacks(app: App, deps: Features): void {
  app.get('/attacks/', async (request, reply) => {
    const { actor } = request.staff!;
    const inMonitor = await readMonitorLink(deps.signOn);
    const [list, open] = await Promise.all([
      readList(request, {
        ...{ id: 'attacks', caption: 'Attacks', path: '/console/attacks/', isStacked: true },
        ...{ card: { line: ['class', 'state', 'tenant'] }, refreshSeconds: 10 },
        filters: [
          { name: 'state', label: 'State', by: 'tabs', options: stateChoices },
          {
            ...{ name: 'class', label: 'Class', any: 'All classes' },
            options: attackClasses.map((value) => ({ value, label: titleOfClass(value) })),
          },
          {
            ...{ name: 'severity', label: 'Severity', any: 'Attacks' },
            options: [{ value: 'info', label: 'Information' }],
          },
          ...subjectFilters,
        ],
        cursor: { write: writeIncidentCursor, read: readIncidentCursor },
        read: ({ state, severity, class: name, ...subject }, { limit, after }) =>
          deps.protectIncidents.listAll(actor, {
            ...{ limit, after, class: name, ...subjectOf(subject) },
            states: stateChoices.find(({ value }) => value === state)?.states,
            severity: severity === 'info' ? 'info' : 'attack',
          }),
        columns: columnsOf(inMonitor, deps.clock.nowMs()),
        rowTone,
        empty: {
          title: 'No attacks',
          text: 'Attacks appear here when a monitor delivers them. Its admin project needs the permission ddos_incident_ingest.',
          action: { label: 'Admin projects', href: '/console/projects/' },
        },
        noMatch: { title: 'No attack matches', text: 'Choose other filters.' },
      }),
      deps.protectIncidents.countOpen(actor),
    ]);
    return sendListPage(request, reply, { title: 'Attacks', current: 'attacks', state: stateOf(open) }, [
      list.tabs('state', 'Attacks by state', { open: open.attacks + open.stale }),
      list.table,
    ]);
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

function columnsOf(inMonitor: MonitorLink, nowMs: number): Column<AttackRow>[] {
  return [
    cellColumn('server', 'Server', (row) => serverCell(row, code(row.address))),
    customerColumn,
    cellColumn('class', 'Class', (row) => [
      titleOfClass(row.class),
      row.isDrill && [' ', badge('info', 'drill')],
      ' ',
      inMonitor(
        { kind: 'incident', incidentId: row.id },
        { kind: 'plain', about: `${titleOfClass(row.class)} of ${row.address}` },
      ),
    ]),
    cellColumn('direction', 'Direction', (row) => row.direction),
    cellColumn('state', 'State', (row) => stateBadge(row)),
    cellColumn('since', 'Since', (row) => age(row.startedAt.getTime(), nowMs)),
    cellColumn('lasted', 'Duration', (row) =>
      isOpen(row) || row.recoveredAt ? durationOf(row, nowMs) : null,
    ),
    {
      key: 'pps',
      header: 'Peak',
      unit: 'packets/s',
      kind: 'figure',
      cell: (row) => formatCount(Math.round(row.peakPps)),
      field: 'peak_pps',
      value: (row) => row.peakPps,
    },
    figureColumn('bps', 'Peak bit rate', (row) => row.peakBps, formatBitRate, { field: 'peak_bps' }),
  ];
}

function stateBadge(row: AttackRow): Html {
  if (row.state !== 'recovered' && row.isReleased) return badge('neutral', 'server destroyed');
  return incidentBadge(row);
}
