/** Why an incident was detected: the threshold, the seconds, and what its sensor took off as ordinary before it compared. */
import type { FastifyRequest } from 'fastify';
import { ordinaryRules, triggers } from '#contracts/sensor-api/detection.ts';
import type { SensorView, StoredIncident } from '#monitor/incidents/index.ts';
import {
  type Content,
  definitionList,
  formatBytes,
  formatCount,
  formatPercent,
  formatTime,
  moment,
  section,
} from '#service-kit/pages/index.ts';
import { countColumn, dataTable, figureColumn } from '#service-kit/web/index.ts';
import { stateBadge, targetLink } from '../parts/incident-text.ts';
import { rateText } from '../protection/threshold-parts.ts';

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
