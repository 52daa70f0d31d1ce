/** `/sites/{id}/sensors`: all sensors with state, lag, free space and losses. */
import type { FastifyRequest } from 'fastify';
import { skewSeconds, skewSecondsOf } from '#monitor/alerts/index.ts';
import type { KnownCondition, SensorState } from '#monitor/sensors/index.ts';
import type { CaptureState, GapRow } from '#monitor/traffic/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  age,
  badge,
  formatAge,
  formatCount,
  formatDuration,
  formatPercent,
  html,
  isoTime,
  link,
  pageHeader,
  refreshing,
  section,
} from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { dataTable, pagedRows } from '../parts/data-table.ts';
import { isLate, siteState } from '../parts/site-state.ts';
import {
  captureTable,
  diskShareOf,
  fillText,
  freshCondition,
  ratesOf,
  spoolShareOf,
  untold,
} from './sensor-parts.ts';
import { type StateFacts, stateFactsOf, troublesOf } from './sensor-state.ts';

const dayMs = 86_400_000;
const gapsMax = 2000;
const rowsShown = 50;

export function registerSensorsPage(app: App, deps: ConsoleDeps): void {
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
    const troubled = sensors.filter(
      (one) => !isLate(one, nowMs) && troublesOf(one.id, facts).some(({ tone }) => tone !== 'neutral'),
    ).length;
    const viewer = viewerOf(request);
    const content = [
      pageHeader({
        title: 'Sensors',
        state: siteState(sensors, newest.get(site.id), nowMs, troubled),
        actions:
          viewer.canChange && link(`/sites/${site.id}/settings#enrol`, 'Enrol a sensor', { kind: 'primary' }),
      }),
      refreshing({ id: 'sensors', url: request.url, everySeconds: 15 }, [
        sensorTable(request, site.id, { sensors, conditions, captures, gaps, facts, nowMs }),
        section(
          {
            title: 'Captures',
            description: 'Captured interfaces; figures of the last hour.',
          },
          captureTable(request, captures, rates, nowMs),
        ),
      ]),
    ];
    return sendConsolePage(request, reply, { title: 'Sensors', site: { site, page: 'sensors' } }, content);
  });
}

interface Known {
  sensors: readonly SensorState[];
  conditions: readonly KnownCondition[];
  captures: readonly CaptureState[];
  gaps: readonly GapRow[];
  facts: StateFacts;
  nowMs: number;
}

function sensorTable(request: FastifyRequest, siteId: number, known: Known) {
  const { nowMs } = known;
  const conditionOf = (row: SensorState) => freshCondition(known.conditions, row.id, nowMs);
  const spoolOf = (row: SensorState) => {
    const condition = conditionOf(row);
    return condition && spoolShareOf(condition);
  };
  const diskOf = (row: SensorState) => {
    const condition = conditionOf(row);
    return condition && diskShareOf(condition);
  };
  const skewOf = (row: SensorState) => {
    const health = known.facts.health.find((one) => one.id === row.id);
    const skew = health ? skewSecondsOf(health) : null;
    return skew === null ? null : Math.round(skew);
  };
  const gapsOf = (row: SensorState) => known.gaps.filter((gap) => gap.sensorId === row.id).length;
  const troubles = new Map(known.sensors.map((row) => [row.id, troublesOf(row.id, known.facts)]));
  // Silent sensors first, then those with other problems, so that the first page of many has them.
  const weight = (row: SensorState) =>
    Number(isLate(row, nowMs)) * 2 + Number(troubles.get(row.id)!.length > 0);
  return dataTable<SensorState>(request, {
    ...pagedRows(
      request,
      'sensors',
      known.sensors.toSorted((a, b) => weight(b) - weight(a)),
      rowsShown,
    ),
    caption: 'Sensors',
    rowTone: (row) => (troubles.get(row.id)!.length > 0 ? 'warn' : undefined),
    columns: [
      {
        key: 'host',
        header: 'Host',
        cell: (row) => link(`/sites/${siteId}/sensors/${row.id}`, row.hostName),
        value: (row) => row.hostName,
      },
      { key: 'node', header: 'Node', cell: (row) => row.node, value: (row) => row.node },
      {
        key: 'state',
        header: 'State',
        cell: (row) => {
          const found = troubles.get(row.id)!;
          if (found.length === 0) return badge('good', 'reporting');
          return found.map(({ tone, short }) => html`${badge(tone, short)} `);
        },
        value: (row) => {
          const found = troubles.get(row.id)!;
          return found.length === 0 ? 'reporting' : found.map(({ short }) => short).join('; ');
        },
      },
      {
        key: 'clock',
        header: 'Clock',
        kind: 'figure',
        field: 'clock_ahead_seconds',
        cell: (row) => {
          const skew = skewOf(row);
          if (skew === null) return untold;
          const text = `${skew < 0 ? '−' : '+'}${formatDuration(Math.abs(skew))}`;
          return Math.abs(skew) >= skewSeconds.badFrom ? badge('bad', text) : text;
        },
        value: skewOf,
      },
      {
        key: 'contact',
        header: 'Last contact',
        kind: 'figure',
        cell: (row) => age(row.lastContactAtMs, nowMs),
        value: (row) => isoTime(row.lastContactAtMs),
      },
      {
        key: 'newest',
        header: 'Newest minute',
        kind: 'figure',
        cell: (row) =>
          row.newestMinuteMs === null ? null : `ended ${formatAge(row.newestMinuteMs + 60_000, nowMs)}`,
        value: (row) => isoTime(row.newestMinuteMs),
      },
      {
        key: 'loss',
        header: 'Loss, 1 h',
        kind: 'figure',
        field: 'lost_share',
        cell: (row) => {
          const share = lossOf(known.captures, row);
          if (share === null) return null;
          return share >= 0.01 ? badge('bad', formatPercent(share, 2)) : formatPercent(share, 2);
        },
        value: (row) => lossOf(known.captures, row),
      },
      {
        key: 'spool',
        header: 'Spool filled',
        kind: 'figure',
        cell: (row) => {
          const share = spoolOf(row);
          return share === null ? untold : fillText(share, 0.7);
        },
        value: spoolOf,
      },
      {
        key: 'disk',
        header: 'Disk in use',
        kind: 'figure',
        cell: (row) => {
          const share = diskOf(row);
          return share === null ? untold : fillText(share, 0.93);
        },
        value: diskOf,
      },
      {
        key: 'gaps',
        header: 'Gaps, 24 h',
        kind: 'figure',
        cell: (row) => formatCount(gapsOf(row)),
        value: gapsOf,
      },
      {
        key: 'version',
        header: 'Version',
        cell: (row) => row.sensorVersion,
        value: (row) => row.sensorVersion,
      },
    ],
    empty: {
      title: 'No sensors yet',
      text: 'Each hypervisor runs a sensor. Create an enrolment token in the settings and start the sensor with it.',
    },
  });
}

/** Part of the last hour's packets that all captures of a sensor lost. */
function lossOf(captures: readonly CaptureState[], sensor: SensorState): number | null {
  const own = captures.filter((one) => one.sensorId === sensor.id);
  const seen = own.reduce((sum, one) => sum + one.packets + one.kernelDropped, 0);
  const lost = own.reduce((sum, one) => sum + one.kernelDropped + one.parserDropped, 0);
  return seen > 0 ? lost / seen : null;
}
