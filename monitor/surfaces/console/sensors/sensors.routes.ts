/** `/sites/{id}/sensors`: the request for the list of a site's sensors. */

import type { FastifyRequest } from 'fastify';
import { skewSeconds, skewSecondsOf } from '#monitor/alerts/index.ts';
import type { LiveRate } from '#monitor/live/index.ts';
import { isSilent, type KnownCondition, type SensorState } from '#monitor/sensors/index.ts';
import type { CaptureState, GapRow } from '#monitor/traffic/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  badge,
  type Content,
  formatAge,
  formatDuration,
  formatPercent,
  html,
  isoTime,
  link,
  pageHeader,
  refreshing,
  section,
} from '#service-kit/pages/index.ts';
import {
  ageColumn,
  countColumn,
  type DataColumn,
  dataTable,
  figureColumn,
  linkColumn,
  pagedRows,
  textColumn,
} from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { siteState } from '../parts/site-state.ts';
import { captureTable, diskShareOf, fillText, freshCondition, spoolShareOf, untold } from './sensor-parts.ts';
import { ratesOf, type SensorTrouble, type StateFacts, stateFactsOf, troublesOf } from './sensor-state.ts';

const dayMs = 86_400_000;
const gapsMax = 2000;

export function registerSensors(app: App, deps: ConsoleDeps): void {
  app.get('/sites/:siteId/sensors', { schema: { params: SiteParams } }, async (request, reply) => {
    const nowMs = Date.now();
    const site = await siteOf(deps.sites, request.params.siteId);
    const [sensors, conditions, captures, newest, rates, gaps] = await Promise.all([
      deps.sensors.list(site.id),
      deps.sensors.listConditions(site.id),
      deps.traffic.listCaptures(site.id),
      deps.traffic.newestMinutes(),
      ratesOf(deps.live, site.id),
      deps.traffic.listGaps(site.id, nowMs - dayMs, nowMs, gapsMax),
    ]);
    const facts = await stateFactsOf(deps, site.id, rates);
    const { canChange } = viewerOf(request);
    const newestMinuteMs = newest.get(site.id);
    const known = { siteId: site.id, sensors, conditions, captures, rates, gaps, facts, nowMs };
    const content = sensorsPage(request, { ...known, newestMinuteMs, canChange });
    return sendConsolePage(reply, { title: 'Sensors', site: { site, page: 'sensors' } }, content);
  });
}

/** The page of a site's sensors: state, lag, free space and losses of each. */
const rowsShown = 50;

/** What is known of a site's sensors. */
interface KnownSensors {
  siteId: number;
  sensors: readonly SensorState[];
  conditions: readonly KnownCondition[];
  captures: readonly CaptureState[];
  rates: readonly LiveRate[];
  /** Of the last 24 hours. */
  gaps: readonly GapRow[];
  facts: StateFacts;
  nowMs: number;
}

/** A row of the table. */
interface SensorLine {
  sensor: SensorState;
  troubles: readonly SensorTrouble[];
  /** By how much its clock is ahead. */
  skewSeconds: number | null;
  lossShare: number | null;
  spoolShare: number | null;
  diskShare: number | null;
  gaps: number;
}

function sensorsPage(
  request: FastifyRequest,
  page: KnownSensors & { newestMinuteMs: number | undefined; canChange: boolean },
): Content {
  const { siteId, sensors, nowMs } = page;
  const lines = sensors.map((sensor) => lineOf(sensor, page));
  const troubled = lines.filter(
    ({ sensor, troubles }) => !isSilent(sensor, nowMs) && troubles.some(({ tone }) => tone !== 'neutral'),
  ).length;
  return [
    pageHeader({
      title: 'Sensors',
      state: siteState(sensors, page.newestMinuteMs, nowMs, troubled),
      actions:
        page.canChange && link(`/sites/${siteId}/settings#enrol`, 'Enrol a sensor', { kind: 'primary' }),
    }),
    refreshing({ id: 'sensors', url: request.url, everySeconds: 15 }, [
      sensorTable(request, siteId, lines, nowMs),
      section(
        { title: 'Captures', description: 'Captured interfaces; figures of the last hour.' },
        captureTable(request, page.captures, page),
      ),
    ]),
  ];
}

