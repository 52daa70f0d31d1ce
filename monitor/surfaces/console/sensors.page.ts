/** `/sites/{id}/sensors`: who reports, how fresh it is, and what was lost on the way. */
import { Type } from 'typebox';
import type { LiveRate } from '#monitor/live/index.ts';
import type { HostInterfaces, SensorState } from '#monitor/sensors/index.ts';
import type { CaptureState } from '#monitor/traffic/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import {
  age,
  badge,
  code,
  confirm,
  drawer,
  formatAge,
  formatBitRate,
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

/** Interfaces of one host on the page; the rest is counted. */
const interfacesShown = 50;

export function registerSensorsPage(app: App, deps: ConsoleDeps): void {
  app.get('/sites/:siteId/sensors', { schema: { params: SiteParams } }, async (request, reply) => {
    const nowMs = Date.now();
    const site = await siteOf(deps.sites, request.params.siteId);
    const [sensors, captures, newest, rates, hosts] = await Promise.all([
      deps.sensors.list(site.id),
      deps.traffic.listCaptures(site.id),
      deps.traffic.newestMinutes(),
      deps.live.listRates(site.id),
      deps.sensors.listInterfaces(site.id),
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
          captureTable(captures, rates, nowMs),
        ),
        hosts.map((host) => interfaceSection(host, nowMs)),
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

function captureTable(captures: readonly CaptureState[], rates: readonly LiveRate[], nowMs: number) {
  const rateOf = (row: CaptureState) =>
    rates.find((rate) => rate.sensorId === row.sensorId && rate.capture === row.name);
  const lost = (count: number) => (count > 0 ? badge('warn', formatCount(count)) : '0');
  return table<CaptureState>({
    caption: 'Captures',
    rows: captures,
    columns: [
      { key: 'name', header: 'Capture', kind: 'code', cell: (row) => row.name },
      { key: 'host', header: 'Host', cell: (row) => row.hostName },
      { key: 'role', header: 'Role', cell: (row) => row.role },
      {
        key: 'live',
        header: 'Right now',
        kind: 'figure',
        cell: (row) => {
          const rate = rateOf(row);
          return rate ? formatBitRate((rate.ipBytes * 8000) / rate.observedMs) : null;
        },
      },
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

/** What the host's network consists of, by what its kernel says. */
function interfaceSection(host: HostInterfaces, nowMs: number) {
  const shown = host.interfaces.filter((one) => one.name !== 'lo');
  return section(
    {
      title: `Interfaces of ${host.hostName}`,
      description: `As of ${formatAge(host.observedAtMs, nowMs)}; ${formatCount(host.neighbours)} neighbours known.`,
    },
    [
      table<HostInterfaces['interfaces'][number]>({
        caption: `Interfaces of ${host.hostName}`,
        rows: shown.slice(0, interfacesShown),
        columns: [
          { key: 'name', header: 'Interface', kind: 'code', cell: (row) => row.name },
          { key: 'kind', header: 'Kind', cell: (row) => row.kind || 'device' },
          {
            key: 'state',
            header: 'State',
            cell: (row) => (row.isUp ? badge('good', 'up') : badge('neutral', 'down')),
          },
          { key: 'mac', header: 'MAC', kind: 'code', cell: (row) => row.mac },
          {
            key: 'place',
            header: 'Member of',
            cell: (row) => row.master || (row.parent ? `${row.parent}, VLAN ${row.vlan}` : null),
          },
          { key: 'addresses', header: 'Addresses', cell: (row) => row.addresses.join(', ') },
        ],
        empty: { title: 'No interfaces', text: 'The host told of none.' },
      }),
      shown.length > interfacesShown
        ? html`<p>${formatCount(shown.length - interfacesShown + host.interfacesLeftOut)} more are not shown.</p>`
        : null,
    ],
  );
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
