/** The page of a site's probes: whether external targets are reachable from the site. */
import type { FastifyRequest } from 'fastify';
import type { Availability, ProbeState } from '#monitor/probes/index.ts';
import { describeTarget, probesMax } from '#monitor/probes/index.ts';
import {
  age,
  type ChartData,
  type Content,
  chart,
  code,
  drawer,
  formatCount,
  formatDuration,
  formatPercent,
  html,
  isoTime,
  pageHeader,
  type Range,
  rangePicker,
  refreshing,
  section,
  stat,
  stats,
} from '#service-kit/pages/index.ts';
import { countColumn, type DataColumn, dataTable, linkColumn, textColumn } from '#service-kit/web/index.ts';
import type { Viewer } from '../guard.ts';
import type { ChartAround } from '../parts/chart-around.ts';
import {
  addForm,
  emptyProbe,
  kindLabel,
  measuredAt,
  type ProbeForm,
  rttText,
  shareUp,
  statusBadge,
  statusOf,
  upText,
} from './availability-parts.ts';
import type { DrawnProbe } from './probes-around.ts';

/** Maximum number of lines in one chart. */
export const probesDrawn = 8;

/** Input of a refused form for a new probe. */
export interface RefusedProbe {
  typed: ProbeForm;
  fault: string;
}

export interface AvailabilityPage {
  siteId: number;
  probes: readonly ProbeState[];
  /** Of each probe, and of the site (null). */
  found: readonly Availability[];
  /** The first `probesDrawn` probes. */
  drawn: readonly DrawnProbe[];
  around: ChartAround;
  range: Range;
  refused: RefusedProbe | undefined;
  viewer: Viewer;
  nowMs: number;
}

/** A probe with its availability in the range. */
interface ProbeLine {
  probe: ProbeState;
  found: Availability | undefined;
}

export function availabilityPage(request: FastifyRequest, page: AvailabilityPage): Content {
  const { siteId, probes, found, range, refused, viewer, nowMs } = page;
  const byProbe = new Map(found.map((one) => [one.probeId, one]));
  const lines = probes.map((probe): ProbeLine => ({ probe, found: byProbe.get(probe.id) }));
  const add = addForm(siteId, viewer.csrfToken, refused?.typed ?? emptyProbe, refused?.fault);
  return [
    pageHeader({
      title: 'Availability',
      state: stateOf(probes, nowMs),
      actions: [
        rangePicker({ url: request.url, range }),
        viewer.canChange && !refused && probes.length < probesMax
          ? drawer({ id: 'add-probe', open: 'Add a probe', title: 'Add a probe', openKind: 'primary' }, add)
          : null,
      ],
    }),
    refused && section({ title: 'The probe was not added' }, add),
    probes.length > 0 && siteStats(byProbe.get(null), range),
    probes.length > 0 && roundTripChart(page, probes.length),
    refreshing(
      { id: 'probes', url: request.url, everySeconds: 30 },
      section({ title: 'Probes' }, probeTable(request, siteId, lines, nowMs)),
    ),
    html`<p class="hint">Every sensor of the site measures every probe. A minute is up if any attempt was answered, otherwise down. Unmeasured minutes are not part of percentages. The site is up if any of its probes is.</p>`,
  ];
}

function stateOf(probes: readonly ProbeState[], nowMs: number) {
  const running = probes.filter((probe) => probe.isEnabled);
  const count = (status: ReturnType<typeof statusOf>) =>
    running.filter((probe) => statusOf(probe, nowMs) === status).length;
  if (probes.length === 0) return { tone: 'neutral', text: 'No probes yet.' } as const;
  if (running.length === 0)
    return {
      tone: 'neutral',
      text: probes.length === 1 ? 'The probe is paused.' : `All ${probes.length} probes are paused.`,
    } as const;
  const [down, unknown] = [count('down'), count('unknown')];
  if (down > 0) {
    const tone = down === running.length ? 'bad' : 'warn';
    return { tone, text: `${down} of ${running.length} probes get no answer.` } as const;
  }
  if (unknown > 0)
    return {
      tone: 'neutral',
      text: `${unknown} of ${running.length} probes have no recent result.`,
    } as const;
  const all =
    running.length === 1
      ? 'The probe is'
      : running.length === 2
        ? 'Both probes are'
        : `All ${running.length} probes are`;
  const paused = probes.length - running.length;
  const others = paused > 0 ? `; ${formatCount(paused)} paused` : '';
  return { tone: 'good', text: `${all} answered${others}.` } as const;
}

