/** `/sites/{id}/availability`: the requests for the probes of a site and for one probe, and what operators may change. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { Id } from '#contracts/scalars.ts';
import type { Availability, ProbeState } from '#monitor/probes/index.ts';
import { describeTarget, probesMax } from '#monitor/probes/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
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
  readRange,
  refreshing,
  section,
  stat,
  stats,
} from '#service-kit/pages/index.ts';
import { countColumn, type DataColumn, dataTable, linkColumn, textColumn } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import {
  faultText,
  notFound,
  RangeQuery,
  requireConfirmed,
  SiteParams,
  sendConsolePage,
  siteOf,
} from '../frame.ts';
import type { Viewer } from '../guard.ts';
import { viewerOf } from '../guard.ts';
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
import type { DrawnProbe } from './probe.page.ts';
import { probePage, readProbesAround } from './probe.page.ts';

const short = Type.String({ maxLength: 20 });
const AddForm = Type.Object({
  name: Type.String({ maxLength: 200 }),
  kind: short,
  target: Type.String({ maxLength: 1000 }),
  port: Type.Optional(short),
  question: Type.Optional(Type.String({ maxLength: 300 })),
  interval: short,
  timeout: short,
});
const ChangeForm = Type.Object({
  name: Type.String({ maxLength: 200 }),
  interval: short,
  timeout: short,
  enabled: Type.Optional(Type.String()),
});
const ProbeParams = Type.Object({ ...SiteParams.properties, probeId: Id });

/** Results of single sensors are read over this span at most. */
const sensorViewsMs = 86_400_000;

export function registerAvailability(app: App, deps: ConsoleDeps): void {
  app.get(
    '/sites/:siteId/availability',
    { schema: { params: SiteParams, querystring: RangeQuery } },
    async (request, reply) => showAvailability(deps, reply, await siteOf(deps.sites, request.params.siteId)),
  );

  app.post(
    '/sites/:siteId/availability',
    { schema: { params: SiteParams, body: AddForm } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      const { name, kind, target, port = '', question = '', interval, timeout } = request.body;
      try {
        const id = await deps.probes.add(viewerOf(request).actor, site.id, {
          name,
          kind,
          target,
          port: port.trim() === '' ? null : numberOf(port),
          question: question.trim() === '' ? null : question,
          intervalSeconds: numberOf(interval),
          timeoutMs: numberOf(timeout),
        });
        return await reply.redirect(`/sites/${site.id}/availability/${id}`, 303);
      } catch (error) {
        const fault = faultText(error, 'probes.invalid', 'probes.too_many');
        const typed = { name, kind, target, port, question, interval, timeout };
        return showAvailability(deps, reply, site, { typed, fault });
      }
    },
  );

  registerProbe(app, deps);
}

function registerProbe(app: App, deps: ConsoleDeps): void {
  app.get(
    '/sites/:siteId/availability/:probeId',
    { schema: { params: ProbeParams, querystring: RangeQuery } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      return showProbe(deps, reply, site, request.params.probeId);
    },
  );

  app.post(
    '/sites/:siteId/availability/:probeId',
    { schema: { params: ProbeParams, body: ChangeForm } },
    async (request, reply) => {
      const { siteId, probeId } = request.params;
      const site = await siteOf(deps.sites, siteId);
      const { name, interval, timeout, enabled } = request.body;
      const change = {
        name,
        intervalSeconds: numberOf(interval),
        timeoutMs: numberOf(timeout),
        isEnabled: enabled !== undefined,
      };
      try {
        if (!(await deps.probes.change(viewerOf(request).actor, siteId, probeId, change)))
          throw unknownProbe();
      } catch (error) {
        if (error instanceof HttpError) throw error;
        return showProbe(deps, reply, site, probeId, faultText(error, 'probes.invalid'));
      }
      return reply.redirect(`/sites/${siteId}/availability/${probeId}`, 303);
    },
  );

  app.post(
    '/sites/:siteId/availability/:probeId/delete',
    { schema: { params: ProbeParams } },
    async (request, reply) => {
      const { siteId, probeId } = request.params;
      const probe = await deps.probes.find(siteId, probeId);
      if (!probe) throw unknownProbe();
      requireConfirmed(request.body, probe.name);
      try {
        await deps.probes.remove(viewerOf(request).actor, siteId, probeId);
      } catch (error) {
        faultText(error);
      }
      return reply.redirect(`/sites/${siteId}/availability`, 303);
    },
  );
}

/** NaN for invalid text, so that the probe's validation reports the allowed range. */
function numberOf(text: string): number {
  return /^\d{1,9}$/.test(text.trim()) ? Number(text) : Number.NaN;
}

const unknownProbe = () => notFound('This probe does not exist.');

async function showAvailability(deps: ConsoleDeps, reply: FastifyReply, site: Site, refused?: RefusedProbe) {
  const { request } = reply;
  const nowMs = Date.now();
  const range = readRange(request.query as Static<typeof RangeQuery>, nowMs, '24h');
  const [probes, found] = await Promise.all([
    deps.probes.list(site.id),
    deps.probes.readAvailability(site.id, range.fromMs, range.toMs),
  ]);
  const drawn = probes.slice(0, probesDrawn);
  const histories = await Promise.all(
    drawn.map((probe) => deps.probes.readHistory(probe.id, range.fromMs, range.toMs, range.stepSeconds)),
  );
  const viewer = viewerOf(request);
  const lines = drawn.map((probe, i) => ({ probe, history: histories[i]! }));
  const around = await readProbesAround(deps, site.id, lines, range, nowMs);
  const known = { siteId: site.id, probes, found, drawn: lines, around, range };
  const content = availabilityPage(request, { ...known, refused, viewer, nowMs });
  const options = {
    title: 'Availability',
    site: { site, page: 'availability' as const },
    status: refused ? 422 : 200,
  };
  return sendConsolePage(reply, options, content);
}

async function showProbe(
  deps: ConsoleDeps,
  reply: FastifyReply,
  site: Site,
  probeId: number,
  fault?: string,
) {
  const { request } = reply;
  const nowMs = Date.now();
  const range = readRange(request.query as Record<string, unknown>, nowMs, '24h');
  const probe = (await deps.probes.list(site.id)).find((one) => one.id === probeId);
  if (!probe) throw unknownProbe();
  const [found, history, views] = await Promise.all([
    deps.probes.readAvailability(site.id, range.fromMs, range.toMs),
    deps.probes.readHistory(probeId, range.fromMs, range.toMs, range.stepSeconds),
    deps.probes.listSensorViews(probeId, Math.max(range.fromMs, range.toMs - sensorViewsMs), range.toMs),
  ]);
  const known = {
    siteId: site.id,
    probe,
    found: found.find((one) => one.probeId === probeId),
    history,
    views,
    around: await readProbesAround(deps, site.id, [{ probe, history }], range, nowMs),
  };
  const content = probePage(request, { ...known, range, fault, viewer: viewerOf(request), nowMs });
  const options = {
    title: probe.name,
    site: { site, page: 'availability' as const },
    status: fault ? 422 : 200,
  };
  return sendConsolePage(reply, options, content);
}

// The page of a site's probes: whether external targets are reachable from the site.

/** Maximum number of lines in one chart. */
const probesDrawn = 8;

/** Input of a refused form for a new probe. */
interface RefusedProbe {
  typed: ProbeForm;
  fault: string;
}

interface AvailabilityPage {
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

function availabilityPage(request: FastifyRequest, page: AvailabilityPage): Content {
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
