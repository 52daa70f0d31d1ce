/** `/sites/{id}/sensors`: who reports, how fresh it is, and what was lost on the way. */
import { Type } from 'typebox';
import type { SensorState } from '#monitor/sensors/index.ts';
import type { CaptureState } from '#monitor/traffic/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import {
  age,
  badge,
  code,
  confirm,
  drawer,
  formatAge,
  formatCount,
  formatPercent,
  html,
  isConfirmed,
  link,
  pageHeader,
  refreshing,
  section,
  table,
} from '#service-kit/pages/index.ts';
import { faultText, SiteParams, sendConsolePage, siteOf } from './frame.ts';
import { type Viewer, viewerOf } from './guard.ts';
import type { ConsoleDeps } from './index.ts';
import { isLate, siteState } from './site-state.ts';

export function registerSensorsPage(app: App, deps: ConsoleDeps): void {
  app.get('/sites/:siteId/sensors', { schema: { params: SiteParams } }, async (request, reply) => {
    const nowMs = Date.now();
    const site = await siteOf(deps.sites, request.params.siteId);
    const [sensors, captures, newest] = await Promise.all([
      deps.sensors.list(site.id),
      deps.traffic.listCaptures(site.id),
      deps.traffic.newestMinutes(),
    ]);
    const viewer = viewerOf(request);
    const content = [
      pageHeader({
        title: 'Sensors',
        state: siteState(sensors, newest.get(site.id), nowMs),
        actions:
          viewer.canChange && link(`/sites/${site.id}/settings#enrol`, 'Enrol a sensor', { kind: 'primary' }),
      }),
      refreshing({ id: 'sensors', url: request.url, everySeconds: 15 }, [
        sensorTable(sensors, nowMs),
        section(
          {
            title: 'Captures',
            description: 'Interfaces that sensors listen on; figures are of the last hour.',
          },
          captureTable(captures, nowMs),
        ),
      ]),
      viewer.canChange && sensors.length > 0 && removal(site.id, sensors, viewer),
    ];
    return sendConsolePage(request, reply, { title: 'Sensors', site: { site, page: 'sensors' } }, content);
  });

  const Params = Type.Object({ ...SiteParams.properties, sensorId: Type.Integer({ minimum: 1 }) });
  app.post(
    '/sites/:siteId/sensors/:sensorId/revoke',
    { schema: { params: Params } },
    async (request, reply) => {
      const { siteId, sensorId } = request.params;
      const sensor = (await deps.sensors.list(siteId)).find((known) => known.id === sensorId);
      if (!sensor) throw new HttpError(404, { code: 'not_found', message: 'There is no such sensor.' });
      if (!isConfirmed(request.body, sensor.hostName)) {
        const message = `Nothing was changed: type ${sensor.hostName} to confirm.`;
        throw new HttpError(422, { code: 'not_confirmed', message });
      }
      try {
        await deps.sensors.revoke(viewerOf(request).actor, siteId, sensorId);
      } catch (error) {
        faultText(error);
      }
      return reply.redirect(`/sites/${siteId}/sensors`, 303);
    },
  );
}

function sensorTable(sensors: readonly SensorState[], nowMs: number) {
  return table<SensorState>({
    caption: 'Sensors',
    rows: sensors,
    rowTone: (row) => (isLate(row, nowMs) ? 'warn' : undefined),
    columns: [
      { key: 'host', header: 'Host', cell: (row) => row.hostName },
      { key: 'node', header: 'Node', cell: (row) => row.node },
      {
        key: 'state',
        header: 'State',
        cell: (row) =>
          row.lastContactAtMs === null
            ? badge('neutral', 'never heard')
            : isLate(row, nowMs)
              ? badge('bad', 'silent')
              : badge('good', 'reporting'),
      },
      {
        key: 'contact',
        header: 'Last contact',
        kind: 'figure',
        cell: (row) => age(row.lastContactAtMs, nowMs),
      },
      {
        key: 'newest',
        header: 'Newest minute',
        kind: 'figure',
        cell: (row) =>
          row.newestMinuteMs === null ? null : `ended ${formatAge(row.newestMinuteMs + 60_000, nowMs)}`,
      },
      {
        key: 'spool',
        header: 'Spool, upload',
        cell: (row) => row.spoolId && html`${code(row.spoolId.slice(0, 8))} #${formatCount(row.sequence)}`,
      },
      { key: 'version', header: 'Version', cell: (row) => row.sensorVersion },
    ],
    empty: {
      title: 'No sensors yet',
      text: 'Each hypervisor runs one. Make an enrolment token in the settings and start the sensor with it.',
    },
  });
}

function captureTable(captures: readonly CaptureState[], nowMs: number) {
  const lost = (count: number) => (count > 0 ? badge('warn', formatCount(count)) : '0');
  return table<CaptureState>({
    caption: 'Captures',
    rows: captures,
    columns: [
      { key: 'name', header: 'Capture', kind: 'code', cell: (row) => row.name },
      { key: 'host', header: 'Host', cell: (row) => row.hostName },
      { key: 'role', header: 'Role', cell: (row) => row.role },
      {
        key: 'newest',
        header: 'Newest minute',
        kind: 'figure',
        cell: (row) =>
          row.newestMinute === null ? null : `ended ${formatAge(row.newestMinute * 1000 + 60_000, nowMs)}`,
      },
      {
        key: 'listened',
        header: 'Listened',
        kind: 'figure',
        cell: (row) => formatPercent(Math.min(1, row.observedMs / 3_600_000)),
      },
      { key: 'packets', header: 'Packets', kind: 'figure', cell: (row) => formatCount(row.packets) },
      { key: 'kernel', header: 'Lost in kernel', kind: 'figure', cell: (row) => lost(row.kernelDropped) },
      { key: 'parser', header: 'Not parsed', kind: 'figure', cell: (row) => lost(row.parserDropped) },
      {
        key: 'truncated',
        header: 'Without detail',
        kind: 'figure',
        cell: (row) => lost(row.detailTruncated),
      },
    ],
    empty: { title: 'No captures yet', text: 'They appear with the first minute that a sensor sends.' },
  });
}

function removal(siteId: number, sensors: readonly SensorState[], viewer: Viewer) {
  return section(
    { title: 'Remove a sensor', description: 'Its credential is refused from then on; what it sent stays.' },
    html`<div class="actions">${sensors.map((sensor) =>
      drawer(
        {
          id: `revoke-${sensor.id}`,
          open: `Remove ${sensor.hostName}`,
          title: `Remove ${sensor.hostName}`,
          openKind: 'danger',
        },
        confirm({
          action: `/sites/${siteId}/sensors/${sensor.id}/revoke`,
          csrfToken: viewer.csrfToken,
          name: sensor.hostName,
          consequence: 'This host can send nothing more until it is enrolled again with a new token.',
          submit: 'Remove sensor',
        }),
      ),
    )}</div>`,
  );
}
