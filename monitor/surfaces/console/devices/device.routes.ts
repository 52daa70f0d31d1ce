/** `/sites/{id}/devices/{id}`: the requests for one device, for the data of its charts, and for another name. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { keptText } from '#contracts/retention.ts';
import { Id } from '#contracts/scalars.ts';
import { type Claim, type Device, deviceKeyOf, labelDevice } from '#monitor/devices/index.ts';
import type { DeviceStep, Limited } from '#monitor/facts/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import type { Range } from '#service-kit/pages/index.ts';
import {
  banner,
  type ChartData,
  type ChartUnit,
  type Content,
  chart,
  chartJson,
  field,
  form,
  formatBytes,
  isoTime,
  link,
  pageHeader,
  rangePicker,
  readRange,
  refreshing,
  section,
  stat,
  stats,
  toast,
} from '#service-kit/pages/index.ts';
import { fileHref, offerData } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, notFound, RangeQuery, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { type Viewer, viewerOf } from '../guard.ts';
import { exploreButton, type OperationsLink, readOperationsLink } from '../parts/address-link.ts';
import { readAround } from '../parts/chart-around.ts';
import { inventoryBanner } from '../parts/inventory-banner.ts';
import { serverHref } from '../vulnerabilities/finding-text.ts';
import type { DeviceApplication } from './device-parts.ts';
import {
  applicationTable,
  bindingTable,
  conflictTable,
  deviceEventTable,
  deviceState,
  identity,
} from './device-parts.ts';
import { limitedBanner } from './devices.routes.ts';

const Params = Type.Object({ ...SiteParams.properties, deviceId: Id });
type Params = Static<typeof Params>;
const Query = Type.Object({ saved: Type.Optional(Type.String()), ...RangeQuery.properties });
type Query = Static<typeof Query>;

const dayMs = 86_400_000;
/** Longer ranges are read in steps of a day (NET-2.2.10). */
const finestMs = 7 * dayMs;
export function registerDevice(app: App, deps: ConsoleDeps): void {
  app.get(
    '/sites/:siteId/devices/:deviceId',
    { schema: { params: Params, querystring: Query } },
    (request, reply) => showDevice(deps, reply, request.params, request.query),
  );

  app.get(
    '/sites/:siteId/devices/:deviceId/:side.json',
    {
      schema: {
        params: Type.Object({
          ...Params.properties,
          side: Type.Union([Type.Literal('wan'), Type.Literal('lan')]),
        }),
        querystring: Query,
      },
    },
    async (request) => {
      const { siteId, deviceId, side } = request.params;
      const device = await findDevice(deps, siteId, deviceId);
      const nowMs = Date.now();
      const range = deviceRange(request.query, nowMs);
      const [steps, bindings] = await Promise.all([
        readSteps(deps, device, range),
        deps.devices.listBindings(device.id),
      ]);
      const around = await readDeviceAround(deps, device, bindings, range, nowMs);
      return chartJson(unitOf(range), chartData(steps, side, around, range));
    },
  );

  app.post(
    '/sites/:siteId/devices/:deviceId/name',
    { schema: { params: Params, body: Type.Object({ name: Type.String({ maxLength: 400 }) }) } },
    async (request, reply) => {
      const { siteId, deviceId } = request.params;
      try {
        const input = { siteId, deviceId, name: request.body.name };
        if (!(await deps.devices.name(viewerOf(request).actor, input))) throw unknownDevice();
      } catch (error) {
        if (error instanceof HttpError) throw error;
        const fault = faultText(error, 'devices.invalid');
        return showDevice(deps, reply, request.params, {}, { fault, typed: request.body.name });
      }
      return reply.redirect(`/sites/${siteId}/devices/${deviceId}?saved=1`, 303);
    },
  );
}

const unknownDevice = () => notFound('This device does not exist.');

async function findDevice(deps: ConsoleDeps, siteId: number, deviceId: number): Promise<Device> {
  const site = await siteOf(deps.sites, siteId);
  const device = await deps.devices.find(site.id, deviceId);
  if (!device) throw unknownDevice();
  return device;
}

