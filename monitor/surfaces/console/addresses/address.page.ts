/**
 * `/sites/{id}/addresses/{address}`: the traffic of one address, its owners, and the sources of each number.
 */
import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { canonicalAddress, isGloballyUnique, parseAddress } from '#common/ip/index.ts';
import type { AddressUse } from '#monitor/applications/index.ts';
import type { AddressConflict, AddressOwner, AddressPlace } from '#monitor/devices/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import {
  banner,
  type ChartData,
  type Content,
  chart,
  chartJson,
  code,
  formatAge,
  formatBitRate,
  formatBytes,
  formatCount,
  formatTime,
  html,
  link,
  moment,
  pageHeader,
  type Range,
  rangePicker,
  readRange,
  section,
  stat,
  stats,
  type Tone,
  withQuery,
} from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { fileHref } from '../parts/data-table.ts';
import { minuteText, type OriginLine, originTable, readMinute } from '../parts/origin.ts';
import { type AddressPoint, pointsOf } from './address-points.ts';
import { applicationTable, ownerTable, pointTable } from './address-tables.ts';

const Params = Type.Object({ ...SiteParams.properties, address: Type.String({ maxLength: 64 }) });
const Query = Type.Object({
  range: Type.Optional(Type.String()),
  /** For an address that is not globally unique. */
  segment: Type.Optional(Type.String({ maxLength: 128 })),
  from: Type.Optional(Type.String()),
  to: Type.Optional(Type.String()),
  at: Type.Optional(Type.String()),
  /** Seconds of the requested step; a minute by default. */
  step: Type.Optional(Type.Integer({ minimum: 60, maximum: 3600 })),
});
type Query = Static<typeof Query>;

const dayMs = 86_400_000;
/** Longest range of one page, because minutes are read one by one. */
const readMaxMs = 32 * dayMs;
const ownersMax = 100;

export function registerAddressPage(app: App, deps: ConsoleDeps): void {
  app.get(
    '/sites/:siteId/addresses/:address',
    { schema: { params: Params, querystring: Query } },
    async (request, reply) => {
      const nowMs = Date.now();
      const site = await siteOf(deps.sites, request.params.siteId);
      const address = canonicalOf(request.params.address);
      const { segment, others } = await segmentOf(deps, site, address, request.query);
      const place = { address, segment };
      const range = rangeOf(request.query, nowMs);
      const at = readMinute(request.query.at);
      const step = Math.floor((request.query.step ?? 60) / 60) * 60;
      const [points, used, owners, conflicts, origin] = await Promise.all([
        readPoints(deps, site, place, range, nowMs),
        readUse(deps, site, place, range),
        deps.devices.listOwners(site.id, place, ownersMax),
        deps.devices.listAddressConflicts(site.id, place, ownersMax),
        at === null ? null : readOrigin(deps, site, place, at, at + step),
      ]);
      const content = [
        pageHeader({
          title: segment === '' ? code(address, true) : html`${code(address, true)} on ${code(segment)}`,
          state: stateOf(points, owners, conflicts, nowMs),
          actions: rangePicker({
            url: withQuery(request.url, { at: undefined, step: undefined }),
            range,
            nowMs,
          }),
        }),
        otherSegments(request, others),
        conflictBanner(conflicts, nowMs),
        origin &&
          section(
            {
              id: 'origin',
              title: `Sources for ${formatTime(at! * 1000)}${step > 60 ? ` to ${formatTime((at! + step) * 1000).slice(11)}` : ''}`,
              description:
                'Captures overlap, so only the capture that saw the most counts for each address and minute.',
              actions: link(withQuery(request.url, { at: undefined, step: undefined }), 'Close', {
                kind: 'button',
              }),
            },
            originTable(request, site.id, origin),
          ),
        addressStats(request, points, range),
        addressChart(request, points, range),
        section(
          { title: 'Applications', description: useDescription(range) },
          applicationTable(request, site.id, used, nowMs),
        ),
        section(
          {
            title: 'Owners',
            description: 'Owners over time. Traffic counts for a device only while it is the only owner.',
          },
          ownerTable(request, site.id, owners, nowMs),
        ),
        section(
          {
            title: range.stepSeconds === 60 ? 'Minutes' : 'Steps',
            description: 'Newest first. Select a minute for the captures that counted it.',
          },
          pointTable(request, points, range),
        ),
      ];
      return sendConsolePage(request, reply, { title: address, site: { site, page: 'traffic' } }, content);
    },
  );

  app.get(
    '/sites/:siteId/addresses/:address/chart.json',
    { schema: { params: Params, querystring: Query } },
    async (request) => {
      const nowMs = Date.now();
      const site = await siteOf(deps.sites, request.params.siteId);
      const range = rangeOf(request.query, nowMs);
      const address = canonicalOf(request.params.address);
      const { segment } = await segmentOf(deps, site, address, request.query);
      const points = await readPoints(deps, site, { address, segment }, range, nowMs);
      return chartJson('bit/s', chartData(points, range));
    },
  );
}

