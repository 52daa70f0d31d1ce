/** The page of one probe over time, and by sensor. */
import type { FastifyRequest } from 'fastify';
import { type Episode, titleOf } from '#monitor/alerts/index.ts';
import {
  type Availability,
  describeTarget,
  type HistoryStep,
  type ProbeState,
} from '#monitor/probes/index.ts';
import type { GapRow } from '#monitor/traffic/index.ts';
import type { SensorView } from '#monitor/views/sensor-store.ts';
import type { StoredEntry } from '#service-kit/audit/index.ts';
import {
  age,
  banner,
  type ChartData,
  type ChartFlag,
  type ChartReason,
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
  withQuery,
} from '#service-kit/pages/index.ts';
import { dataTable, figureColumn, linkColumn, offerData } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import type { Viewer } from '../guard.ts';
import { type ChartAround, readChartFlags, readSiteReasons } from '../parts/chart-around.ts';
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

// What stands around the charts of probes: why there is no round trip at a time, and flags of what happened to the probes, beside those
// of the site, which may be the cause.

/** Alerts, open and resolved ones. */
const alertsMax = 50;
/** Stretches without an answer in one ribbon; more would be narrower than a pixel. */
const unansweredMax = 200;

/** A probe with its history in the range. */
export interface DrawnProbe {
  probe: ProbeState;
  history: readonly HistoryStep[];
}

/** One probe is told without its name. */
export async function readProbesAround(
  deps: ConsoleDeps,
  siteId: number,
  drawn: readonly DrawnProbe[],
  range: Range,
  nowMs: number,
): Promise<ChartAround> {
  const { fromMs, toMs } = range;
  const [siteReasons, siteFlags, trail, open, resolved] = await Promise.all([
    readSiteReasons(deps, siteId, { range, nowMs }, ofSensors),
    readChartFlags(deps, { siteId }, range),
    // Up to now, since the present state is what pauses are reckoned back from.
    deps.auditTrail.page({ operation: 'probe', fromMs }, {}),
    deps.alerts.listOpen(siteId, alertsMax),
    deps.alerts.listResolved(siteId, alertsMax),
  ]);
  const changesSinceMs = trail.nextBefore === null ? fromMs : trail.entries.at(-1)!.occurredAtMs;
  const ofProbes = probeReasons({ drawn, changes: trail.entries, changesSinceMs, range, nowMs });
  const flags = [...siteFlags, ...probeFlags(drawn, trail.entries, [...open, ...resolved])];
  return {
    reasons: [...ofProbes, ...siteReasons],
    flags: flags
      .filter(({ timeMs }) => timeMs >= fromMs && timeMs < toMs)
      .sort((a, b) => a.timeMs - b.timeMs),
  };
}

/** A capture that does not run keeps no sensor from measuring. */
export const ofSensors = (gaps: readonly GapRow[]): GapRow[] =>
  gaps.filter(({ reason }) => reason === 'sensor_down');

export interface ProbeReasonInput {
  drawn: readonly DrawnProbe[];
  /** Of the audit trail. */
  changes: readonly StoredEntry[];
  /** Earlier ones are not known. */
  changesSinceMs: number;
  range: Range;
  nowMs: number;
}