async function showDevice(
  deps: ConsoleDeps,
  reply: FastifyReply,
  { siteId, deviceId }: Params,
  query: Query,
  refused?: RefusedName,
): Promise<FastifyReply> {
  const { request } = reply;
  const nowMs = Date.now();
  const site = await siteOf(deps.sites, siteId);
  const device = await findDevice(deps, siteId, deviceId);
  const range = deviceRange(query, nowMs);
  const data = await readDevice(deps, device, range, nowMs);
  const inOperations = await readOperationsLink(deps.signOn);
  const viewer = viewerOf(request);
  const content = devicePage(request, { device, range, ...data, refused, inOperations, viewer, nowMs });
  return sendConsolePage(
    reply,
    {
      title: labelDevice(device).text,
      site: { site, page: 'devices' },
      status: refused ? 422 : 200,
      ...(query.saved === undefined ? {} : { toast: toast('good', 'Name saved.') }),
    },
    content,
  );
}

/** A month is read in whole days, shorter ranges as elsewhere. */
function deviceRange(query: Query, nowMs: number): Range {
  const range = readRange(query, nowMs, '24h');
  if (range.toMs - range.fromMs <= finestMs) return range;
  return {
    ...range,
    fromMs: Math.floor(range.fromMs / dayMs) * dayMs,
    toMs: Math.ceil(range.toMs / dayMs) * dayMs,
    stepSeconds: 86_400,
  };
}

/** Input of a refused form for the name. */
interface RefusedName {
  fault: string;
  typed: string;
}

interface DevicePage extends DeviceData {
  device: Device;
  range: Range;
  refused: RefusedName | undefined;
  inOperations: OperationsLink;
  viewer: Viewer;
  nowMs: number;
}

/** The page of one device: identity, owned addresses over time, WAN and LAN traffic. */
function devicePage(request: FastifyRequest, page: DevicePage): Content {
  const { device, range, bindings, conflicts, steps, nowMs } = page;
  const { text } = labelDevice(device);
  return [
    pageHeader({
      title: text,
      state: deviceState(device, bindings, nowMs),
      actions: [
        rangePicker({ url: pageUrl(request), range, nowMs }),
        exploreButton(request, device.siteId, { device: deviceKeyOf(device) }, { by: 'none' }),
        findingsLink(device, page.assessed),
        operationsLink(page),
      ],
    }),
    device.match &&
      device.match.endedAtMs === null &&
      inventoryBanner(page.connection, page.inventory, nowMs),
    refreshing({ id: 'device-traffic', url: pageUrl(request), everySeconds: 60 }, [
      steps.sourceLimited && limitedBanner(),
      trafficPart(request, page),
    ]),
    section({ title: 'Identity' }, identity(device, nowMs)),
    section(
      {
        title: 'Name',
        description: 'Applies to the MAC on every segment. Leave empty for the automatic name.',
      },
      nameForm(device, page.viewer, page.refused),
    ),
    section(
      { title: 'Addresses', description: `Owned addresses over time; kept for ${keptText('bindings')}.` },
      bindingTable(request, device.siteId, bindings, nowMs),
    ),
    conflicts.length > 0 &&
      section({ title: 'Conflicts' }, conflictTable(request, conflicts, device.mac, nowMs)),
    section(
      {
        title: 'Applications',
        description: `Internet applications of its addresses in the last hour of the range, while it owned them.`,
      },
      applicationTable(request, device.siteId, page.applications, formatBytes),
    ),
    section({ title: 'Events' }, deviceEventTable(request, page.events, nowMs)),
  ];
}

/** Of the server that the device is, where scans found it. */
function findingsLink({ siteId }: Device, assessed: DeviceData['assessed']): Content {
  if (assessed?.siteId !== siteId) return false;
  return link(serverHref(siteId, assessed), 'Potential vulnerabilities', { kind: 'button' });
}