/** The segment to show: the requested one, else the one where the address was seen last; and all other segments. */
async function segmentOf(
  deps: ConsoleDeps,
  site: Site,
  address: string,
  query: Query,
): Promise<{ segment: string; others: string[] }> {
  if (isGloballyUnique(parseAddress(address)!)) return { segment: '', others: [] };
  const segments = await deps.devices.listSegments(site.id, address);
  const segment = query.segment ?? segments[0] ?? '';
  return { segment, others: segments.filter((other) => other !== segment) };
}

/** A blank segment means that the address is globally unique or has no known owner. */
const segmentArgument = ({ segment }: AddressPlace) => segment || undefined;

function otherSegments(request: FastifyRequest, others: readonly string[]): Content {
  if (others.length === 0) return false;
  const links = others.map((segment) => html`${link(withQuery(request.url, { segment }), code(segment))} `);
  return banner({
    tone: 'info',
    title: 'This address is used on other networks too',
    text: html`Each network has separate traffic and owners: ${links}`,
  });
}

function canonicalOf(text: string): string {
  const address = canonicalAddress(text);
  if (address) return address;
  throw new HttpError(404, {
    code: 'not_found',
    message: 'This is not an IP address. Use the search.',
  });
}

function rangeOf(query: Query, nowMs: number): Range {
  const range = readRange(query, nowMs, '24h');
  if (range.toMs - range.fromMs <= readMaxMs) return range;
  return {
    ...readRange({ range: '30d' }, nowMs),
    error: 'An address is shown for at most 32 days at a time.',
  };
}

async function readPoints(deps: ConsoleDeps, site: Site, place: AddressPlace, range: Range, nowMs: number) {
  // The present minute has not been uploaded yet, and neither have future ones.
  const until = Math.min(range.toMs / 1000, Math.floor(nowMs / 60_000) * 60);
  const from = range.fromMs / 1000;
  const segment = segmentArgument(place);
  const minutes =
    from < until ? await deps.traffic.readAddressMinutes(site.id, place.address, from, until, segment) : [];
  return pointsOf(minutes, range, nowMs);
}

async function readUse(
  deps: ConsoleDeps,
  site: Site,
  place: AddressPlace,
  range: Range,
): Promise<AddressUse[]> {
  const to = range.toMs / 1000;
  return deps.applications.sumAddressApplications(
    site.id,
    place.address,
    Math.max(range.fromMs / 1000, to - 86_400),
    to,
    segmentArgument(place),
  );
}

/** The captures that counted the step, and the uploads that contained those minutes. */
async function readOrigin(deps: ConsoleDeps, site: Site, place: AddressPlace, from: number, to: number) {
  const { address } = place;
  const rows = await deps.traffic.explainAddress(site.id, address, from, to, segmentArgument(place));
  const sensorIds = [...new Set(rows.map((row) => row.sensorId))];
  const uploads = sensorIds.length === 0 ? [] : await deps.inbox.listKept(sensorIds, from, to);
  return rows.map(
    (row): OriginLine => ({
      ...row,
      uploads: uploads.filter(
        ({ sensorId, firstMinute, lastMinute }) =>
          sensorId === row.sensorId && firstMinute <= row.minute && lastMinute >= row.minute,
      ),
    }),
  );
}

function useDescription(range: Range): string {
  const span = range.toMs - range.fromMs > dayMs ? 'over the last 24 hours of the range' : 'in this range';
  return `Internet applications that this address used or hosted ${span}.`;
}

