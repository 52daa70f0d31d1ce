/** `/sites/{id}/devices` and one device: what was seen, what it is called, which addresses it owned. */
import { Type } from 'typebox';
import { type Claim, type Device, labelDevice } from '#monitor/devices/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import {
  age,
  badge,
  code,
  definitionList,
  field,
  form,
  formatAge,
  formatCount,
  html,
  link,
  moment,
  notice,
  pageHeader,
  refreshing,
  section,
  type Tone,
  table,
  toast,
} from '#service-kit/pages/index.ts';
import { faultText, SiteParams, sendConsolePage, siteOf } from './frame.ts';
import { viewerOf } from './guard.ts';
import type { ConsoleDeps } from './index.ts';
import { inventoryNotice } from './inventory-notice.ts';

const rowsMax = 500;
const addressesShown = 3;
const DeviceParams = Type.Object({ ...SiteParams.properties, deviceId: Type.Integer({ minimum: 1 }) });

export function registerDevicesPages(app: App, deps: ConsoleDeps): void {
  app.get('/sites/:siteId/devices', { schema: { params: SiteParams } }, async (request, reply) => {
    const nowMs = Date.now();
    const site = await siteOf(deps.sites, request.params.siteId);
    const devices = await deps.devices.list(site.id, rowsMax);
    const claims = await deps.devices.listClaims(devices.map((device) => device.id));
    const content = [
      pageHeader({ title: 'Devices', state: stateOf(devices, claims) }),
      await inventoryNotice(deps, nowMs),
      refreshing(
        { id: 'devices', url: request.url, everySeconds: 15 },
        deviceTable(
          site.id,
          devices,
          Map.groupBy(claims, (claim) => claim.deviceId),
          nowMs,
        ),
      ),
    ];
    return sendConsolePage(request, reply, { title: 'Devices', site: { site, page: 'devices' } }, content);
  });

  app.get(
    '/sites/:siteId/devices/:deviceId',
    { schema: { params: DeviceParams, querystring: Type.Object({ saved: Type.Optional(Type.String()) }) } },
    (request, reply) => showDevice(deps, request, reply, request.query.saved !== undefined),
  );

  app.post(
    '/sites/:siteId/devices/:deviceId/name',
    { schema: { params: DeviceParams, body: Type.Object({ name: Type.String({ maxLength: 400 }) }) } },
    async (request, reply) => {
      const { siteId, deviceId } = request.params;
      try {
        const input = { siteId, deviceId, name: request.body.name };
        if (!(await deps.devices.name(viewerOf(request).actor, input))) throw unknownDevice();
      } catch (error) {
        if (error instanceof HttpError) throw error;
        return showDevice(deps, request, reply, false, faultText(error, 'devices.invalid'));
      }
      return reply.redirect(`/sites/${siteId}/devices/${deviceId}?saved=1`, 303);
    },
  );
}

function unknownDevice(): HttpError {
  return new HttpError(404, { code: 'not_found', message: 'There is no such device.' });
}

async function showDevice(
  deps: ConsoleDeps,
  request: Parameters<typeof viewerOf>[0],
  reply: Parameters<typeof sendConsolePage>[1],
  isSaved: boolean,
  fault?: string,
) {
  const nowMs = Date.now();
  const { siteId, deviceId } = request.params as { siteId: number; deviceId: number };
  const site = await siteOf(deps.sites, siteId);
  const device = await deps.devices.find(site.id, deviceId);
  if (!device) throw unknownDevice();
  const claims = await deps.devices.listBindings(device.id);
  const label = labelDevice(device);
  const viewer = viewerOf(request);
  const content = [
    pageHeader({ title: label.text, state: deviceState(device, nowMs) }),
    section({ title: 'Identity' }, identity(device, nowMs)),
    section(
      {
        title: 'Addresses',
        description: 'Which addresses this device was seen to own. A released one belongs to its past.',
      },
      claimTable(claims, nowMs),
    ),
    section(
      {
        title: 'Name',
        description:
          'Belongs to the MAC, so every segment that shows it takes the name. Empty: named automatically.',
      },
      viewer.canChange
        ? form(
            {
              action: `/sites/${site.id}/devices/${device.id}/name`,
              csrfToken: viewer.csrfToken,
              submit: 'Save name',
            },
            field({
              name: 'name',
              label: 'Name',
              value: device.operatorName ?? '',
              maxLength: 80,
              error: fault,
            }),
          )
        : notice({ tone: 'info', title: 'Your role may look and change nothing.' }),
    ),
  ];
  return sendConsolePage(
    request,
    reply,
    {
      title: label.text,
      site: { site, page: 'devices' },
      isNarrow: true,
      status: fault ? 422 : 200,
      ...(isSaved ? { toast: toast('good', 'Name saved.') } : {}),
    },
    content,
  );
}

