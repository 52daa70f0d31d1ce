/** `/sites/{id}/sensors/{sensor}`: one sensor, and what operators may do to it. */

import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { guardReasonTitle } from '#contracts/guard-reasons.ts';
import { Id } from '#contracts/scalars.ts';
import type { SetAsideHost } from '#contracts/sensor-api/set-aside.ts';
import type { ForeignAddress as ForeignRow } from '#monitor/facts/index.ts';
import type { HostInterfaces, KnownCondition, SensorState } from '#monitor/sensors/index.ts';
import type { SpoofedSum } from '#monitor/views/sensor-store.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import {
  badge,
  banner,
  type Content,
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
  link,
  moment,
  pageHeader,
  refreshing,
  section,
  stat,
  stats,
} from '#service-kit/pages/index.ts';
import {
  countColumn,
  dataTable,
  figureColumn,
  linkColumn,
  momentColumn,
  textColumn,
  timeColumn,
} from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, notFound, requireConfirmed, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { type Viewer, viewerOf } from '../guard.ts';
import { NodeBody, nodeFields, nodeMissing, nodeState, readNode } from '../parts/node-fields.ts';
import { bytesColumns } from '../parts/usage-columns.ts';
import {
  captureTable,
  diskShareOf,
  freshCondition,
  gapTable,
  nodeServersSection,
  planSection,
  spoolShareOf,
} from './sensor-parts.ts';
import { readSensor, type SensorData, type SensorTrouble, troublesOf } from './sensor-state.ts';

const SensorParams = Type.Object({ ...SiteParams.properties, sensorId: Id });

export function registerSensor(app: App, deps: ConsoleDeps): void {
  app.get(
    '/sites/:siteId/sensors/:sensorId',
    { schema: { params: SensorParams } },
    async (request, reply) => {
      const nowMs = Date.now();
      const { siteId, sensorId } = request.params;
      const site = await siteOf(deps.sites, siteId);
      const sensors = await deps.sensors.list(siteId);
      const sensor = pickSensor(sensors, sensorId);
      const data = await readSensor(deps, sensor, nowMs);
      const content = sensorPage(request, { sensor, sensors, ...data, viewer: viewerOf(request), nowMs });
      const options = { title: sensor.hostName, site: { site, page: 'sensors' as const } };
      return sendConsolePage(reply, options, content);
    },
  );

  registerRemoval(app, deps);
  registerNodeChoice(app, deps);
  registerRotation(app, deps);
}

function registerRemoval(app: App, deps: ConsoleDeps): void {
  app.post(
    '/sites/:siteId/sensors/:sensorId/revoke',
    { schema: { params: SensorParams } },
    async (request, reply) => {
      const { siteId, sensorId } = request.params;
      const sensor = await findSensor(deps, siteId, sensorId);
      requireConfirmed(request.body, sensor.hostName);
      try {
        await deps.sensors.revoke(viewerOf(request).actor, siteId, sensorId);
      } catch (error) {
        faultText(error);
      }
      return reply.redirect(`/sites/${siteId}/sensors`, 303);
    },
  );
}

function registerNodeChoice(app: App, deps: ConsoleDeps): void {
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

function registerRotation(app: App, deps: ConsoleDeps): void {
  app.post(
    '/sites/:siteId/sensors/:sensorId/rotate',
    { schema: { params: SensorParams } },
    async (request, reply) => {
      const { siteId, sensorId } = request.params;
      const { actor } = viewerOf(request);
      if (!(await deps.sensors.requestRotation(actor, siteId, sensorId)))
        throw notFound('This sensor does not exist.');
      return reply.redirect(`/sites/${siteId}/sensors/${sensorId}`, 303);
    },
  );
}

async function findSensor(deps: ConsoleDeps, siteId: number, sensorId: number): Promise<SensorState> {
  return pickSensor(await deps.sensors.list(siteId), sensorId);
}

function pickSensor(sensors: readonly SensorState[], sensorId: number): SensorState {
  const sensor = sensors.find((known) => known.id === sensorId);
  if (!sensor) throw notFound('This sensor does not exist.');
  return sensor;
}

interface SensorPage extends SensorData {
  sensor: SensorState;
  /** All of the site. */
  sensors: readonly SensorState[];
  viewer: Viewer;
  nowMs: number;
}

/** The page of one sensor: its captures, its losses, and the network of its host. */
function sensorPage(request: FastifyRequest, page: SensorPage): Content {
  const { sensor, nodes, viewer, nowMs } = page;
  const { siteId } = sensor;
  const troubles = troublesOf(sensor.id, page.facts);
  const condition = freshCondition(page.conditions, sensor.id, nowMs);
  const host = page.hosts.find((one) => one.sensorId === sensor.id);
  const plan = page.facts.health.find((one) => one.id === sensor.id)?.plan ?? [];
  return [
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
      identity(page),
      collectionSections(request, page),
      planSection(request, plan),
      nodeServersSection(request, sensor.node, page.servers, nowMs),
      interfaceSection(request, host, nowMs),
    ]),
  ];
}

