/** Tables of an incident's page. */
import type { FastifyRequest } from 'fastify';
import { describeProtocol } from '#contracts/ip-protocols.ts';
import { ordinaryRules, triggers } from '#contracts/sensor-api/detection.ts';
import {
  type Incident,
  nameOfClass,
  type RemotePrefix,
  type SensorView,
  type StoredIncident,
  type StoredTransition,
} from '#monitor/incidents/index.ts';
import {
  badge,
  type Content,
  definitionList,
  formatAge,
  formatBitRate,
  formatBytes,
  formatCount,
  formatPercent,
  formatTime,
  html,
  isoTime,
  link,
  moment,
  section,
  shareBar,
  utcTime,
} from '#service-kit/pages/index.ts';
import {
  countColumn,
  dataTable,
  figureColumn,
  momentColumn,
  textColumn,
  timeColumn,
} from '#service-kit/web/index.ts';
import type { TimelineEntry } from '../hand-off/action-table.ts';
import { stateBadge, targetLink } from '../parts/incident-text.ts';
import { rateText } from '../protection/threshold-parts.ts';

type Vector = Incident['measured']['vectors'][number];
type SensorNames = ReadonlyMap<number, { hostName: string; isRevoked: boolean }>;

export function vectorTable(request: FastifyRequest, { measured, severity }: Incident): Content {
  return dataTable<Vector>(request, {
    id: 'vectors',
    caption: 'Vectors',
    card: { line: ['packets_share', 'bytes_share'] },
    rows: measured.vectors,
    columns: [
      textColumn('class', 'Class', (row) => row.class, { show: (name) => nameOfClass(name, severity) }),
      figureColumn('packets_share', 'Of packets', (row) => row.packetsShare, formatPercent),
      figureColumn('bytes_share', 'Of bytes', (row) => row.bytesShare, formatPercent),
      {
        key: 'ports',
        header: 'Ports or protocols',
        kind: 'code',
        cell: ({ ports, details }) =>
          details?.protocols.map(describeProtocol).join(', ') ||
          ports.join(', ') ||
          html`<span class="hint">none</span>`,
        value: (row) => row.ports.join(' '),
      },
      {
        key: 'source_ports',
        header: 'From ports',
        kind: 'code',
        cell: (row) => row.details?.sourcePorts.join(', '),
        value: (row) => row.details?.sourcePorts.join(' '),
      },
      {
        key: 'seen',
        header: 'Seen',
        cell: ({ details }) =>
          details &&
          html`${utcTime(details.startedAtMs, 'seconds')} to ${utcTime(details.lastObservedAtMs, 'seconds')}`,
        field: 'started_at',
        value: (row) => isoTime(row.details?.startedAtMs ?? null),
      },
    ],
    fields: [
      { field: 'protocols', value: (row) => row.details?.protocols.join(' ') },
      { field: 'last_observed_at', value: (row) => isoTime(row.details?.lastObservedAtMs ?? null) },
    ],
    empty: { title: 'No vectors', text: 'The sensor told none.' },
  });
}

export function remoteTable(request: FastifyRequest, remotes: readonly RemotePrefix[], nowMs: number) {
  return dataTable<RemotePrefix>(request, {
    id: 'remotes',
    caption: 'Networks',
    card: { line: ['share'] },
    rows: remotes,
    columns: [
      textColumn('prefix', 'Network', (row) => row.prefix, { kind: 'code' }),
      figureColumn('share', 'Largest share of packets', (row) => row.share, shareBar),
      momentColumn('first', 'First among the largest', (row) => row.firstAtMs, nowMs, { field: 'first_at' }),
      momentColumn('last', 'Last', (row) => row.lastAtMs, nowMs, { field: 'last_at' }),
    ],
    empty: { title: 'No networks', text: 'The sensors told none.' },
  });
}

