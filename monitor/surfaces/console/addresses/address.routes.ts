/** `/sites/{id}/addresses/{address}`: the requests for one address, and for the data of its chart. */

import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { keptText } from '#contracts/retention.ts';
import type { AddressConflict, AddressOwner, AddressPlace } from '#monitor/devices/index.ts';
import type { AddressUse, PeerList } from '#monitor/facts/index.ts';
import type { Incident } from '#monitor/incidents/index.ts';
import type { PeerNetwork } from '#monitor/peers/index.ts';
import type { App } from '#service-kit/http/index.ts';
import type { ChartData, Range } from '#service-kit/pages/index.ts';
import {
  banner,
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
  rangePicker,
  readRange,
  section,
  stat,
  stats,
  type Tone,
  withQuery,
} from '#service-kit/pages/index.ts';
import { fileHref } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { RangeQuery, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { networkTable } from '../networks/networks.routes.ts';
import {
  canonicalOf,
  exploreButton,
  type OperationsLink,
  readOperationsLink,
  segmentOf,
} from '../parts/address-link.ts';
import { readAround } from '../parts/chart-around.ts';
import { incidentHref, incidentSentence, incidentTable, incidentTone } from '../parts/incident-text.ts';
import type { OriginLine } from '../parts/origin.ts';
import { minuteText, originTable, readMinute } from '../parts/origin.ts';
import { type AddressPoint, applicationTable, ownerTable, pointsOf, pointTable } from './address-tables.ts';

const Params = Type.Object({ ...SiteParams.properties, address: Type.String({ maxLength: 64 }) });
const Query = Type.Object({
  ...RangeQuery.properties,
  /** For an address that is not globally unique. */
  segment: Type.Optional(Type.String({ maxLength: 128 })),
  at: Type.Optional(Type.String()),
  /** Seconds of the requested step; a minute by default. */
  step: Type.Optional(Type.Integer({ minimum: 60, maximum: 3600 })),
});
type Query = Static<typeof Query>;

/** Longest range of one page, because minutes are read one by one. */
const readMaxMs = 32 * 86_400_000;

export function registerAddress(app: App, deps: ConsoleDeps): void {
  app.get(
    '/sites/:siteId/addresses/:address',
    { schema: { params: Params, querystring: Query } },
    async (request, reply) => {
      const nowMs = Date.now();
      const site = await siteOf(deps.sites, request.params.siteId);
      const address = canonicalOf(request.params.address);
      const { segment, others } = await segmentOf(deps, site, address, request.query.segment);
      const range = rangeOf(request.query, nowMs);
      const from = readMinute(request.query.at);
      const stepSeconds = Math.floor((request.query.step ?? 60) / 60) * 60;
      const step = from === null ? null : { from, to: from + stepSeconds };
      const place = { address, segment };
      const data = await readAddress(deps, site.id, place, range, step, nowMs);
      const inOperations = await readOperationsLink(deps.signOn);
      const shown = { siteId: site.id, place, others, range, step, ...data, inOperations, nowMs };
      const content = addressPage(request, shown);
      return sendConsolePage(reply, { title: address, site: { site, page: 'traffic' } }, content);
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
      const { segment } = await segmentOf(deps, site, address, request.query.segment);
      const [points, around] = await Promise.all([
        readPoints(deps, site.id, { address, segment }, range, nowMs),
        readAround(deps, { siteId: site.id, addresses: [address] }, range, nowMs),
      ]);
      return chartJson('bit/s', chartData(points, around, range));
    },
  );
}

function rangeOf(query: Query, nowMs: number): Range {
  const range = readRange(query, nowMs, '24h');
  if (range.toMs - range.fromMs <= readMaxMs) return range;
  return {
    ...readRange({ range: '30d' }, nowMs),
    error: 'An address is shown for at most 32 days at a time.',
  };
}

/** The page of one address: its traffic, its owners, and the sources of each number. */
const dayMs = 86_400_000;

interface AddressPage extends AddressData {
  siteId: number;
  place: AddressPlace;
  /** Other segments with the same address. */
  others: readonly string[];
  range: Range;
  step: Step | null;
  inOperations: OperationsLink;
  nowMs: number;
}

function addressPage(request: FastifyRequest, page: AddressPage): Content {
  const { siteId, range, points, owners, conflicts, origin, step, nowMs } = page;
  const { address, segment } = page.place;
  const protection = `/sites/${siteId}/protection/addresses/${encodeURIComponent(address)}`;
  return [
    pageHeader({
      title: segment === '' ? code(address, true) : html`${code(address, true)} on ${code(segment)}`,
      state: stateOf(points, owners, conflicts, nowMs),
      actions: [
        rangePicker({ url: withQuery(request.url, { at: undefined, step: undefined }), range, nowMs }),
        exploreButton(
          request,
          siteId,
          { address: segment === '' ? address : `${address}%${segment}` },
          { by: 'none' },
        ),
        link(protection, 'Protection', { kind: 'button' }),
        link(`${protection}/what-if`, 'What if', { kind: 'button' }),
        // An address that is not unique is no customer's by itself.
        segment === '' && page.inOperations({ kind: 'address', address }),
      ],
    }),
    otherSegments(request, page.others),
    attackedBanner(page.incidents, nowMs),
    conflictBanner(conflicts, nowMs),
    origin && step && originSection(request, siteId, origin, step),
    addressStats(request, points, range),
    addressChart(request, chartData(points, page.around, range)),
    section(
      { title: 'Applications', description: useDescription(range) },
      applicationTable(request, siteId, page.used, nowMs),
    ),
    section(
      {
        id: 'networks',
        title: 'Networks it talked to',
        description: `The largest in the hours of this range. Kept for ${keptText('traffic')}, without remote addresses.`,
        actions: link(networksHref(request, siteId, page.place), 'All networks', { kind: 'button' }),
      },
      networkTable(request, {
        siteId,
        rows: page.networks.items,
        total: page.networks.total,
        emptyText: 'No Internet traffic of this address was observed in these hours.',
      }),
    ),
    page.incidents.length > 0 &&
      section(
        { title: 'Incidents', description: 'Attacks on and by this address, at any time of the last year.' },
        incidentTable(request, page.incidents, nowMs),
      ),
    section(
      {
        title: 'Owners',
        description: 'Owners over time. Traffic counts for a device only while it is the only owner.',
      },
      ownerTable(request, siteId, owners, nowMs),
    ),
    section(
      {
        title: range.stepSeconds === 60 ? 'Minutes' : 'Steps',
        description: 'Newest first. Select a minute for the captures that counted it.',
      },
      pointTable(request, points, range),
    ),
  ];
}

/** An attack that is not over comes before everything else. */
function attackedBanner(incidents: readonly Incident[], nowMs: number): Content {
  const open = incidents.find(({ state, severity }) => state !== 'recovered' && severity === 'attack');
  if (!open) return false;
  return banner({
    tone: incidentTone(open),
    title: open.state === 'active' ? 'Under attack' : 'Attack without news',
    text: link(incidentHref(open), incidentSentence(open, nowMs)),
  });
}

function originSection(
  request: FastifyRequest,
  siteId: number,
  origin: readonly OriginLine[],
  { from, to }: Step,
): Content {
  const end = to - from > 60 ? ` to ${formatTime(to * 1000).slice(11)}` : '';
  const closeHref = withQuery(request.url, { at: undefined, step: undefined });
  return section(
    {
      id: 'origin',
      title: `Sources for ${formatTime(from * 1000)}${end}`,
      description:
        'Captures overlap, so only the capture that saw the most counts for each address and minute.',
      actions: link(closeHref, 'Close', { kind: 'button' }),
    },
    originTable(request, siteId, origin),
  );
}

function otherSegments(request: FastifyRequest, others: readonly string[]): Content {
  if (others.length === 0) return false;
  const links = others.map((segment) => html`${link(withQuery(request.url, { segment }), code(segment))} `);
  return banner({
    tone: 'info',
    title: 'This address is used on other networks too',
    text: html`Each network has separate traffic and owners: ${links}`,
  });
}

/** URL of all networks in the range that is shown. */
function networksHref(request: FastifyRequest, siteId: number, { address, segment }: AddressPlace): string {
  const { range, from, to } = request.query as Record<string, string | undefined>;
  const path = `/sites/${siteId}/addresses/${encodeURIComponent(address)}/networks`;
  return withQuery(path, { segment: segment || undefined, range: range ?? '24h', from, to });
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
  const total = (label: string, name: 'inBytes' | 'outBytes') => {
    const scans = sum((point) => point.ownScan[name]);
    const dropped = sum((point) => point.dropped[name]);
    const notes = [
      scans > 0 && `${formatBytes(scans)} of it port scans by the sensors`,
      dropped > 0 && `${formatBytes(dropped)} beside it dropped at the hypervisor`,
    ].filter((note) => note !== false);
    return stat({
      label,
      value: observed === 0 ? undefined : formatBytes(sum((point) => point[name])),
      source: notes.length === 0 ? 'observed minutes' : notes.join(', '),
    });
  };
  return stats(
    stat({ label: 'In', value: last && formatBitRate(last.inBps), source }),
    stat({ label: 'Out', value: last && formatBitRate(last.outBps), source }),
    total('In, all', 'inBytes'),
    total('Out, all', 'outBytes'),
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

function chartData(
  points: readonly AddressPoint[],
  around: Pick<ChartData, 'reasons' | 'flags'>,
  range: Range,
): ChartData {
  return {
    ...around,
    timesMs: points.map((point) => point.timeMs),
    stepMs: range.stepSeconds * 1000,
    range,
    series: [
      { label: 'In', role: 'in', values: points.map((point) => point.inBps) },
      { label: 'Out', role: 'out', values: points.map((point) => point.outBps) },
    ],
  };
}

function addressChart(request: FastifyRequest, data: ChartData) {
  const [path, query] = request.url.split('?');
  return chart({
    id: 'address-traffic',
    title: 'Traffic of this address',
    unit: 'bit/s',
    data,
    dataUrl: `${path}/chart.json${query ? `?${query}` : ''}`,
    refreshSeconds: 60,
    canZoom: true,
    source: 'each minute from its strongest capture; gaps stay empty',
    csvHref: fileHref(request, 'points', 'csv'),
    emptyText: 'No minute of this range has been collected for this address.',
  });
}

// What the page of an address shows, read from the features.

/** Seconds since 1970, the end excluded. */
interface Step {
  from: number;
  to: number;
}

interface AddressData {
  points: readonly AddressPoint[];
  around: Pick<ChartData, 'reasons' | 'flags'>;
  used: readonly AddressUse[];
  networks: PeerList<PeerNetwork>;
  owners: readonly AddressOwner[];
  conflicts: readonly AddressConflict[];
  /** Attacks on and by it, open ones first. */
  incidents: readonly Incident[];
  /** Sources of the chosen step; null without one. */
  origin: readonly OriginLine[] | null;
}

const ownersMax = 100;
const incidentsMax = 20;
const networksShown = 10;

/** `step` is the chosen one, whose sources are read too. */
async function readAddress(
  deps: ConsoleDeps,
  siteId: number,
  place: AddressPlace,
  range: Range,
  step: Step | null,
  nowMs: number,
): Promise<AddressData> {
  const [points, around, used, networks, owners, conflicts, origin, incidents] = await Promise.all([
    readPoints(deps, siteId, place, range, nowMs),
    readAround(deps, { siteId, addresses: [place.address] }, range, nowMs),
    readUse(deps, siteId, place, range),
    deps.peers.listNetworks(siteId, place, range, networksShown),
    deps.devices.listOwners(siteId, place, ownersMax),
    deps.devices.listAddressConflicts(siteId, place, ownersMax),
    step === null ? null : readOrigin(deps, siteId, place, step.from, step.to),
    deps.incidents.list({ siteId, address: place.address }, incidentsMax),
  ]);
  return { points, around, used, networks, owners, conflicts, origin, incidents };
}

/** A blank segment means that the address is globally unique or has no known owner. */
const segmentArgument = ({ segment }: AddressPlace) => segment || undefined;

async function readPoints(
  deps: ConsoleDeps,
  siteId: number,
  place: AddressPlace,
  range: Range,
  nowMs: number,
) {
  // The present minute has not been uploaded yet, and neither have future ones.
  const until = Math.min(range.toMs / 1000, Math.floor(nowMs / 60_000) * 60);
  const from = range.fromMs / 1000;
  const segment = segmentArgument(place);
  const minutes =
    from < until ? await deps.traffic.readAddressMinutes(siteId, place.address, from, until, segment) : [];
  return pointsOf(minutes, range, nowMs);
}

async function readUse(
  deps: ConsoleDeps,
  siteId: number,
  place: AddressPlace,
  range: Range,
): Promise<AddressUse[]> {
  const to = range.toMs / 1000;
  return deps.applications.sumAddressApplications(
    siteId,
    place.address,
    Math.max(range.fromMs / 1000, to - 86_400),
    to,
    segmentArgument(place),
  );
}

/** The captures that counted the step, and the uploads that contained those minutes. */
async function readOrigin(deps: ConsoleDeps, siteId: number, place: AddressPlace, from: number, to: number) {
  const { address } = place;
  const rows = await deps.traffic.explainAddress(siteId, address, from, to, segmentArgument(place));
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