function identity({ sensor, sensors, nodes, nowMs }: SensorPage): Content {
  return definitionList([
    { term: 'Node', value: nodeState(sensor, nodes, sensors) },
    { term: 'Version', value: sensor.sensorVersion },
    { term: 'Enrolled', value: moment(sensor.enrolledAtMs, nowMs) },
    { term: 'Credential', value: credentialText(sensor) },
    { term: 'Last contact', value: moment(sensor.lastContactAtMs, nowMs) },
    {
      term: 'Spool, upload',
      value: sensor.spoolId && html`${code(sensor.spoolId)} #${formatCount(sensor.sequence)}`,
    },
  ]);
}

/** Captures, and what was not collected or not counted. */
function collectionSections(request: FastifyRequest, page: SensorPage): Content {
  const { sensor, nowMs } = page;
  const captures = page.captures.filter((one) => one.sensorId === sensor.id);
  const gaps = page.gaps.filter((gap) => gap.sensorId === sensor.id);
  return [
    section(
      { title: 'Captures', description: 'Captured interfaces; figures of the last hour.' },
      captureTable(request, captures, page),
    ),
    section(
      { title: 'Gaps', description: 'Gaps of the last 24 hours. Nothing is estimated.' },
      gapTable(request, gaps),
    ),
    section(
      {
        id: 'set-aside',
        title: 'Counters ignored',
        description:
          'Impossible counters: above 400 Gbit/s, more bytes than the packets can hold, or a part that is more than the whole. The address is unknown in that minute; the rest of the upload is kept.',
      },
      setAsideTable(request, page.setAside),
    ),
    section(
      {
        id: 'foreign',
        title: 'Addresses of other nodes',
        description:
          'Traffic of the last 24 hours for addresses of servers on other nodes. It is stored but not counted.',
      },
      foreignTable(request, sensor.siteId, page.foreign),
    ),
    section(
      {
        id: 'spoofed',
        title: 'Spoofed traffic',
        description:
          'Packets of the last 24 hours from source addresses that the sender does not have, which count for no address. Where the kernel counts a bridge, also false claims in ARP, neighbor discovery, router advertisements and DHCP.',
      },
      spoofedTable(request, sensor.siteId, page.spoofed, nowMs),
    ),
  ];
}