export function viewTable(
  request: FastifyRequest,
  views: readonly SensorView[],
  sensors: SensorNames,
  nowMs: number,
): Content {
  return dataTable<SensorView>(request, {
    id: 'views',
    caption: 'Observed by',
    card: { line: ['state', 'class'] },
    rows: views,
    isStacked: true,
    columns: [
      {
        key: 'sensor',
        header: 'Sensor',
        cell: (row) => html`${sensorName(sensors, row.sensorId)}, ${row.said.capture}`,
        value: (row) => `${sensors.get(row.sensorId)?.hostName ?? ''} ${row.said.capture}`,
      },
      {
        key: 'state',
        header: 'State',
        cell: (row) =>
          row.said.recoveredAtMs === null ? badge('warn', 'not recovered') : badge('good', 'recovered'),
        value: (row) => row.said.state,
      },
      {
        key: 'class',
        header: 'Class',
        cell: (row) => nameOfClass(row.said.class, row.said.severity),
        value: (row) => row.said.class,
      },
      timeColumn('started', 'Started', (row) => row.said.startedAtMs, {
        field: 'started_at',
        precision: 'seconds',
      }),
      momentColumn('observed', 'Last observed', (row) => row.said.lastObservedAtMs, nowMs, {
        field: 'last_observed_at',
      }),
      countColumn('packets', 'Peak', (row) => row.said.peak.pps, { unit: 'packets/s', field: 'peak_pps' }),
      figureColumn('bits', 'Peak', (row) => row.said.peak.bps, formatBitRate, { field: 'peak_bps' }),
    ],
    empty: {
      title: 'No observation counts',
      text: 'The sensors that reported it do not speak for this address.',
    },
  });
}

const sensorName = (sensors: SensorNames, id: unknown): string => {
  const found = sensors.get(Number(id));
  return found ? `${found.hostName}${found.isRevoked ? ' (removed)' : ''}` : 'a removed sensor';
};

function describe({ kind, details }: StoredTransition, sensors: SensorNames, siteHref: string): Content {
  switch (kind) {
    case 'detected':
      return `Detected as ${nameOfClass(String(details.class))}, ${formatCount(Number(details.pps))} packets/s, ${formatBitRate(Number(details.bps))}`;
    case 'joined':
      return `${String(details.capture)} of ${sensorName(sensors, details.sensor_id)} sees it too`;
    case 'class_changed':
      return `The strongest interface calls it ${nameOfClass(String(details.to))}, before ${nameOfClass(String(details.from))}`;
    case 'stale':
      return 'No data for 90 s: stale';
    case 'observed_again':
      return 'Observed again';
    case 'recovered':
      return 'Recovered: every sensor that saw it said so';
    case 'reopened':
      return 'Began again within 5 minutes';
    case 'merged':
      return html`Another incident turned out to be a part of this one: ${link(`${siteHref}/incidents/${String(details.incident_id)}`, 'show it')}`;
    case 'withdrawn':
      return 'Withdrawn: only sensors of other nodes had reported it';
  }
}

export function transitionTable(
  request: FastifyRequest,
  transitions: readonly StoredTransition[],
  sensors: SensorNames,
  nowMs: number,
  others: readonly TimelineEntry[],
): Content {
  const siteHref = request.url.split('/incidents/')[0]!;
  const rows = [...transitions.map((one) => ({ ...one, text: describe(one, sensors, siteHref) })), ...others];
  return dataTable<{ kind: string; atMs: number; text: Content }>(request, {
    id: 'timeline',
    caption: 'Timeline',
    card: { line: ['what'] },
    rows: rows.toSorted((a, b) => b.atMs - a.atMs),
    isStacked: true,
    columns: [
      {
        key: 'at',
        header: 'When',
        cell: (row) =>
          html`${utcTime(row.atMs, 'seconds')}, <span class="hint">${formatAge(row.atMs, nowMs)}</span>`,
        value: (row) => isoTime(row.atMs),
      },
      { key: 'what', header: 'What', kind: 'prose', cell: (row) => row.text, value: (row) => row.kind },
    ],
    empty: { title: 'Nothing yet', text: 'Each change of the incident appears here.' },
  });
}

// Why an incident was detected: the threshold, the seconds, and what its sensor took off as ordinary before it compared.

type Reason = NonNullable<SensorView['said']['reason']>;
type Amount = Reason['all'];

const wideRules: Readonly<Record<'prefix' | 'capture', string>> = {
  prefix:
    'the sum of the addresses without an incident of their own, at twice the threshold of one; or sixteen addresses, each at 0.3 times its own thresholds',
  capture:
    'a mean of five seconds at 80 % of the link, or at four times the mean of the healthy minutes among the last 30',
};

