/** Usage of a server by day and month, below its Traffic page. */
import type {
  AccountBandwidth,
  Bandwidth,
  BandwidthHistory,
  BandwidthRow,
} from '#operations/bandwidth/index.ts';
import {
  age,
  banner,
  type ChartReason,
  type Content,
  cellColumn,
  chart,
  formatBytes,
  formatCount,
  formatMonth,
  type Html,
  html,
  link,
  progress,
  section,
  shareBar,
  stat,
  stats,
  table,
  tabs,
  withQuery,
} from '#service-kit/pages/index.ts';
import type { Flags } from '../../parts/index.ts';

export interface BandwidthOptions {
  history: BandwidthHistory;
  account: AccountBandwidth;
  source: Bandwidth['source'];
  poolCounts: Bandwidth['poolCounts'];
  /** When the server was created. */
  createdMs: number;
  /** What happened to the server in the month of the days; of months nothing is said. */
  flags: Flags;
  /** The page that holds the sections, by day. */
  url: string;
  nowMs: number;
}

const sourceNames = {
  hypervisor: 'counters of the hypervisor, read once a minute',
  telemetry: 'traffic observed minute by minute',
} as const;

/** The usage of days and months, and the server's part in the pool: all that bandwidth is charged by. */
export function bandwidthSections(options: BandwidthOptions): Html[] {
  const { history, url } = options;
  return [
    section({ title: 'Usage', id: 'usage', description: stateOf(options) }, [
      figures(options),
      tabs('Usage by day or month', [
        { label: 'Days of this month', href: url, current: history.granularity === 'day' },
        { label: 'Months', href: withQuery(url, { use: 'month' }), current: history.granularity === 'month' },
      ]),
      history.current.lastSampledAt === null &&
        banner({
          tone: 'info',
          title: 'No measurements this month yet',
          text: 'The first figures appear a few minutes after the first traffic.',
        }),
      useChart(options),
      options.flags.note && html`<p class="hint">${options.flags.note}</p>`,
      rowsTable(options),
    ]),
    poolSection(options),
  ];
}

function stateOf({ history, nowMs }: BandwidthOptions): Content {
  const { current } = history;
  if (current.lastSampledAt === null) return `Not measured in ${formatMonth(current.period.name)} yet.`;
  return [
    `${formatBytes(current.outboundBytes)} out and ${formatBytes(current.inboundBytes)} in this month, last measured `,
    age(current.lastSampledAt.getTime(), nowMs),
    '. Nothing is cut off.',
  ];
}

function figures({ history, source, poolCounts }: BandwidthOptions): Html {
  const { current } = history;
  const isKnown = current.lastSampledAt !== null;
  return stats(
    stat({
      label: 'Out this month',
      value: isKnown ? formatBytes(current.outboundBytes) : undefined,
      source: sourceNames[source],
    }),
    stat({ label: 'In this month', value: isKnown ? formatBytes(current.inboundBytes) : undefined }),
    stat({
      label: 'Of the pool',
      value: isKnown ? formatBytes(current.poolBytes) : undefined,
      source: countsText(current, poolCounts),
    }),
  );
}

/** What counts against the pool, and how much of the usage does not. */
function countsText(row: BandwidthRow, poolCounts: Bandwidth['poolCounts']): string {
  const isTotal = poolCounts === 'total';
  const scans = row.ownScanOutboundBytes + (isTotal ? row.ownScanInboundBytes : 0);
  const attacks = row.attackOutboundBytes + (isTotal ? row.attackInboundBytes : 0);
  const left = [
    attacks > 0 && `${formatBytes(attacks)} of attacks`,
    scans > 0 && `${formatBytes(scans)} of port scans by your provider`,
  ].filter((each) => each !== false);
  const counts = isTotal ? 'both ways count' : 'only what goes out counts';
  return left.length === 0 ? counts : `${counts}, without ${left.join(' and ')}`;
}

function useChart({ history, source, createdMs, flags, nowMs }: BandwidthOptions): Html {
  const rows = history.rows.toReversed();
  const values = (name: 'inboundBytes' | 'outboundBytes') =>
    rows.map((row) => (row.lastSampledAt === null ? null : row[name]));
  const isDaily = history.granularity === 'day';
  return chart({
    id: 'bandwidth',
    title: isDaily ? 'Bytes by UTC day' : 'Bytes by UTC month',
    unit: 'bytes',
    source: sourceNames[source],
    data: {
      timesMs: rows.map((row) => row.period.startMs),
      shape: 'bars',
      // All days of the month, also those to come.
      ...(isDaily && {
        ...{ stepMs: dayMs, range: monthOf(history.current.period), flags: flags.flags },
        reasons: dayReasons({ history, createdMs, nowMs }),
      }),
      series: [
        { label: 'In', role: 'in', values: values('inboundBytes') },
        { label: 'Out', role: 'out', values: values('outboundBytes') },
      ],
    },
    emptyText: 'Nothing was measured in this period.',
  });
}

const monthOf = ({ startMs, endMs }: BandwidthRow['period']) => ({ fromMs: startMs, toMs: endMs });

