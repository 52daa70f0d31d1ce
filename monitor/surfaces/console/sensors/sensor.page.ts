/** `/sites/{id}/sensors/{sensor}`: one sensor, its captures, its losses, and the network of its host. */
import type { FastifyRequest } from 'fastify';
import type { HostInterfaces, KnownCondition, SensorState } from '#monitor/sensors/index.ts';
import type { ForeignRow } from '#monitor/traffic/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import {
  badge,
  banner,
  code,
  confirm,
  definitionList,
  drawer,
  form,
  formatAge,
  formatBytes,
  formatCount,
  formatPercent,
  formatTime,
  html,
  isConfirmed,
  isoTime,
  link,
  moment,
  pageHeader,
  refreshing,
  section,
  stat,
  stats,
} from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, sendConsolePage, siteOf } from '../frame.ts';
import { type Viewer, viewerOf } from '../guard.ts';
import { dataTable } from '../parts/data-table.ts';
import { NodeBody, nodeFields, nodeMissing, nodeState, readNode } from '../parts/node-fields.ts';
import { nodeServersMax, nodeServersSection, planSection } from './plan-section.ts';
import { credentialRotation, credentialText, SensorParams } from './sensor-credential.ts';
import {
  captureTable,
  diskShareOf,
  freshCondition,
  gapTable,
  ratesOf,
  spoolShareOf,
} from './sensor-parts.ts';
import { type SensorTrouble, stateFactsOf, troublesOf } from './sensor-state.ts';
import { setAsideTable } from './set-aside-table.ts';

