/**
 * `/sites/{id}/availability`: reachability of external targets from the site, by its probes, and the page of one probe.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { Availability, HistoryStep, ProbeState } from '#monitor/probes/index.ts';
import { describeTarget, probesMax } from '#monitor/probes/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import {
  age,
  type ChartData,
  chart,
  code,
  drawer,
  formatCount,
  formatDuration,
  formatPercent,
  html,
  isConfirmed,
  isoTime,
  link,
  pageHeader,
  type Range,
  rangePicker,
  readRange,
  refreshing,
  section,
  stat,
  stats,
} from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { dataTable } from '../parts/data-table.ts';
import {
  addForm,
  emptyProbe,
  kindLabel,
  type ProbeForm,
  rttText,
  shareUp,
  statusBadge,
  statusOf,
  upText,
} from './availability-parts.ts';
import { showProbe } from './probe.page.ts';

const Query = Type.Object({
  range: Type.Optional(Type.String()),
  from: Type.Optional(Type.String()),
  to: Type.Optional(Type.String()),
});
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
const ProbeParams = Type.Object({
  ...SiteParams.properties,
  probeId: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
});
/** Maximum number of lines in one chart. */
const probesDrawn = 8;

export function registerAvailabilityPages(app: App, deps: ConsoleDeps): void {
  app.get(
    '/sites/:siteId/availability',
    { schema: { params: SiteParams, querystring: Query } },
    async (request, reply) =>
      showAvailability(deps, request, reply, await siteOf(deps.sites, request.params.siteId)),
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
        return showAvailability(deps, request, reply, site, { typed, fault });
      }
    },
  );

  app.get(
    '/sites/:siteId/availability/:probeId',
    { schema: { params: ProbeParams, querystring: Query } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      return showProbe(deps, request, reply, site, request.params.probeId);
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
        return showProbe(deps, request, reply, site, probeId, faultText(error, 'probes.invalid'));
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
      if (!isConfirmed(request.body, probe.name)) {
        const message = `Nothing was changed: type ${probe.name} to confirm.`;
        throw new HttpError(422, { code: 'not_confirmed', message });
      }
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

function unknownProbe(): HttpError {
  return new HttpError(404, { code: 'not_found', message: 'This probe does not exist.' });
}

async function showAvailability(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  site: Site,
  refused?: { typed: ProbeForm; fault: string },
) {
  const nowMs = Date.now();
  const viewer = viewerOf(request);
  const range = readRange(request.query as Static<typeof Query>, nowMs, '24h');
  const [probes, found] = await Promise.all([
    deps.probes.list(site.id),
    deps.probes.readAvailability(site.id, range.fromMs, range.toMs),
  ]);
  const drawn = probes.slice(0, probesDrawn);
  const histories = await Promise.all(
    drawn.map((probe) => deps.probes.readHistory(probe.id, range.fromMs, range.toMs, range.stepSeconds)),
  );
  const byProbe = new Map(found.map((one) => [one.probeId, one]));
  const add = addForm(site.id, viewer.csrfToken, refused?.typed ?? emptyProbe, refused?.fault);
  const content = [
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
    probes.length > 0 && roundTripChart(drawn, histories, range, probes.length),
    refreshing(
      { id: 'probes', url: request.url, everySeconds: 30 },
      probeTable(request, site, probes, byProbe, nowMs),
    ),
    html`<p class="hint">Every sensor of the site measures every probe. A minute is up if any attempt was answered, otherwise down. Unmeasured minutes are not part of percentages. The site is up if any of its probes is.</p>`,
  ];
  const options = {
    title: 'Availability',
    site: { site, page: 'availability' as const },
    status: refused ? 422 : 200,
  };
  return sendConsolePage(request, reply, options, content);
}

function stateOf(probes: readonly ProbeState[], nowMs: number) {
  const running = probes.filter((probe) => probe.isEnabled);
  const count = (status: ReturnType<typeof statusOf>) =>
    running.filter((probe) => statusOf(probe, nowMs) === status).length;
  if (running.length === 0) return { tone: 'neutral', text: 'No probes yet.' } as const;
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

function roundTripChart(
  probes: readonly ProbeState[],
  histories: readonly HistoryStep[][],
  range: Range,
  count: number,
) {
  const times = [...new Set(histories.flat().map((step) => step.startMs))].sort((a, b) => a - b);
  const data: ChartData = {
    timesMs: times,
    stepMs: range.stepSeconds * 1000,
    range,
    series: probes.map((probe, i) => {
      const byTime = new Map(histories[i]!.map((step) => [step.startMs, step.rttUs]));
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
    source: `medians over the site’s sensors; no line without an answer${count > probes.length ? `; the first ${probes.length} of ${count} probes` : ''}`,
    emptyText: 'No answers in this range.',
  });
}

function probeTable(
  request: FastifyRequest,
  site: Site,
  probes: readonly ProbeState[],
  found: ReadonlyMap<number | null, Availability>,
  nowMs: number,
) {
  const of = (probe: ProbeState) => found.get(probe.id);
  const lossOf = (one: Availability | undefined) => (one && one.sent > 0 ? one.lost / one.sent : null);
  return section(
    { title: 'Probes' },
    dataTable<ProbeState>(request, {
      id: 'probes',
      caption: 'Probes',
      rows: probes,
      rowTone: (row) => (statusOf(row, nowMs) === 'down' ? 'bad' : undefined),
      columns: [
        {
          key: 'name',
          header: 'Probe',
          cell: (row) => link(`/sites/${site.id}/availability/${row.id}`, row.name),
          value: (row) => row.name,
        },
        {
          key: 'state',
          header: 'State',
          cell: (row) => statusBadge(row, nowMs),
          value: (row) => statusOf(row, nowMs),
        },
        { key: 'kind', header: 'Kind', cell: (row) => kindLabel(row.kind), value: (row) => row.kind },
        {
          key: 'target',
          header: 'Target',
          kind: 'code',
          cell: (row) => code(describeTarget(row)),
          value: (row) => describeTarget(row),
        },
        {
          key: 'up',
          header: 'Up',
          kind: 'figure',
          field: 'availability',
          cell: (row) => upText(of(row)),
          value: (row) => shareUp(of(row)),
        },
        {
          key: 'lost',
          header: 'Lost',
          kind: 'figure',
          field: 'lost_share',
          cell: (row) => (lossOf(of(row)) === null ? null : formatPercent(lossOf(of(row)), 2)),
          value: (row) => lossOf(of(row)),
        },
        {
          key: 'rtt',
          header: 'Round trip',
          kind: 'figure',
          field: 'round_trip_us',
          cell: (row) => rttText(of(row)?.rttUs),
          value: (row) => of(row)?.rttUs ?? null,
        },
        {
          key: 'known',
          header: 'Minutes measured',
          kind: 'figure',
          field: 'minutes_measured',
          cell: (row) => formatCount(of(row)?.minutesKnown ?? 0),
          value: (row) => of(row)?.minutesKnown ?? 0,
        },
        {
          key: 'newest',
          header: 'Last measured',
          kind: 'figure',
          cell: (row) => age(row.newestMinuteMs === null ? null : row.newestMinuteMs + 60_000, nowMs),
          value: (row) => isoTime(row.newestMinuteMs),
        },
      ],
      empty: {
        title: 'No probes yet',
        text: 'A probe measures an external target: the provider’s gateway, a resolver, a web page. Two minutes after you add one, every sensor of this site measures it.',
      },
    }),
  );
}