/** Of the server that the device is now. */
function operationsLink({ device: { match }, inOperations }: DevicePage): Content {
  if (match === null || match.endedAtMs !== null) return false;
  return inOperations({ kind: 'server', clusterId: match.clusterId, serverId: match.serverId });
}

/** The page's URL; in the answer to a refused form, the URL of the form's page. */
function pageUrl(request: FastifyRequest): string {
  return request.url.replace(/\/name(\?.*)?$/, '');
}

function nameForm(device: Device, viewer: Viewer, refused: RefusedName | undefined): Content {
  if (!viewer.canChange) return banner({ tone: 'info', title: 'Your role is read-only.' });
  return form(
    {
      action: `/sites/${device.siteId}/devices/${device.id}/name`,
      csrfToken: viewer.csrfToken,
      submit: 'Save name',
    },
    field({
      name: 'name',
      label: 'Name',
      value: refused?.typed ?? device.operatorName ?? '',
      maxLength: 80,
      error: refused?.fault,
    }),
  );
}

function isDaily(range: Range): boolean {
  return range.stepSeconds === 86_400;
}

function unitOf(range: Range): ChartUnit {
  return isDaily(range) ? 'bytes' : 'bit/s';
}

type Side = 'wan' | 'lan';

function chartData(
  steps: Limited<DeviceStep>,
  side: Side,
  around: Pick<ChartData, 'reasons' | 'flags'>,
  range: Range,
): ChartData {
  const scale = isDaily(range) ? 1 : 8 / range.stepSeconds;
  const values = (key: 'rxBytes' | 'txBytes') =>
    steps.items.map((step) => (step[side] === null ? null : step[side][key] * scale));
  return {
    reasons: around.reasons,
    // One chart tells what happened; the other one stands below it.
    flags: side === 'wan' ? around.flags : [],
    timesMs: steps.items.map((step) => step.timeMs),
    stepMs: range.stepSeconds * 1000,
    range,
    shape: isDaily(range) ? 'bars' : 'lines',
    series: [
      { label: 'In', role: 'in', values: values('rxBytes') },
      { label: 'Out', role: 'out', values: values('txBytes') },
    ],
  };
}

const sideWords = { wan: 'WAN', lan: 'LAN' } as const;

function trafficPart(request: FastifyRequest, { device, steps, around, range }: DevicePage): Content {
  offerData(request, {
    id: 'traffic',
    rows: steps.items,
    fields: [
      { field: 'time', value: (row) => isoTime(row.timeMs) },
      { field: 'wan_in_bytes', value: (row) => row.wan?.rxBytes },
      { field: 'wan_out_bytes', value: (row) => row.wan?.txBytes },
      { field: 'lan_in_bytes', value: (row) => row.lan?.rxBytes },
      { field: 'lan_out_bytes', value: (row) => row.lan?.txBytes },
    ],
  });
  const query = request.url.split('?')[1];
  const sum = (side: Side, key: 'rxBytes' | 'txBytes') => {
    const known = steps.items.flatMap((step) => (step[side] === null ? [] : step[side][key]));
    return known.length === 0 ? 'Unavailable' : formatBytes(known.reduce((total, bytes) => total + bytes, 0));
  };
  const source = 'as owner, in this range';
  return [
    stats(
      stat({ label: 'WAN in', value: sum('wan', 'rxBytes'), source }),
      stat({ label: 'WAN out', value: sum('wan', 'txBytes'), source }),
      stat({ label: 'LAN in', value: sum('lan', 'rxBytes'), source }),
      stat({ label: 'LAN out', value: sum('lan', 'txBytes'), source }),
    ),
    (['wan', 'lan'] as const).map((side) =>
      chart({
        id: `device-${side}`,
        title: isDaily(range) ? `${sideWords[side]}, bytes by day` : sideWords[side],
        unit: unitOf(range),
        data: chartData(steps, side, around, range),
        dataUrl: `/sites/${device.siteId}/devices/${device.id}/${side}.json${query ? `?${query}` : ''}`,
        refreshSeconds: 60,
        size: 'small',
        canZoom: true,
        source: 'each address and minute from its strongest capture, summed over its addresses',
        csvHref: fileHref(request, 'traffic', 'csv'),
        emptyText: 'Unavailable: no counters with a known owner have arrived for this range.',
      }),
    ),
  ];
}

