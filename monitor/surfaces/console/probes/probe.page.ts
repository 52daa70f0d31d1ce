/** The page of one probe over time, and by sensor. */
import type { FastifyRequest } from 'fastify';
import {
  type Availability,
  describeTarget,
  type HistoryStep,
  type ProbeState,
} from '#monitor/probes/index.ts';
import type { SensorView } from '#monitor/views/sensor-store.ts';
import {
  age,
  banner,
  type ChartData,
  type Content,
  chart,
  code,
  confirm,
  definitionList,
  drawer,
  field,
  form,
  formatDuration,
  formatPercent,
  html,
  isoTime,
  pageHeader,
  type Range,
  rangePicker,
  section,
  stat,
  stats,
} from '#service-kit/pages/index.ts';
import { dataTable, figureColumn, linkColumn, offerData } from '#service-kit/web/index.ts';
import type { Viewer } from '../guard.ts';
import type { ChartAround } from '../parts/chart-around.ts';
import { cadenceFields, kindLabel, measuredAt, rttText, statusOf, upText } from './availability-parts.ts';

const dayMs = 86_400_000;

const sentences = {
  up: { tone: 'good', text: 'Answered in the newest minute.' },
  loses: { tone: 'warn', text: 'Some attempts of the newest minute were lost.' },
  down: { tone: 'bad', text: 'No answer in the newest minute.' },
  paused: { tone: 'neutral', text: 'Paused: no sensor measures it.' },
  unknown: { tone: 'neutral', text: 'No sensor has measured it recently.' },
} as const;

export interface ProbePage {
  siteId: number;
  probe: ProbeState;
  /** In the range; undefined without a measurement. */
  found: Availability | undefined;
  history: readonly HistoryStep[];
  views: readonly SensorView[];
  around: ChartAround;
  range: Range;
  /** Why a change was refused. */
  fault: string | undefined;
  viewer: Viewer;
  nowMs: number;
}

export function probePage(request: FastifyRequest, page: ProbePage): Content {
  const { probe, found, range, fault, viewer, nowMs } = page;
  const content = [
    pageHeader({
      title: probe.name,
      state: sentences[statusOf(probe, nowMs)],
      actions: [rangePicker({ url: request.url, range }), viewer.canChange && changes(page)],
    }),
    fault && banner({ tone: 'bad', title: 'Nothing was changed', text: fault }),
    definitionList([
      { term: 'Kind', value: kindLabel(probe.kind) },
      { term: 'Target', value: code(describeTarget(probe), true) },
      { term: 'Cadence', value: `every ${probe.intervalSeconds} s, lost after ${probe.timeoutMs} ms` },
    ]),
    probeStats(found),
    charts(page),
    section(
      {
        title: 'By sensor',
        description:
          range.toMs - range.fromMs > dayMs
            ? 'Results of each sensor in the last 24 hours of the range.'
            : 'Results of each sensor in this range.',
      },
      sensorTable(request, page),
    ),
  ];
  offerHistory(request, page.history);
  return content;
}

function probeStats(found: Availability | undefined) {
  const down = found ? found.minutesKnown - found.minutesUp : 0;
  return stats(
    stat({
      label: 'Up',
      value: upText(found),
      source: 'of the minutes measured',
      tone: down > 0 ? 'warn' : 'neutral',
    }),
    stat({ label: 'Down', value: found && formatDuration(down * 60), source: 'in this range' }),
    stat({
      label: 'Attempts lost',
      value: found && formatPercent(found.lost / Math.max(1, found.sent), 2),
      source: 'in this range',
    }),
    stat({ label: 'Round trip', value: rttText(found?.rttUs), source: 'mean of the minutes’ medians' }),
  );
}