function siteStats(found: Availability | undefined, range: Range) {
  const minutes = Math.max(1, (Math.min(range.toMs, Date.now()) - range.fromMs) / 60_000);
  const known = found ? Math.min(1, found.minutesKnown / minutes) : 0;
  const down = found ? found.minutesKnown - found.minutesUp : 0;
  return stats(
    stat({
      label: 'Site up',
      value: upText(found),
      source: 'of the minutes measured',
      tone: found && down > 0 ? 'warn' : 'neutral',
    }),
    stat({ label: 'Down', value: found && formatDuration(down * 60), source: 'in this range' }),
    stat({ label: 'Measured', value: formatPercent(known), source: 'of the range; the rest is unknown' }),
    stat({
      label: 'Attempts lost',
      value: found && formatPercent(found.lost / Math.max(1, found.sent), 2),
      source: 'of all probes',
    }),
    stat({ label: 'Round trip', value: rttText(found?.rttUs), source: 'mean of the minutes’ medians' }),
  );
}

function roundTripChart({ drawn, around, range }: AvailabilityPage, count: number) {
  const steps = drawn.flatMap(({ history }) => history);
  const times = [...new Set(steps.map((step) => step.startMs))].sort((a, b) => a - b);
  const data: ChartData = {
    timesMs: times,
    stepMs: range.stepSeconds * 1000,
    range,
    ...around,
    series: drawn.map(({ probe, history }) => {
      const byTime = new Map(history.map((step) => [step.startMs, step.rttUs]));
      return {
        label: probe.name,
        values: times.map((time) => {
          const rtt = byTime.get(time);
          return rtt === null || rtt === undefined ? null : rtt / 1000;
        }),
      };
    }),
  };
  return chart({
    id: 'round-trips',
    title: 'Round trips',
    unit: 'ms',
    data,
    source: `medians over the site’s sensors; no line without an answer${count > drawn.length ? `; the first ${drawn.length} of ${count} probes` : ''}`,
    emptyText: 'No answers in this range.',
  });
}

function probeTable(request: FastifyRequest, siteId: number, lines: readonly ProbeLine[], nowMs: number) {
  return dataTable<ProbeLine>(request, {
    id: 'probes',
    caption: 'Probes',
    card: { line: ['state', 'up', 'rtt'] },
    rows: lines,
    rowTone: ({ probe }) => (statusOf(probe, nowMs) === 'down' ? 'bad' : undefined),
    columns: [
      ...targetColumns(siteId, nowMs),
      ...resultColumns,
      {
        key: 'newest',
        header: 'Last measured',
        kind: 'figure',
        cell: ({ probe: { newestMinuteMs } }) =>
          age(newestMinuteMs === null ? null : measuredAt(newestMinuteMs, nowMs), nowMs),
        value: ({ probe }) => isoTime(probe.newestMinuteMs),
      },
    ],
    empty: {
      title: 'No probes yet',
      text: 'A probe measures an external target: the provider’s gateway, a resolver, a web page. Two minutes after you add one, every sensor of this site measures it.',
    },
  });
}

const targetColumns = (siteId: number, nowMs: number): DataColumn<ProbeLine>[] => [
  linkColumn('name', 'Probe', ({ probe }) => [probe.name, `/sites/${siteId}/availability/${probe.id}`]),
  {
    key: 'state',
    header: 'State',
    cell: ({ probe }) => statusBadge(probe, nowMs),
    value: ({ probe }) => statusOf(probe, nowMs),
  },
  textColumn('kind', 'Kind', ({ probe }) => probe.kind, { show: kindLabel }),
  textColumn('target', 'Target', ({ probe }) => describeTarget(probe), { kind: 'code', show: code }),
];

const lostShareOf = ({ found }: ProbeLine) => (found && found.sent > 0 ? found.lost / found.sent : null);

const resultColumns: DataColumn<ProbeLine>[] = [
  {
    key: 'up',
    header: 'Up',
    kind: 'figure',
    field: 'availability',
    cell: ({ found }) => upText(found),
    value: ({ found }) => shareUp(found),
  },
  {
    key: 'lost',
    header: 'Lost',
    kind: 'figure',
    field: 'lost_share',
    cell: (row) => {
      const share = lostShareOf(row);
      return share === null ? null : formatPercent(share, 2);
    },
    value: lostShareOf,
  },
  {
    key: 'rtt',
    header: 'Round trip',
    kind: 'figure',
    field: 'round_trip_us',
    cell: ({ found }) => rttText(found?.rttUs),
    value: ({ found }) => found?.rttUs ?? null,
  },
  countColumn('known', 'Minutes measured', ({ found }) => found?.minutesKnown ?? 0, {
    field: 'minutes_measured',
  }),
];