function lineOf(sensor: SensorState, known: KnownSensors): SensorLine {
  const condition = freshCondition(known.conditions, sensor.id, known.nowMs);
  const health = known.facts.health.find((one) => one.id === sensor.id);
  const skew = health ? skewSecondsOf(health) : null;
  return {
    sensor,
    troubles: troublesOf(sensor.id, known.facts),
    skewSeconds: skew === null ? null : Math.round(skew),
    lossShare: lossOf(known.captures, sensor),
    spoolShare: condition && spoolShareOf(condition),
    diskShare: condition && diskShareOf(condition),
    gaps: known.gaps.filter((gap) => gap.sensorId === sensor.id).length,
  };
}

function sensorTable(request: FastifyRequest, siteId: number, lines: readonly SensorLine[], nowMs: number) {
  // Silent sensors first, then those with other problems, so that the first page of many has them.
  const weight = ({ sensor, troubles }: SensorLine) =>
    Number(isSilent(sensor, nowMs)) * 2 + Number(troubles.length > 0);
  return dataTable<SensorLine>(request, {
    ...pagedRows(
      request,
      'sensors',
      lines.toSorted((a, b) => weight(b) - weight(a)),
      rowsShown,
    ),
    caption: 'Sensors',
    card: { line: ['state', 'node', 'contact'] },
    rowTone: ({ troubles }) => (troubles.length > 0 ? 'warn' : undefined),
    columns: [
      linkColumn('host', 'Host', ({ sensor }) => [sensor.hostName, `/sites/${siteId}/sensors/${sensor.id}`]),
      textColumn('node', 'Node', ({ sensor }) => sensor.node),
      ...stateColumns(nowMs),
      ...collectionColumns,
      textColumn('version', 'Version', ({ sensor }) => sensor.sensorVersion),
    ],
    empty: {
      title: 'No sensors yet',
      text: 'Each hypervisor runs a sensor. Create an enrolment token in the settings and start the sensor with it.',
    },
  });
}

/** Problems, clock, and the newest contact. */
const stateColumns = (nowMs: number): DataColumn<SensorLine>[] => [
  {
    key: 'state',
    header: 'State',
    cell: ({ troubles }) =>
      troubles.length === 0
        ? badge('good', 'reporting')
        : troubles.map(({ tone, short }) => html`${badge(tone, short)} `),
    value: ({ troubles }) =>
      troubles.length === 0 ? 'reporting' : troubles.map(({ short }) => short).join('; '),
  },
  figureColumn('clock', 'Clock', (row) => row.skewSeconds, clockText, { field: 'clock_ahead_seconds' }),
  ageColumn('contact', 'Last contact', ({ sensor }) => sensor.lastContactAtMs, nowMs),
  {
    key: 'newest',
    header: 'Newest minute',
    kind: 'figure',
    cell: ({ sensor: { newestMinuteMs } }) =>
      newestMinuteMs === null ? null : `ended ${formatAge(newestMinuteMs + 60_000, nowMs)}`,
    value: ({ sensor }) => isoTime(sensor.newestMinuteMs),
  },
];

/** Losses, and the room that is left for what is not sent yet. */
const collectionColumns: DataColumn<SensorLine>[] = [
  {
    key: 'loss',
    header: 'Loss, 1 h',
    kind: 'figure',
    field: 'lost_share',
    cell: ({ lossShare: share }) => {
      if (share === null) return null;
      return share >= 0.01 ? badge('bad', formatPercent(share, 2)) : formatPercent(share, 2);
    },
    value: (row) => row.lossShare,
  },
  {
    key: 'spool',
    header: 'Spool filled',
    kind: 'figure',
    cell: ({ spoolShare }) => (spoolShare === null ? untold : fillText(spoolShare, 0.7)),
    value: (row) => row.spoolShare,
  },
  {
    key: 'disk',
    header: 'Disk in use',
    kind: 'figure',
    cell: ({ diskShare }) => (diskShare === null ? untold : fillText(diskShare, 0.93)),
    value: (row) => row.diskShare,
  },
  countColumn('gaps', 'Gaps, 24 h', (row) => row.gaps),
];

function clockText(skew: number | null): Content {
  if (skew === null) return untold;
  const text = `${skew < 0 ? '−' : '+'}${formatDuration(Math.abs(skew))}`;
  return Math.abs(skew) >= skewSeconds.badFrom ? badge('bad', text) : text;
}

/** Part of the last hour's packets that all captures of a sensor lost. */
function lossOf(captures: readonly CaptureState[], sensor: SensorState): number | null {
  const own = captures.filter((one) => one.sensorId === sensor.id);
  const seen = own.reduce((sum, one) => sum + one.packets + one.kernelDropped, 0);
  const lost = own.reduce((sum, one) => sum + one.kernelDropped + one.parserDropped, 0);
  return seen > 0 ? lost / seen : null;
}