// What the page of a device shows, read from the features.

/** Applications are summed from minutes, so over one hour and a limited number of addresses. */
const applicationMs = 3_600_000;
const addressesMax = 8;
const eventsShown = 20;

type DeviceData = Awaited<ReturnType<typeof readDevice>>;

async function readDevice(deps: ConsoleDeps, device: Device, range: Range, nowMs: number) {
  const server = device.match?.endedAtMs === null ? device.match : null;
  const [connection, inventory, bindings, conflicts, events, steps, assessed] = await Promise.all([
    deps.connection.view(),
    deps.inventory.state(),
    deps.devices.listBindings(device.id),
    deps.devices.listConflicts(device.siteId, device.mac),
    deps.events.list(device.siteId, eventsShown, { mac: device.mac }),
    readSteps(deps, device, range),
    server && deps.vulnerabilities.findServer(server.clusterId, server.serverId),
  ]);
  const [applications, around] = await Promise.all([
    readApplications(deps, device, bindings, range, nowMs),
    readDeviceAround(deps, device, bindings, range, nowMs),
  ]);
  return { around, connection, inventory, bindings, conflicts, events, steps, applications, assessed };
}

async function readSteps(deps: ConsoleDeps, device: Device, range: Range): Promise<Limited<DeviceStep>> {
  if (device.foreignReason !== null) return { items: [], sourceLimited: false };
  const { fromMs, toMs, stepSeconds } = range;
  return deps.traffic.readDevice(device.siteId, deviceKeyOf(device), fromMs, toMs, stepSeconds);
}

/** What happened to the addresses that it owned in the range. */
async function readDeviceAround(
  deps: ConsoleDeps,
  device: Device,
  bindings: readonly Claim[],
  range: Range,
  nowMs: number,
) {
  const addresses = bindings
    .filter((one) => one.firstSeenMs < range.toMs && (one.endedAtMs ?? range.toMs) > range.fromMs)
    .slice(0, addressesMax)
    .map((one) => one.address);
  return readAround(deps, { siteId: device.siteId, addresses: [...new Set(addresses)] }, range, nowMs);
}

/** Applications of its addresses in the last hour of the range, only in minutes in which it owned them. */
async function readApplications(
  deps: ConsoleDeps,
  device: Device,
  bindings: readonly Claim[],
  range: Range,
  nowMs: number,
): Promise<DeviceApplication[]> {
  if (device.foreignReason !== null) return [];
  const toMs = Math.min(range.toMs, Math.ceil(nowMs / 60_000) * 60_000);
  const fromMs = Math.max(range.fromMs, toMs - applicationMs);
  const owned = bindings.filter((one) => one.firstSeenMs < toMs && (one.endedAtMs ?? toMs) > fromMs);
  const sums = new Map<string, DeviceApplication>();
  const read = async (binding: Claim) => {
    const from = Math.max(fromMs, binding.firstSeenMs) / 1000;
    const to = Math.min(toMs, Math.ceil((binding.endedAtMs ?? toMs) / 60_000) * 60_000) / 1000;
    return from < to
      ? deps.applications.readAddressApplications(device.siteId, binding.address, from, to)
      : [];
  };
  for (const uses of await Promise.all(owned.slice(0, addressesMax).map(read))) {
    for (const { name, direction, inboundBytes, outboundBytes } of uses) {
      const key = `${direction} ${name}`;
      const sum = sums.get(key) ?? { name, direction, inboundBytes: 0, outboundBytes: 0 };
      sum.inboundBytes += inboundBytes;
      sum.outboundBytes += outboundBytes;
      sums.set(key, sum);
    }
  }
  const bytes = (one: DeviceApplication) => one.inboundBytes + one.outboundBytes;
  return [...sums.values()].sort((a, b) => bytes(b) - bytes(a)).slice(0, 50);
}
