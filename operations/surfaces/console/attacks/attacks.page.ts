import { incidentClasses } from '#contracts/admin-api/incidents.ts';
import type { AttackRow } from '#operations/protect/index.ts';
import {
  age,
  badge,
  type Column,
  type Content,
  code,
  field,
  form,
  formatBitRate,
  formatCount,
  type Html,
  hiddenField,
  link,
  pageHeader,
  refreshing,
  type Tone,
  table,
  tabs,
  withQuery,
} from '#service-kit/pages/index.ts';
import { durationOf, incidentBadge, isSilent, titleOfClass } from '../../parts/index.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';

export interface AttacksQuery extends Record<string, string | undefined> {
  /** One of `stateChoices`. */
  state?: string;
  class?: string;
  /** `info`; default attacks. */
  severity?: string;
  server?: string;
  tenant?: string;
  after?: string;
}

export interface AttacksPageOptions {
  staff: Staff;
  attacks: readonly AttackRow[];
  open: { attacks: number; servers: number };
  query: AttacksQuery;
  /** Path and query of the first page. */
  url: string;
  nextHref: string | undefined;
  nowMs: number;
}

export const stateChoices = [
  { value: 'open', label: 'Going on', states: ['active', 'stale'] },
  { value: 'stale', label: 'No news', states: ['stale'] },
  { value: 'recovered', label: 'Recovered', states: ['recovered'] },
] as const;

/** `/console/attacks/`: attacks of all customers, newest first. */
export function attacksPage(options: AttacksPageOptions): Html {
  const { staff, attacks, open, query, url, nextHref, nowMs } = options;
  const href = (state: string | undefined) => withQuery(url, { state });
  return consoleFrame({ staff, title: 'Attacks', current: 'attacks', breadcrumb: [{ label: 'Attacks' }] }, [
    refreshing(
      { id: 'attacks-state', url, everySeconds: 10 },
      pageHeader({ title: 'Attacks', state: stateOf(open) }),
    ),
    tabs('Attacks by state', [
      { label: 'All', href: href(undefined), current: query.state === undefined },
      ...stateChoices.map(({ value, label }) => ({
        label,
        href: href(value),
        current: query.state === value,
        count: value === 'open' ? open.attacks : undefined,
      })),
    ]),
    filterForm(query),
    refreshing(
      { id: 'attacks-list', url: withQuery(url, { after: query.after }), everySeconds: 10 },
      table<AttackRow>({
        caption: 'Attacks',
        columns: columnsOf(nowMs),
        isStacked: true,
        rows: attacks,
        rowTone: (row) => (isOpen(row) && !row.isDrill && !isSilent(row, nowMs) ? 'bad' : undefined),
        pages:
          nextHref === undefined && query.after === undefined
            ? undefined
            : { nextHref, previousHref: query.after === undefined ? undefined : url },
        empty: emptyOf(query),
      }),
    ),
  ]);
}

const isOpen = (row: AttackRow) => row.state !== 'recovered' && !row.isReleased;

function stateOf({ attacks, servers }: AttacksPageOptions['open']): { tone: Tone; text: string } {
  if (attacks === 0) return { tone: 'good', text: 'All quiet.' };
  const many = (count: number, one: string) => `${formatCount(count)} ${one}${count === 1 ? '' : 's'}`;
  return { tone: 'bad', text: `${many(attacks, 'attack')} on ${many(servers, 'server')} now.` };
}

function filterForm({ state, class: name, severity, server, tenant }: AttacksQuery): Html {
  return form(
    { action: '/console/attacks/', method: 'get', submit: 'Filter', submitKind: 'button', layout: 'inline' },
    [
      state !== undefined && hiddenField('state', state),
      server !== undefined && hiddenField('server', server),
      tenant !== undefined && hiddenField('tenant', tenant),
      field({
        kind: 'select',
        name: 'class',
        label: 'Class',
        value: name ?? '',
        options: [
          { value: '', label: 'All classes' },
          ...incidentClasses.map((value) => ({ value, label: titleOfClass(value) })),
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
    ],
  );
}

function columnsOf(nowMs: number): Column<AttackRow>[] {
  return [
    {
      key: 'server',
      header: 'Server',
      cell: (row): Content => [
        row.isReleased ? row.serverName : link(`/console/servers/${row.serverId}`, row.serverName),
        ' ',
        code(row.address),
      ],
    },
    {
      key: 'tenant',
      header: 'Customer',
      cell: (row) => link(`/console/customers/${row.tenantId}`, row.tenantName),
    },
    {
      key: 'class',
      header: 'Class',
      cell: (row) => [titleOfClass(row.class), row.isDrill && [' ', badge('info', 'drill')]],
    },
    { key: 'direction', header: 'Direction', cell: (row) => row.direction },
    { key: 'state', header: 'State', cell: (row) => stateBadge(row, nowMs) },
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

function stateBadge(row: AttackRow, nowMs: number): Html {
  if (row.state !== 'recovered' && row.isReleased) return badge('neutral', 'server destroyed');
  return incidentBadge(row, nowMs);
}

function emptyOf(query: AttacksQuery) {
  if (Object.keys(query).length > 0)
    return {
      title: 'No attack matches',
      text: 'Choose other filters.',
      action: { label: 'Show all', href: '/console/attacks/' },
    };
  return {
    title: 'No attacks',
    text: 'Attacks appear here when a monitor delivers them. Its admin project needs the permission ddos_incident_ingest.',
    action: { label: 'Admin projects', href: '/console/projects/' },
  };
}