function stateOf(devices: readonly Device[], claims: readonly Claim[]): { tone: Tone; text: string } {
  const live = devices.filter((device) => device.archivedAtMs === null).length;
  const conflicts = new Set(claims.filter((claim) => claim.isInConflict).map((claim) => claim.address)).size;
  const text = `${formatCount(live)} live, ${formatCount(devices.length - live)} archived`;
  if (conflicts === 0) return { tone: 'good', text: `${text}.` };
  const addresses = conflicts === 1 ? 'one address' : `${formatCount(conflicts)} addresses`;
  return { tone: 'warn', text: `${text}; ${addresses} claimed by more than one MAC.` };
}

function deviceState(device: Device, nowMs: number): { tone: Tone; text: string } {
  const seen = `Last seen in the minute from ${formatAge(device.lastSeenMs, nowMs)}`;
  return device.archivedAtMs === null
    ? { tone: 'good', text: `${seen}.` }
    : { tone: 'neutral', text: `Archived: its server is gone. ${seen}.` };
}

const sources: Readonly<Record<ReturnType<typeof labelDevice>['source'], string>> = {
  operator: 'named here',
  vm: 'server',
  manufacturer: 'manufacturer',
  mac: 'MAC',
  randomized: 'randomized MAC',
};

function deviceTable(
  siteId: number,
  devices: readonly Device[],
  claims: ReadonlyMap<number, Claim[]>,
  nowMs: number,
) {
  return table<Device>({
    caption: 'Devices',
    rows: devices,
    columns: [
      {
        key: 'device',
        header: 'Device',
        cell: (row) => link(`/sites/${siteId}/devices/${row.id}`, labelDevice(row).text),
      },
      { key: 'source', header: 'Named by', cell: (row) => sources[labelDevice(row).source] },
      {
        key: 'state',
        header: 'State',
        cell: (row) => (row.archivedAtMs === null ? badge('good', 'live') : badge('neutral', 'archived')),
      },
      {
        key: 'mac',
        header: 'MAC',
        cell: (row) =>
          html`${code(row.mac)}${row.isRandomized ? html` ${badge('neutral', 'randomized')}` : ''}`,
      },
      { key: 'segment', header: 'Segment', kind: 'code', cell: (row) => row.segment },
      { key: 'addresses', header: 'Addresses', cell: (row) => addressesOf(claims.get(row.id) ?? []) },
      { key: 'seen', header: 'Last seen', kind: 'figure', cell: (row) => age(row.lastSeenMs, nowMs) },
    ],
    pages: devices.length === rowsMax ? { label: `The first ${rowsMax}` } : undefined,
    empty: {
      title: 'No devices yet',
      text: 'A device appears with the first minute in which a sensor saw it own a local address.',
    },
  });
}

function addressesOf(claims: readonly Claim[]) {
  const live = claims;
  if (live.length === 0) return html`<span class="unknown">none</span>`;
  const more = live.length - addressesShown;
  return [
    live
      .slice(0, addressesShown)
      .map(
        (claim) =>
          html`${code(claim.address)}${claim.isInConflict ? html` ${badge('warn', 'conflict')}` : ''} `,
      ),
    more > 0 ? `and ${more} more` : '',
  ];
}

function identity(device: Device, nowMs: number) {
  const { match } = device;
  return definitionList([
    { term: 'MAC', value: html`${code(device.mac, true)}${device.isRandomized ? ' randomized' : ''}` },
    { term: 'Segment', value: code(device.segment) },
    {
      term: 'Manufacturer',
      value: device.isRandomized ? 'none: the MAC is randomized' : device.manufacturer,
    },
    {
      term: 'Server',
      value: match
        ? html`${match.vmName} (${match.vmId}, cluster ${match.clusterId}), matched ${moment(match.matchedAtMs, nowMs)}${
            match.endedAtMs === null ? '' : html`, gone ${moment(match.endedAtMs, nowMs)}`
          }`
        : 'no match',
    },
    { term: 'First seen', value: moment(device.firstSeenMs, nowMs) },
    { term: 'Last seen', value: moment(device.lastSeenMs, nowMs) },
    ...(device.archivedAtMs === null
      ? []
      : [{ term: 'Archived', value: moment(device.archivedAtMs, nowMs) }]),
  ]);
}

function claimTable(claims: readonly Claim[], nowMs: number) {
  return table<Claim>({
    caption: 'Addresses',
    rows: claims,
    columns: [
      { key: 'address', header: 'Address', cell: (row) => code(row.address) },
      {
        key: 'state',
        header: 'State',
        cell: (row) =>
          row.endedAtMs !== null
            ? badge('neutral', 'released')
            : row.isInConflict
              ? badge('warn', 'conflict')
              : badge('good', 'live'),
      },
      { key: 'first', header: 'First seen', cell: (row) => moment(row.firstSeenMs, nowMs) },
      { key: 'last', header: 'Last seen', cell: (row) => moment(row.lastSeenMs, nowMs) },
    ],
    empty: { title: 'No addresses', text: 'No address of this device has been seen within three months.' },
  });
}