/** Expiry of the sensor's credential, and the state of a requested rotation. */
function credentialText(sensor: SensorState): string {
  const { credentialExpiresAtMs: endsAtMs, credentialIssuedAtMs, rotationRequestedAtMs } = sensor;
  const end =
    endsAtMs === null
      ? 'No expiry: the sensor has not rotated it yet. Current sensor versions do so within a minute.'
      : `Issued ${formatTime(credentialIssuedAtMs)}, expires ${formatTime(endsAtMs)}. The sensor rotates it after two thirds of that time.`;
  return rotationRequestedAtMs === null
    ? end
    : `${end} Rotation requested ${formatTime(rotationRequestedAtMs)}; the sensor has not finished it.`;
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
  const source = condition ? `reported ${formatAge(condition.receivedAtMs, nowMs)}` : 'no recent report';
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

/** Counters that were left out of a sensor's uploads, by address. */
function setAsideTable(request: FastifyRequest, rows: readonly SetAsideHost[]): Content {
  return dataTable<SetAsideHost>(request, {
    id: 'set-aside',
    caption: 'Counters ignored',
    card: { line: ['capture', 'address'] },
    rows,
    empty: { title: 'None', text: 'All counters of this sensor are plausible.' },
    columns: [
      timeColumn('minute', 'Minute', (row) => row.minute * 1000),
      textColumn('capture', 'Capture', (row) => row.capture),
      textColumn('address', 'Address', (row) => row.address, { kind: 'code', show: code }),
    ],
  });
}

/** What may be done to a sensor, as drawers of its page. */
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

function credentialRotation(siteId: number, sensor: SensorState, viewer: Viewer) {
  return drawer(
    { id: 'rotate', open: 'Rotate credential', title: `Rotate the credential of ${sensor.hostName}` },
    [
      html`<p>The sensor gets a new credential within a minute, without data loss. The old one is refused after the first use of the new one. If the credential was stolen, remove the sensor instead, which takes effect at once.</p>`,
      form(
        {
          action: `/sites/${siteId}/sensors/${sensor.id}/rotate`,
          csrfToken: viewer.csrfToken,
          submit: 'Rotate credential',
        },
        null,
      ),
    ],
  );
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

// Tables of one sensor's page: the network of its host, addresses of other nodes, and spoofed traffic.

/** Maximum number of interfaces on the page; files have all. */
const interfacesShown = 100;

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
        card: { line: ['state', 'kind', 'addresses'] },
        rows: all.slice(0, interfacesShown),
        isComplete: left === 0,
        columns: [
          textColumn('name', 'Interface', (row) => row.name, { kind: 'code' }),
          textColumn('kind', 'Kind', (row) => row.kind || 'device'),
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

function foreignTable(request: FastifyRequest, siteId: number, rows: readonly ForeignRow[]) {
  return dataTable<ForeignRow>(request, {
    id: 'foreign',
    caption: 'Addresses of other nodes',
    card: { line: ['minutes', 'last'] },
    rows,
    columns: [
      linkColumn(
        'address',
        'Address',
        (row) => [row.address, `/sites/${siteId}/addresses/${encodeURIComponent(row.address)}`],
        { show: code },
      ),
      countColumn('minutes', 'Minutes', (row) => row.minutes),
      ...bytesColumns,
      timeColumn('last', 'Last minute', (row) => row.lastMinute * 1000),
    ],
    empty: { title: 'None', text: 'All reported addresses belong to its node or to no server.' },
  });
}

/** What was sent from addresses of others, by sender and address. */
function spoofedTable(request: FastifyRequest, siteId: number, rows: readonly SpoofedSum[], nowMs: number) {
  return dataTable<SpoofedSum>(request, {
    id: 'spoofed',
    caption: 'Spoofed traffic',
    card: { line: ['address', 'bytes', 'last'] },
    rows,
    columns: [
      {
        key: 'sender',
        header: 'Sender',
        cell: (row) => (row.mac === '' ? 'other MACs' : html`${code(row.mac)} ${namesOf(row.senders)}`),
        field: 'mac',
        value: (row) => row.mac || null,
      },
      textColumn('capture', 'Segment', (row) => row.segment, { field: 'segment' }),
      {
        key: 'address',
        header: 'Address',
        cell: (row) =>
          row.address === null
            ? row.mac === ''
              ? 'other addresses'
              : 'of no server'
            : html`${link(`/sites/${siteId}/addresses/${encodeURIComponent(row.address)}`, code(row.address))} ${namesOf(row.owners)}`,
        value: (row) => row.address,
      },
      textColumn('reason', 'Reason', (row) => guardReasonTitle(row.reason)),
      figureColumn('bytes', 'Bytes', (row) => row.bytes, formatBytes),
      countColumn('packets', 'Packets', (row) => row.packets),
      momentColumn('last', 'Last minute', (row) => row.lastMinuteMs, nowMs, { field: 'last_minute' }),
    ],
    fields: [
      { field: 'senders', value: (row) => row.senders.join(' ') },
      { field: 'owners', value: (row) => row.owners.join(' ') },
    ],
    empty: { title: 'None', text: 'Every guarded address was used by its own server only.' },
  });
}

const namesOf = (servers: readonly string[]) => (servers.length > 0 ? `(${servers.join(', ')})` : '');