function charts({ history, around, range }: ProbePage) {
  const stepMs = range.stepSeconds * 1000;
  const shared = { timesMs: history.map((step) => step.startMs), stepMs, range, ...around };
  const ms = (us: number | null) => (us === null ? null : us / 1000);
  const trips: ChartData = {
    ...shared,
    series: [
      { label: 'Median', values: history.map((step) => ms(step.rttUs)) },
      { label: 'Least', values: history.map((step) => ms(step.rttMinUs)) },
      { label: 'Most', values: history.map((step) => ms(step.rttMaxUs)) },
    ],
  };
  const lost: ChartData = {
    ...shared,
    series: [{ label: 'Lost', role: 'attack', values: history.map((step) => step.lost / step.sent) }],
  };
  return [
    chart({
      id: 'probe-round-trips',
      title: 'Round trips',
      unit: 'ms',
      data: trips,
      source: 'over the site’s sensors; no line without an answer',
      emptyText: 'No answers in this range.',
    }),
    chart({
      id: 'probe-lost',
      title: 'Attempts lost',
      unit: 'percent',
      size: 'small',
      data: lost,
      source: 'minutes that no sensor measured are gaps',
      emptyText: 'No sensor measured in this range.',
    }),
  ];
}

function changes({ siteId, probe, viewer }: ProbePage) {
  const action = `/sites/${siteId}/availability/${probe.id}`;
  return [
    drawer({ id: 'change-probe', open: 'Change', title: `Change ${probe.name}` }, [
      html`<p class="hint">Kind and target can not be changed, so that the history has one target. For another target, add a probe.</p>`,
      form({ action, csrfToken: viewer.csrfToken, submit: 'Save' }, [
        field({ name: 'name', label: 'Name', required: true, value: probe.name, maxLength: 80 }),
        cadenceFields({ interval: String(probe.intervalSeconds), timeout: String(probe.timeoutMs) }),
        field({ kind: 'checkbox', name: 'enabled', label: 'Sensors measure it', checked: probe.isEnabled }),
      ]),
    ]),
    drawer(
      { id: 'delete-probe', open: 'Delete', title: `Delete ${probe.name}`, openKind: 'danger' },
      confirm({
        action: `${action}/delete`,
        csrfToken: viewer.csrfToken,
        name: probe.name,
        consequence:
          'Sensors stop measuring it, and its history is no longer shown. An open alert is resolved.',
        submit: 'Delete probe',
      }),
    ),
  ];
}

function sensorTable(request: FastifyRequest, { siteId, views, nowMs }: ProbePage) {
  return dataTable<SensorView>(request, {
    id: 'sensors',
    caption: 'By sensor',
    card: { line: ['lost', 'rtt', 'last'] },
    rows: views,
    columns: [
      linkColumn('host', 'Host', (row) => [row.hostName, `/sites/${siteId}/sensors/${row.sensorId}`]),
      figureColumn(
        'lost',
        'Lost',
        (row) => row.lost / Math.max(1, row.sent),
        (share) => formatPercent(share, 2),
        { field: 'lost_share' },
      ),
      { key: 'sent', header: 'Attempts', kind: 'figure', cell: (row) => row.sent, value: (row) => row.sent },
      figureColumn('rtt', 'Round trip', (row) => row.rttUs, rttText, { field: 'round_trip_us' }),
      {
        key: 'last',
        header: 'Last measured',
        kind: 'figure',
        cell: (row) => age(measuredAt(row.lastMinuteMs, nowMs), nowMs),
        value: (row) => isoTime(row.lastMinuteMs),
      },
    ],
    empty: {
      title: 'No sensor has measured it yet',
      text: 'Sensors fetch their plan every 30 seconds and send results with each minute.',
    },
  });
}

function offerHistory(request: FastifyRequest, history: readonly HistoryStep[]): void {
  offerData(request, {
    id: 'history',
    rows: history,
    fields: [
      { field: 'time', value: (row) => isoTime(row.startMs) },
      { field: 'minutes_up', value: (row) => row.minutesUp },
      { field: 'minutes_measured', value: (row) => row.minutesKnown },
      { field: 'sent', value: (row) => row.sent },
      { field: 'lost', value: (row) => row.lost },
      { field: 'round_trip_min_us', value: (row) => row.rttMinUs },
      { field: 'round_trip_us', value: (row) => row.rttUs },
      { field: 'round_trip_max_us', value: (row) => row.rttMaxUs },
    ],
  });
}