export function reasonSection(
  request: FastifyRequest,
  page: { incident: StoredIncident; views: readonly SensorView[]; nowMs: number },
): Content {
  const strongest = page.views
    .filter(({ said }) => said.reason)
    .toSorted((a, b) => b.said.peak.bps - a.said.peak.bps || b.said.peak.pps - a.said.peak.pps)[0];
  const reason = strongest?.said.reason;
  return section({ id: 'why', title: 'Why it was detected' }, [
    definitionList(statements(page.incident, reason, page.nowMs)),
    reason && amountTable(request, reason),
  ]);
}

function statements(incident: StoredIncident, reason: Reason | undefined, nowMs: number) {
  const { target, direction, measured, startedAtMs, detectedAtMs } = incident;
  const { threshold } = measured;
  const isWide = target.kind !== 'host' && direction === 'inbound';
  return [
    {
      term: 'Threshold',
      value: threshold ? `${threshold.metric}: ${rateText(threshold.metric, threshold.value)}` : 'not known',
    },
    { term: 'Rule', value: reason ? triggers[reason.trigger] : `${Object.values(triggers).join('; or ')}` },
    ...(isWide ? [{ term: 'As a whole', value: wideRules[target.kind as 'prefix'] }] : []),
    ...(reason
      ? [
          {
            term: 'Seconds that decided',
            value: `${reason.ratios.map((ratio) => ratio.toFixed(2)).join(', ')} times the threshold`,
          },
        ]
      : []),
    { term: 'First second', value: moment(startedAtMs, nowMs) },
    {
      term: 'Detected',
      value: `${formatTime(detectedAtMs, 'seconds')}, after ${((detectedAtMs - startedAtMs) / 1000).toFixed(1)} s`,
    },
    ...(reason?.pairs ? [{ term: 'Pairs of addresses', value: pairText(reason.pairs) }] : []),
    ...(reason && reason.remotes !== null
      ? [
          {
            term: 'Remote addresses',
            value: `about ${formatCount(reason.remotes)} among the packets that were looked at`,
          },
        ]
      : []),
    { term: 'Counted in full', value: measured.coverage },
    { term: 'State', value: stateBadge(incident) },
    { term: 'Target', value: targetLink(incident) },
    ...(measured.isSpoofed
      ? [{ term: 'Sources', value: 'made up: the packets carry addresses that are not the server’s' }]
      : []),
    // Only frames from the device itself have its MAC.
    ...(measured.deviceKey === '' ? [] : [{ term: 'Device', value: measured.deviceKey }]),
  ];
}

const pairText = ({ established, others }: NonNullable<Reason['pairs']>) =>
  `${formatCount(established)} converse, ${formatCount(others)} do not`;

interface Row extends Amount {
  what: string;
  share: number;
}

function amountTable(request: FastifyRequest, { all, ordinary }: Reason): Content {
  const share = ({ packets }: Amount) => (all.packets === 0 ? 0 : packets / all.packets);
  const rest = ordinary.reduce(
    (left, one) => ({ packets: left.packets - one.packets, bytes: left.bytes - one.bytes }),
    all,
  );
  const rows: Row[] = [
    { what: 'All traffic', ...all, share: share(all) },
    ...ordinary.map((one) => ({ what: `Ordinary: ${ordinaryRules[one.rule]}`, ...one, share: share(one) })),
    { what: 'The rest, which may be an attack', ...rest, share: share(rest) },
  ];
  return dataTable<Row>(request, {
    id: 'reason',
    caption: 'Traffic of the strongest of these seconds',
    card: { line: ['packets', 'bytes'] },
    rows,
    columns: [
      { key: 'what', header: 'Traffic', cell: (row) => row.what, value: (row) => row.what },
      countColumn('packets', 'Packets', (row) => row.packets),
      figureColumn('share', 'Of packets', (row) => row.share, formatPercent),
      figureColumn('bytes', 'Bytes', (row) => row.bytes, formatBytes),
    ],
    empty: { title: 'Not told', text: 'The sensor told no reason.' },
  });
}