/** In the order in which they are told where several hold. */
export function probeReasons(input: ProbeReasonInput): ChartReason[] {
  const { drawn, range } = input;
  const isOne = drawn.length === 1;
  const of = ({ name }: ProbeState, text: string) => (isOne ? text : `${name}: ${text}`);
  const within = (fromMs: number, toMs: number, text: string, tone: 'warn' | 'neutral'): ChartReason[] => {
    const reason = { fromMs: Math.max(fromMs, range.fromMs), toMs: Math.min(toMs, range.toMs), text, tone };
    return reason.fromMs < reason.toMs ? [reason] : [];
  };
  // What a simulated site tells of the past is older than its probes.
  const beganOf = ({ probe, history }: DrawnProbe) =>
    Math.min(probe.addedAtMs, history[0]?.startMs ?? probe.addedAtMs);
  const firstMs = Math.min(...drawn.map(beganOf));
  const beforeAll = isOne ? [] : within(range.fromMs, firstMs, 'before the first probe was added', 'neutral');
  const quiet = drawn.flatMap((one) => [
    ...within(
      isOne ? range.fromMs : firstMs,
      beganOf(one),
      of(one.probe, 'before the probe was added'),
      'neutral',
    ),
    ...pausesOf(one.probe, input).flatMap((pause) =>
      within(pause.fromMs, pause.toMs, of(one.probe, 'the probe was paused'), 'neutral'),
    ),
  ]);
  const unanswered = drawn.flatMap(({ probe, history }) =>
    stretchesWithoutAnswer(history, range.stepSeconds * 1000).flatMap((one) =>
      within(one.fromMs, one.toMs, of(probe, 'no attempt was answered'), 'warn'),
    ),
  );
  return [...beforeAll, ...quiet, ...unanswered.slice(-unansweredMax)];
}

interface Stretch {
  fromMs: number;
  toMs: number;
}

/** Reckoned back from the present state over its changes. */
function pausesOf(probe: ProbeState, { changes, changesSinceMs, nowMs }: ProbeReasonInput): Stretch[] {
  const pauses: Stretch[] = [];
  let isPaused = !probe.isEnabled;
  let toMs = nowMs;
  const own = changes.filter((one) => isOf(one, probe)).toSorted((a, b) => b.occurredAtMs - a.occurredAtMs);
  for (const { before, after, occurredAtMs } of own) {
    if (enabledOf(before) === undefined || enabledOf(after) === undefined) continue;
    if (isPaused) pauses.push({ fromMs: occurredAtMs, toMs });
    isPaused = enabledOf(before) === false;
    toMs = occurredAtMs;
  }
  return isPaused ? [...pauses, { fromMs: Math.max(changesSinceMs, probe.addedAtMs), toMs }] : pauses;
}

const isOf = ({ subjectKind, subjectId }: StoredEntry, { id }: ProbeState) =>
  subjectKind === 'probe' && String(subjectId) === String(id);

const enabledOf = (state: unknown): unknown =>
  typeof state === 'object' && state !== null ? (state as { isEnabled?: unknown }).isEnabled : undefined;

/** Steps in which probes were sent and all of them lost, those that touch together. */
function stretchesWithoutAnswer(history: readonly HistoryStep[], stepMs: number): Stretch[] {
  const all: Stretch[] = [];
  for (const { startMs, sent, lost } of history) {
    if (sent === 0 || lost < sent) continue;
    const last = all.at(-1);
    if (last?.toMs === startMs) last.toMs += stepMs;
    else all.push({ fromMs: startMs, toMs: startMs + stepMs });
  }
  return all;
}

function probeFlags(
  drawn: readonly DrawnProbe[],
  changes: readonly StoredEntry[],
  episodes: readonly Episode[],
): ChartFlag[] {
  const ofChanges = changes.flatMap((entry): ChartFlag[] => {
    const found = drawn.find(({ probe }) => isOf(entry, probe));
    if (!found) return [];
    const href = withQuery('/audit', { subject: `probe ${found.probe.id}` });
    return [{ timeMs: entry.occurredAtMs, text: changeText(found.probe.name, entry), href, tone: 'info' }];
  });
  const keys = new Set(drawn.map(({ probe }) => `probe:${probe.id}`));
  const ofAlerts = episodes
    .filter(({ kind, subjectKey }) => kind === 'probe_down' && keys.has(subjectKey))
    .map(
      (one): ChartFlag => ({
        timeMs: one.openedAtMs,
        text: titleOf(one),
        href: `/alerts/${one.id}`,
        tone: 'bad',
      }),
    );
  return [...ofChanges, ...ofAlerts];
}

function changeText(name: string, { operation, after }: StoredEntry): string {
  if (operation === 'probe.add') return `${name} was added`;
  const enabled = enabledOf(after);
  if (enabled === undefined) return `${name} was changed`;
  return enabled ? `${name} was resumed` : `${name} was paused`;
}