function stateOf(
  points: readonly AddressPoint[],
  owners: readonly AddressOwner[],
  conflicts: readonly AddressConflict[],
  nowMs: number,
): { tone: Tone; text: Content } {
  const live = owners.filter((owner) => owner.endedAtMs === null);
  const owner =
    live.length === 1
      ? html`owned by ${live[0]!.name ?? live[0]!.mac}`
      : live.length > 1
        ? `claimed by ${live.length} devices`
        : 'owner unknown';
  const last = points.findLast((point) => point.inBytes + point.outBytes > 0);
  const gaps = points.reduce((sum, point) => sum + point.gaps, 0);
  const traffic = last ? html`Traffic ${formatAge(last.timeMs, nowMs)}` : 'No traffic in this range';
  const missing = gaps > 0 ? `; ${formatCount(gaps)} min not observed` : '';
  const isDisputed = conflicts.some((conflict) => conflict.resolvedAtMs === null);
  return {
    tone: isDisputed || gaps > 0 ? 'warn' : last ? 'good' : 'neutral',
    text: html`${traffic}; ${owner}${missing}.`,
  };
}

function conflictBanner(conflicts: readonly AddressConflict[], nowMs: number): Content {
  const open = conflicts.find((conflict) => conflict.resolvedAtMs === null);
  const last = open ?? conflicts[0];
  if (!last) return false;
  return banner({
    tone: open ? 'warn' : 'info',
    title: open ? 'Several devices claim this address' : 'Several devices claimed this address',
    text: html`${last.macs.map((mac) => html`${code(mac)} `)}since ${moment(last.openedAtMs, nowMs)}${
      last.resolvedAtMs === null ? '' : html`, resolved ${moment(last.resolvedAtMs, nowMs)}`
    }. During that time its traffic counts for none of them.`,
  });
}

function addressStats(request: FastifyRequest, points: readonly AddressPoint[], range: Range) {
  const sum = (of: (point: AddressPoint) => number) => points.reduce((total, point) => total + of(point), 0);
  const observed = sum((point) => point.observed);
  const gaps = sum((point) => point.gaps);
  const last = points.findLast((point) => point.inBps !== null);
  const source = last
    ? html`${formatTime(last.timeMs).slice(11)}, ${link(originHref(request, last.timeMs, range.stepSeconds), 'sources')}`
    : 'nothing in this range';
  const total = (bytes: number) => (observed === 0 ? undefined : formatBytes(bytes));
  return stats(
    stat({ label: 'In', value: last && formatBitRate(last.inBps), source }),
    stat({ label: 'Out', value: last && formatBitRate(last.outBps), source }),
    stat({ label: 'In, all', value: total(sum((point) => point.inBytes)), source: 'observed minutes' }),
    stat({ label: 'Out, all', value: total(sum((point) => point.outBytes)), source: 'observed minutes' }),
    stat({
      label: 'Minutes observed',
      value: formatCount(observed),
      source: gaps > 0 ? `${formatCount(gaps)} not observed` : 'no gaps',
      tone: gaps > 0 ? 'warn' : undefined,
    }),
  );
}

/** URL of the captures behind a step; for a long step, of its minutes. */
function originHref(request: FastifyRequest, timeMs: number, stepSeconds: number): string {
  const start = minuteText(timeMs / 1000);
  if (stepSeconds > 3600) {
    const end = minuteText(timeMs / 1000 + stepSeconds);
    return withQuery(request.url, { range: 'custom', from: start, to: end, at: undefined, step: undefined });
  }
  const step = stepSeconds > 60 ? stepSeconds : undefined;
  return `${withQuery(request.url, { at: start, step })}#origin`;
}

function chartData(points: readonly AddressPoint[], range: Range): ChartData {
  return {
    timesMs: points.map((point) => point.timeMs),
    stepMs: range.stepSeconds * 1000,
    range,
    series: [
      { label: 'In', role: 'in', values: points.map((point) => point.inBps) },
      { label: 'Out', role: 'out', values: points.map((point) => point.outBps) },
    ],
  };
}

function addressChart(request: FastifyRequest, points: readonly AddressPoint[], range: Range) {
  const [path, query] = request.url.split('?');
  return chart({
    id: 'address-traffic',
    title: 'Traffic of this address',
    unit: 'bit/s',
    data: chartData(points, range),
    dataUrl: `${path}/chart.json${query ? `?${query}` : ''}`,
    refreshSeconds: 60,
    canZoom: true,
    source: 'each minute from its strongest capture; gaps stay empty',
    csvHref: fileHref(request, 'points', 'csv'),
    emptyText: 'No minute of this range has been collected for this address.',
  });
}