/** Maximum number of interfaces on the page; files have all. */
const interfacesShown = 100;
const dayMs = 86_400_000;
const gapsMax = 500;
const setAsideMax = 20;
const foreignMax = 100;
export function registerSensorPage(app: App, deps: ConsoleDeps): void {
  app.get(
    '/sites/:siteId/sensors/:sensorId',
    { schema: { params: SensorParams } },
    async (request, reply) => {
      const nowMs = Date.now();
      const { siteId, sensorId } = request.params;
      const site = await siteOf(deps.sites, siteId);
      const sensors = await deps.sensors.list(siteId);
      const sensor = pickSensor(sensors, sensorId);
      const { conditions, captures, rates, hosts, gaps, nodes, foreign, setAside, servers, facts } =
        await readSensor(deps, sensor, nowMs);
      const troubles = troublesOf(sensorId, facts);
      const viewer = viewerOf(request);
      const condition = freshCondition(conditions, sensorId, nowMs);
      const host = hosts.find((one) => one.sensorId === sensorId);
      const own = gaps.filter((gap) => gap.sensorId === sensorId);
      const content = [
        pageHeader({
          title: sensor.hostName,
          state: stateOf(sensor, troubles, nowMs),
          actions: viewer.canChange && [
            nodeChoice(siteId, sensor, nodes, viewer),
            credentialRotation(siteId, sensor, viewer),
            removal(siteId, sensor, viewer),
          ],
        }),
        refreshing({ id: 'sensor', url: request.url, everySeconds: 20 }, [
          troubles.slice(1).map(({ text }) => html`<p class="hint">${text}</p>`),
          condition?.isPaused &&
            banner({
              tone: 'bad',
              title: 'Collection is paused: the spool is full',
              text: 'Pending minutes are kept. Free disk space on the host, or restore its connection to the monitor.',
            }),
          conditionStats(condition, nowMs),
          definitionList([
            { term: 'Node', value: nodeState(sensor, nodes, sensors) },
            { term: 'Version', value: sensor.sensorVersion },
            { term: 'Enrolled', value: moment(sensor.enrolledAtMs, nowMs) },
            { term: 'Credential', value: credentialText(sensor) },
            { term: 'Last contact', value: moment(sensor.lastContactAtMs, nowMs) },
            {
              term: 'Spool, upload',
              value: sensor.spoolId && html`${code(sensor.spoolId)} #${formatCount(sensor.sequence)}`,
            },
          ]),
          section(
            {
              title: 'Captures',
              description: 'Captured interfaces; figures of the last hour.',
            },
            captureTable(
              request,
              captures.filter((one) => one.sensorId === sensorId),
              rates,
              nowMs,
            ),
          ),
          section(
            { title: 'Gaps', description: 'Gaps of the last 24 hours. Nothing is estimated.' },
            gapTable(request, own),
          ),
          section(
            {
              id: 'set-aside',
              title: 'Counters ignored',
              description:
                'Impossible counters: above 400 Gbit/s, or more bytes than the packets can hold. The address is unknown in that minute; the rest of the upload is kept.',
            },
            setAsideTable(request, setAside),
          ),
          section(
            {
              id: 'foreign',
              title: 'Addresses of other nodes',
              description:
                'Traffic of the last 24 hours for addresses of servers on other nodes. It is stored but not counted.',
            },
            foreignTable(request, siteId, foreign),
          ),
          planSection(request, facts.health.find((one) => one.id === sensorId)?.plan ?? []),
          nodeServersSection(request, sensor.node, servers, nowMs),
          interfaceSection(request, host, nowMs),
        ]),
      ];
      const options = { title: sensor.hostName, site: { site, page: 'sensors' as const } };
      return sendConsolePage(request, reply, options, content);
    },
  );

  app.post(
    '/sites/:siteId/sensors/:sensorId/revoke',
    { schema: { params: SensorParams } },
    async (request, reply) => {
      const { siteId, sensorId } = request.params;
      const sensor = await findSensor(deps, siteId, sensorId);
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

export function registerSensorNode(app: App, deps: ConsoleDeps): void {
  app.post(
    '/sites/:siteId/sensors/:sensorId/node',
    { schema: { params: SensorParams, body: NodeBody } },
    async (request, reply) => {
      const { siteId, sensorId } = request.params;
      const sensor = await findSensor(deps, siteId, sensorId);
      const refuse = (message: string) => new HttpError(422, { code: 'node_refused', message });
      const chosen = readNode(request.body);
      if (!chosen) throw refuse(nodeMissing);
      try {
        await deps.sensors.chooseNode(viewerOf(request).actor, { siteId, sensorId: sensor.id }, chosen);
      } catch (error) {
        throw refuse(faultText(error, 'sensors.invalid', 'sensors.node_taken'));
      }
      return reply.redirect(`/sites/${siteId}/sensors/${sensorId}`, 303);
    },
  );
}

async function findSensor(deps: ConsoleDeps, siteId: number, sensorId: number): Promise<SensorState> {
  return pickSensor(await deps.sensors.list(siteId), sensorId);
}

function pickSensor(sensors: readonly SensorState[], sensorId: number): SensorState {
  const sensor = sensors.find((known) => known.id === sensorId);
  if (!sensor) throw new HttpError(404, { code: 'not_found', message: 'This sensor does not exist.' });
  return sensor;
}

/** The data of the page. */
async function readSensor(deps: ConsoleDeps, sensor: SensorState, nowMs: number) {
  const { siteId, id } = sensor;
  const { sensors, traffic } = deps;
  const [conditions, captures, rates, hosts, gaps, nodes, foreign, setAside, servers] = await Promise.all([
    sensors.listConditions(siteId),
    traffic.listCaptures(siteId),
    ratesOf(deps.live, siteId),
    sensors.listInterfaces(siteId),
    traffic.listGaps(siteId, nowMs - dayMs, nowMs, gapsMax),
    sensors.listNodes(siteId),
    traffic.listForeign(siteId, nowMs - dayMs, nowMs, id, foreignMax),
    deps.setAsides.listOfSensor(siteId, id, setAsideMax),
    readNodeServers(deps, sensor),
  ]);
  const facts = await stateFactsOf(deps, siteId, rates);
  return { conditions, captures, rates, hosts, gaps, nodes, foreign, setAside, servers, facts };
}

/** Servers in the clusters that its node may belong to. */
async function readNodeServers(deps: ConsoleDeps, { siteId, node, clusterId }: SensorState) {
  const mapped = (await deps.sites.listClusters()).filter((mapping) => mapping.siteId === siteId);
  const clusterIds = mapped.map((mapping) => mapping.clusterId);
  const own = clusterId === null ? clusterIds : clusterIds.filter((id) => id === clusterId);
  const found = await deps.inventory.listNodeServers(own, node, nodeServersMax + 1);
  return { rows: found.slice(0, nodeServersMax), isComplete: found.length <= nodeServersMax };
}

/** The worst problem, or the reporting state. */
function stateOf(sensor: SensorState, troubles: readonly SensorTrouble[], nowMs: number) {
  const [worst] = troubles;
  if (worst) return { tone: worst.tone, text: worst.text };
  return {
    tone: 'good',
    text: `Reporting: last upload ${formatAge(sensor.lastContactAtMs!, nowMs)}.`,
  } as const;
}

function conditionStats(condition: KnownCondition | null, nowMs: number) {
  const source = condition ? `told ${formatAge(condition.receivedAtMs, nowMs)}` : 'no recent report';
  const spool = condition && spoolShareOf(condition);
  const disk = condition && diskShareOf(condition);
  return stats(
    stat({
      label: 'Spool filled',
      value: spool === null ? undefined : formatPercent(spool),
      source,
      tone: spool !== null && spool >= 0.8 ? 'bad' : 'neutral',
    }),
    stat({
      label: 'Uploads waiting',
      value: condition ? formatCount(condition.spoolPendingUploads) : undefined,
      source: condition
        ? `${formatBytes(condition.spoolPendingBytes)} of ${formatBytes(condition.spoolBytesMax)}`
        : source,
    }),
    stat({
      label: 'Disk in use',
      value: disk === null ? undefined : formatPercent(disk),
      source: condition ? `${formatBytes(condition.diskFreeBytes)} free` : source,
      tone: disk !== null && disk >= 0.95 ? 'bad' : 'neutral',
    }),
    stat({
      label: 'Collection',
      value: condition ? (condition.isPaused ? 'paused' : 'runs') : undefined,
      source,
      tone: condition?.isPaused ? 'bad' : 'neutral',
    }),
  );
}

/** The host's network as reported by its kernel. */
function interfaceSection(request: FastifyRequest, host: HostInterfaces | undefined, nowMs: number) {
  const all = (host?.interfaces ?? []).filter((one) => one.name !== 'lo');
  const left = Math.max(0, all.length - interfacesShown) + (host?.interfacesLeftOut ?? 0);
  const place = (row: HostInterfaces['interfaces'][number]) =>
    row.master || (row.parent ? `${row.parent}, VLAN ${row.vlan}` : null);
  return section(
    {
      title: 'Interfaces',
      ...(host && {
        description: `As of ${formatAge(host.observedAtMs, nowMs)}; ${formatCount(host.neighbours)} neighbours known.`,
      }),
    },
    [
      dataTable<HostInterfaces['interfaces'][number]>(request, {
        id: 'interfaces',
        caption: 'Interfaces',
        rows: all.slice(0, interfacesShown),
        isComplete: left === 0,
        columns: [
          {
            key: 'name',
            header: 'Interface',
            kind: 'code',
            cell: (row) => row.name,
            value: (row) => row.name,
          },
          {
            key: 'kind',
            header: 'Kind',
            cell: (row) => row.kind || 'device',
            value: (row) => row.kind || 'device',
          },
          {
            key: 'state',
            header: 'State',
            cell: (row) => (row.isUp ? badge('good', 'up') : badge('neutral', 'down')),
            value: (row) => (row.isUp ? 'up' : 'down'),
          },
          { key: 'mac', header: 'MAC', kind: 'code', cell: (row) => row.mac, value: (row) => row.mac },
          { key: 'place', header: 'Member of', cell: (row) => place(row) ?? 'none', value: place },
          {
            key: 'addresses',
            header: 'Addresses',
            cell: (row) => row.addresses.join(', ') || 'none',
            value: (row) => row.addresses.join(' '),
          },
        ],
        empty: { title: 'No interfaces yet', text: 'They appear with the first minutes of the sensor.' },
      }),
      left > 0 ? html`<p class="hint">${formatCount(left)} more are not shown.</p>` : null,
    ],
  );
}

function nodeChoice(
  siteId: number,
  sensor: SensorState,
  nodes: Awaited<ReturnType<ConsoleDeps['sensors']['listNodes']>>,
  viewer: Viewer,
) {
  const value = nodes.find((one) => one.node === sensor.node);
  return drawer(
    { id: 'node', open: 'Change node', title: `Node of ${sensor.hostName}` },
    form(
      {
        action: `/sites/${siteId}/sensors/${sensor.id}/node`,
        csrfToken: viewer.csrfToken,
        submit: 'Change node',
      },
      nodeFields(nodes, value ? { node: `${value.clusterId}/${value.node}` } : { node_name: sensor.node }),
    ),
  );
}

function foreignTable(request: FastifyRequest, siteId: number, rows: readonly ForeignRow[]) {
  return dataTable<ForeignRow>(request, {
    id: 'foreign',
    caption: 'Addresses of other nodes',
    rows,
    columns: [
      {
        key: 'address',
        header: 'Address',
        cell: (row) =>
          link(`/sites/${siteId}/addresses/${encodeURIComponent(row.address)}`, code(row.address)),
        value: (row) => row.address,
      },
      {
        key: 'minutes',
        header: 'Minutes',
        kind: 'figure',
        cell: (row) => formatCount(row.minutes),
        value: (row) => row.minutes,
      },
      {
        key: 'in',
        header: 'In',
        kind: 'figure',
        cell: (row) => formatBytes(row.rxBytes),
        field: 'in_bytes',
        value: (row) => row.rxBytes,
      },
      {
        key: 'out',
        header: 'Out',
        kind: 'figure',
        cell: (row) => formatBytes(row.txBytes),
        field: 'out_bytes',
        value: (row) => row.txBytes,
      },
      {
        key: 'last',
        header: 'Last minute',
        cell: (row) => formatTime(row.lastMinute * 1000),
        value: (row) => isoTime(row.lastMinute * 1000),
      },
    ],
    empty: { title: 'None', text: 'All reported addresses belong to its node or to no server.' },
  });
}

function removal(siteId: number, sensor: SensorState, viewer: Viewer) {
  return drawer(
    { id: 'revoke', open: 'Remove', title: `Remove ${sensor.hostName}`, openKind: 'danger' },
    confirm({
      action: `/sites/${siteId}/sensors/${sensor.id}/revoke`,
      csrfToken: viewer.csrfToken,
      name: sensor.hostName,
      consequence:
        'Its credential is refused from then on: this host can not send data until it is enrolled again with a new token. Received data stays.',
      submit: 'Remove sensor',
    }),
  );
}
