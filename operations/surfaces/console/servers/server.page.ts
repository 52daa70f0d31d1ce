import { guardReasonTitle } from '#contracts/guard-reasons.ts';
import type { Features } from '#operations/features.ts';
import type { Guard, SpoofingAttempt } from '#operations/guards/index.ts';
import { statusOf, supersededBy } from '#operations/servers/index.ts';
import type { Server } from '#operations/views/server-store.ts';
import {
  actionButton,
  askButton,
  badge,
  banner,
  type Content,
  cellColumn,
  code,
  codeBlock,
  confirm,
  definitionList,
  drawer,
  formatMoney,
  type Html,
  html,
  link,
  moment,
  pageHeader,
  section,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';
import { countColumn, momentColumn, noSuchPage, readAll } from '#service-kit/web/index.ts';
import { bootFacts, serverActionsTable, trafficDaySection } from '../../parts/index.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';
import { readMonitorLink } from '../links.ts';
import { place } from '../traffic/traffic.routes.ts';
import { toneOf } from './servers.routes.ts';

const actionsMax = 20;

export interface ServerPageOptions extends Awaited<ReturnType<typeof readServerPage>> {
  staff: Staff;
  server: Server;
  toast?: { tone: Tone; text: Content } | undefined;
  confirmError?: string;
}

/** What the page shows of the server; throws the 404 of the console for one that was destroyed since it was found. */
export async function readServerPage(deps: Features, { actor }: Staff, { id, tenantId }: Server) {
  const nowMs = deps.clock.nowMs();
  const about = {
    ...{ traffic: deps.protectTraffic, history: deps.serverHistory, place },
    ...{ actor, serverId: id, nowMs },
  };
  const { guard, ...read } = await readAll({
    actions: deps.servers.listActions(actor, null, id, actionsMax),
    failureDetail: deps.servers.findFailureDetail(actor, id),
    tenant: deps.accounts.findTenant(tenantId),
    inMonitor: readMonitorLink(deps.signOn),
    // The last day, as a chart.
    traffic: trafficDaySection(about),
    guard: deps.guards.readGuard(actor, id),
    // The newest first.
    attempts: deps.guards.listAttempts(actor, id),
    nowMs,
  });
  if (guard === null) throw noSuchPage();
  return { ...read, guard };
}

/** `/console/servers/{id}`: where it is, what was done, and what an operator can do about it. */
export function serverPage(options: ServerPageOptions): Html {
  const { staff, server, inMonitor, nowMs } = options;
  return consoleFrame(
    {
      staff,
      title: server.name,
      current: 'servers',
      breadcrumb: [{ label: 'Servers', href: '/console/servers/' }, { label: server.name }],
      toast: options.toast,
    },
    [
      pageHeader({
        title: server.name,
        state: {
          tone: toneOf(server),
          text: [
            upperFirst(statusOf(server)),
            ' since ',
            moment(server.statusChangedAt.getTime(), nowMs),
            '.',
          ],
        },
        actions: [
          inMonitor({ kind: 'server', clusterId: server.clusterId, serverId: server.id }),
          powerButtons(options),
        ],
      }),
      failure(options),
      options.traffic,
      section({ title: 'Details' }, facts(options)),
      guardSection(options),
      section(
        { title: 'Activity' },
        serverActionsTable(options, {
          withIds: true,
          emptyText: 'Actions on this server appear here.',
        }),
      ),
    ],
  );
}

const upperFirst = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

function facts({ server, tenant, inMonitor, nowMs }: ServerPageOptions): Html {
  return definitionList([
    { term: 'Id', value: code(String(server.id), true) },
    { term: 'Guest', value: code(`vm-${server.id}`, true) },
    {
      term: 'Customer',
      value: link(`/console/customers/${server.tenantId}`, tenant?.name ?? String(server.tenantId)),
    },
    { term: 'Cluster', value: link('/console/clusters/', `${server.clusterName}, ${server.locationName}`) },
    { term: 'Node', value: server.node === null ? 'none yet' : code(server.node) },
    {
      term: 'Addresses',
      value:
        server.addresses.length > 0
          ? server.addresses.map(({ address }) => {
              const shown = inMonitor({ kind: 'address', address }, { kind: 'plain', about: address });
              return html`<div>${code(address, true)}</div>${shown && html`<div>${shown}</div>`}`;
            })
          : 'no public address',
    },
    {
      term: 'Plan',
      value: `${server.planName}: ${server.vcpus} vCPU, ${server.memoryMb / 1024} GiB memory, ${server.diskGb} GB disk`,
    },
    { term: 'Image', value: server.imageName },
    ...bootFacts(server),
    {
      term: 'Price',
      value: `${formatMoney(server.hourlyQuanta)} an hour, at most ${formatMoney(server.monthlyCapQuanta)} a month`,
    },
    { term: 'Attacks', value: link(`/console/attacks/?server=${server.id}`, 'Attacks on it and from it') },
    { term: 'Port scans', value: link(`/console/port-scans/?server=${server.id}`, 'Scans of its addresses') },
    {
      term: 'Potential vulnerabilities',
      value: link(`/console/findings/?server=${server.id}`, 'Of its services'),
    },
    { term: 'Order', value: code(String(server.orderId)) },
    { term: 'Created', value: moment(server.createdAt.getTime(), nowMs) },
  ]);
}

function powerButtons({ staff, server }: ServerPageOptions): Content {
  if (!staff.canChange || server.provisioningState !== 'ready') return '';
  const action = `/console/servers/${server.id}/actions`;
  const { csrfToken } = staff;
  const powerOff = drawer({ id: 'ask-stop', open: 'Power off', title: 'Power off?' }, [
    html`<p>The operating system is not shut down. Data not yet written to disk is lost.</p>`,
    actionButton({ action, csrfToken, label: 'Power off', kind: 'danger', fields: { action: 'stop' } }),
  ]);
  if (server.currentAction !== null)
    return supersededBy.stop?.includes(server.currentAction.command) ? powerOff : '';
  if (server.powerState !== 'running')
    return actionButton({ action, csrfToken, label: 'Start', fields: { action: 'start' } });
  return [
    askButton(
      {
        ...{ id: 'ask-shutdown', label: 'Shut down', title: 'Shut down?', openKind: 'button' as const },
        ...{ action, csrfToken, fields: { action: 'shutdown' } },
      },
      'The operating system is asked to shut down. The server does not answer until it is started again.',
    ),
    powerOff,
  ];
}

/** The failure and the three ways out of it. */
function failure({ staff, server, failureDetail, confirmError }: ServerPageOptions): Content {
  if (statusOf(server) !== 'failed') return '';
  const path = `/console/servers/${server.id}`;
  const { csrfToken } = staff;
  return [
    banner({
      tone: 'bad',
      title: 'Provisioning failed',
      text: 'The customer cannot use or destroy it until an operator retries or resolves it. It is not charged.',
    }),
    failureDetail !== null && codeBlock({ code: failureDetail, label: 'Hypervisor error' }),
    staff.canChange &&
      section({ title: 'Resolve', id: 'resolve' }, [
        definitionList([
          {
            term: 'The cause is fixed',
            value: actionButton({
              action: `${path}/retry`,
              csrfToken,
              label: 'Provision again',
              kind: 'primary',
            }),
          },
          {
            term: 'The server was repaired by hand and runs',
            value: actionButton({
              action: `${path}/resolve`,
              csrfToken,
              label: 'Hand it over',
              fields: { resolution: 'repaired' },
            }),
          },
        ]),
        confirm({
          action: `${path}/resolve`,
          csrfToken,
          name: server.name,
          consequence:
            'It cannot be provisioned. Its remains are removed and its addresses released. The payment remains customer credit.',
          submit: 'Remove it',
          fields: { resolution: 'remove' },
          error: confirmError,
        }),
      ]),
  ];
}

interface GuardSectionOptions {
  staff: Staff;
  server: Server;
  guard: Guard;
  /** The newest first. */
  attempts: readonly SpoofingAttempt[];
  nowMs: number;
}

/** What the server may send, and what it tried to. */
function guardSection(options: GuardSectionOptions): Html {
  const { guard, server, nowMs } = options;
  return section(
    {
      title: 'Spoofing guard',
      id: 'guard',
      description:
        'The hypervisor drops what this server sends from MACs and addresses that are not its own.',
      actions: switchButton(options),
    },
    [
      html`<p>${stateOf(options)}</p>`,
      guard.support === 'counted' &&
        table<SpoofingAttempt>({
          caption: 'Spoofed traffic',
          card: { title: 'reason', line: ['packets', 'last'] },
          columns: [
            cellColumn('reason', 'Dropped', ({ reason }) => guardReasonTitle(reason)),
            cellColumn('sources', 'Claimed sources', (attempt) => sourcesOf(attempt)),
            cellColumn('interface', 'Interface', (attempt) => interfaceOf(attempt, server)),
            countColumn('packets', 'Packets', ({ packets }) => packets),
            momentColumn('began', 'First', ({ beganAt }) => beganAt.getTime(), nowMs),
            momentColumn('last', 'Last', ({ lastAt }) => lastAt.getTime(), nowMs),
          ],
          rows: options.attempts,
          empty: { title: 'None', text: 'Packets that the guard drops appear here within 15 seconds.' },
        }),
    ],
  );
}

function stateOf({ guard, nowMs }: GuardSectionOptions): Content {
  if (guard.support === 'none') return badge('warn', 'The hypervisor has no guard');
  const since = guard.changedAt === null ? '' : [' since ', moment(guard.changedAt.getTime(), nowMs)];
  const state = guard.isOn
    ? badge('good', 'On')
    : badge('warn', 'Off: this server may send from any MAC and address');
  const notYet = {
    applied: '',
    pending: ' The hypervisor has not been told yet.',
    failed: ' The hypervisor could not be told. Switch it again.',
  };
  const isCounted = guard.support === 'counted' ? '' : ' This hypervisor does not count what it drops.';
  return [state, since, notYet[guard.status], isCounted];
}

function switchButton({ staff, server, guard }: GuardSectionOptions): Content {
  if (!staff.canChange || guard.support === 'none' || server.provisioningState !== 'ready') return '';
  const action = `/console/servers/${server.id}/guard`;
  const { csrfToken } = staff;
  if (!guard.isOn)
    return actionButton({ action, csrfToken, label: 'Switch on', kind: 'primary', fields: { state: 'on' } });
  return askButton(
    {
      ...{ id: 'guard-off', label: 'Switch off', title: 'Switch the spoofing guard off?' },
      ...{ openKind: 'button' as const, action, csrfToken, fields: { state: 'off' } },
    },
    'This server can then send from the addresses of other servers, on all its interfaces. Routers of private networks need this.',
  );
}

function sourcesOf({ sources }: SpoofingAttempt): Content {
  return sources.length === 0 ? '–' : sources.map((source) => html`<div>${code(source)}</div>`);
}

function interfaceOf({ networkId }: SpoofingAttempt, server: Server): Content {
  if (networkId === null) return 'public';
  return server.privateNetworks.find((one) => one.networkId === networkId)?.name ?? `network ${networkId}`;
}