function rowsTable({ history, nowMs }: BandwidthOptions): Html {
  const known = (row: BandwidthRow, bytes: number) =>
    row.lastSampledAt === null ? null : formatBytes(bytes);
  return table<BandwidthRow>({
    caption: history.granularity === 'day' ? 'Use by day' : 'Use by month',
    card: { line: ['in', 'out'] },
    refreshSeconds: 60,
    columns: [
      cellColumn('period', history.granularity === 'day' ? 'Day' : 'Month', (row) => row.period.name),
      { key: 'in', header: 'In', kind: 'figure', cell: (row) => known(row, row.inboundBytes) },
      { key: 'out', header: 'Out', kind: 'figure', cell: (row) => known(row, row.outboundBytes) },
      cellColumn('share', 'Share of the workspace’s usage', (row) =>
        row.lastSampledAt === null ? null : shareBar(row.poolShare),
      ),
      cellColumn('sampled', 'Last measured', (row) => age(row.lastSampledAt?.getTime(), nowMs)),
    ],
    rows: history.rows,
    empty: { title: 'Nothing yet', text: 'Usage of each UTC day appears here.' },
  });
}

function projectionOf({ projection }: AccountBandwidth['pool']): string {
  if (projection === null) return 'a projection follows after the first hour';
  const { bytes, hours } = projection;
  return `projected ${formatBytes(bytes)} by the end of the month, at the rate of ${formatCount(hours)} hours`;
}

function poolSection({ account }: BandwidthOptions): Html {
  const { pool, month, servers } = account;
  const isMeasured = servers.some((row) => row.lastSampledAt !== null);
  const share = pool.allowanceBytes === 0 ? 0 : pool.usedBytes / pool.allowanceBytes;
  return section(
    {
      title: `Workspace pool in ${formatMonth(month.name)}`,
      id: 'pool',
      description:
        'All servers of the workspace share it. Every server after the first adds to it by the hour. The rest of this month’s addition is still accruing.',
    },
    [
      isMeasured
        ? progress({
            label: `${formatBytes(pool.usedBytes)} of ${formatBytes(pool.allowanceBytes)} used`,
            value: Math.min(1, share),
            max: 1,
            detail: projectionOf(pool),
          })
        : banner({
            tone: 'info',
            title: `${formatBytes(pool.allowanceBytes)} included, nothing measured yet`,
          }),
      stats(
        stat({ label: 'Base', value: formatBytes(pool.baseBytes) }),
        stat({ label: 'Loyalty bonus', value: formatBytes(pool.tenureBytes) }),
        stat({
          label: 'Bonus for additional servers',
          value: formatBytes(pool.earnedBytes),
          source: `${formatBytes(pool.perServerBytes)} for each in a full month`,
        }),
        stat({
          label: 'Still accruing',
          value: formatBytes(pool.potentialEarnedBytes),
          source: 'if the servers keep running; not usable yet',
        }),
      ),
      table<AccountBandwidth['servers'][number]>({
        caption: 'Servers and their share of the pool',
        card: { line: ['pool', 'share'] },
        refreshSeconds: 60,
        columns: [
          cellColumn('name', 'Server', (row) =>
            row.isDeleted
              ? `${row.serverName} (destroyed)`
              : link(`/client/servers/${row.serverId}/traffic/usage`, row.serverName),
          ),
          {
            key: 'pool',
            header: 'Used of the pool',
            kind: 'figure',
            cell: (row) => (row.lastSampledAt === null ? null : formatBytes(row.poolBytes)),
          },
          cellColumn('share', 'Part', (row) => (row.lastSampledAt === null ? null : shareBar(row.poolShare))),
        ],
        rows: servers,
        empty: { title: 'No servers', text: 'Servers of this workspace appear here.' },
      }),
    ],
  );
}

/** Why days of a month have no usage, or only a part of it: the ribbon under the bars. */
export const dayMs = 86_400_000;

interface DaysAsk {
  history: BandwidthHistory;
  /** When the server was created. */
  createdMs: number;
  nowMs: number;
}

/** Of the running month, in order of time; neighbours of one reason are one. */
export function dayReasons({ history, createdMs, nowMs }: DaysAsk): ChartReason[] {
  const { startMs, endMs } = history.current.period;
  const measured = new Set(
    history.rows.filter((row) => row.lastSampledAt !== null).map((row) => row.period.startMs),
  );
  const reasons: ChartReason[] = [];
  const say = (fromMs: number, toMs: number, text: string, tone: 'warn' | 'neutral') => {
    if (fromMs >= toMs) return;
    const last = reasons.at(-1);
    if (last?.text === text && last.toMs === fromMs) last.toMs = toMs;
    else reasons.push({ fromMs, toMs, text, tone });
  };
  for (let fromMs = startMs; fromMs < endMs; fromMs += dayMs) {
    const toMs = fromMs + dayMs;
    // A day that began before the server did is measured from then on.
    const beganMs = Math.min(Math.max(createdMs, fromMs), toMs);
    say(fromMs, Math.min(beganMs, nowMs), 'before the server was created', 'neutral');
    if (!measured.has(fromMs)) say(beganMs, Math.min(toMs, nowMs), 'not measured', 'warn');
    else if (nowMs < toMs) say(beganMs, nowMs, 'day in progress', 'neutral');
    say(Math.max(fromMs, nowMs), toMs, 'not yet', 'neutral');
  }
  return reasons;
}
