/** The page of a server, for staff. */
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import { guardReasonTitle } from '#contracts/guard-reasons.ts';
import type { Features } from '#operations/features.ts';
import type { Guard, SpoofingAttempt } from '#operations/guards/index.ts';
import { statusOf, supersededBy } from '#operations/servers/index.ts';
import type { Server } from '#operations/views/server-store.ts';
import type { App } from '#service-kit/http/index.ts';
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
  isConfirmed,
  link,
  moment,
  pageHeader,
  section,
  sendPage,
  type Tone,
  table,
  toastOf,
} from '#service-kit/pages/index.ts';
import { countColumn, momentColumn, noSuchPage, readAll } from '#service-kit/web/index.ts';
import { bootFacts, serverActionsTable, trafficDaySection } from '../../parts/index.ts';
import { consoleFrame } from '../frame.ts';
import { Id, type Staff } from '../guard.ts';
import { readMonitorLink } from '../links.ts';
import { place } from '../traffic/traffic.routes.ts';
import { toneOf } from './servers.routes.ts';

const PowerForm = Type.Object({
  action: Type.Union([Type.Literal('start'), Type.Literal('shutdown'), Type.Literal('stop')]),
});
const ResolveForm = Type.Object({
  resolution: Type.Union([Type.Literal('repaired'), Type.Literal('remove')]),
});

const GuardForm = Type.Object({ state: Type.Union([Type.Literal('on'), Type.Literal('off')]) });

const outcomes: Record<string, string> = {
  retry: 'Provisioning is queued again.',
  repaired: 'The server is available to its owner.',
  remove: 'The server is being removed.',
  start: 'Starting.',
  shutdown: 'The operating system was asked to shut down.',
  stop: 'Switching off.',
  guard_on: 'The guard is being switched on.',
  guard_off: 'The guard is being switched off.',
};

export function registerServer(app: App, deps: Features): void {
  app.get(
    '/servers/:id',
    { schema: { params: Id, querystring: Type.Object({ done: Type.Optional(Type.String()) }) } },
    async (request, reply) => {
      const toast = toastOf(outcomes, request.query.done);
      return show(deps, request.staff!, reply, request.params.id, 200, { toast });
    },
  );

  app.post('/servers/:id/retry', { schema: { params: Id } }, (request, reply) =>
    change(deps, request.staff!, reply, request.params.id, 'retry', (staff, id) =>
      deps.servers.retryProvisioning(staff.actor, id),
    ),
  );

  app.post('/servers/:id/resolve', { schema: { params: Id, body: ResolveForm } }, async (request, reply) => {
    const staff = request.staff!;
    const { id } = request.params;
    const { resolution } = request.body;
    const server = await findServer(deps, staff, id);
    if (resolution === 'remove' && !isConfirmed(request.body, server.name)) {
      const confirmError = `Nothing was removed. Type ${server.name} to confirm.`;
      return show(deps, staff, reply, id, 422, { confirmError });
    }
    return change(deps, staff, reply, id, resolution, () =>
      deps.servers.resolveProvisioning(staff.actor, id, resolution),
    );
  });

  app.post('/servers/:id/guard', { schema: { params: Id, body: GuardForm } }, (request, reply) => {
    const { state } = request.body;
    return change(deps, request.staff!, reply, request.params.id, `guard_${state}`, (staff, id) =>
      deps.guards.switchGuard(staff.actor, id, state === 'on'),
    );
  });

  app.post('/servers/:id/actions', { schema: { params: Id, body: PowerForm } }, (request, reply) =>
    change(deps, request.staff!, reply, request.params.id, request.body.action, (staff, id) =>
      deps.servers.changePower(staff.actor, null, id, { command: request.body.action }),
    ),
  );
}

/** Runs an operator's change and shows its result; a refusal is shown as a toast. */
async function change(
  deps: Features,
  staff: Staff,
  reply: FastifyReply,
  id: number,
  done: string,
  work: (staff: Staff, id: number) => Promise<unknown>,
): Promise<FastifyReply> {
  try {
    await work(staff, id);
  } catch (error) {
    if (!(error instanceof CodedError) || error.code === 'accounts.forbidden') throw error;
    if (error.code === 'servers.not_found' || error.code === 'guards.not_found') throw noSuchPage();
    return show(deps, staff, reply, id, 409, { toast: { tone: 'bad', text: error.message } });
  }
  return reply.redirect(`/console/servers/${id}?done=${done}`, 303);
}

async function show(
  deps: Features,
  staff: Staff,
  reply: FastifyReply,
  id: number,
  status: number,
  state: Pick<ServerPageOptions, 'toast' | 'confirmError'>,
): Promise<FastifyReply> {
  const server = await findServer(deps, staff, id);
  const page = { staff, server, ...(await readServerPage(deps, staff, server)), ...state };
  return sendPage(reply, serverPage(page), status);
}

async function findServer(deps: Features, staff: Staff, id: number): Promise<Server> {
  const server = await deps.servers.findServer(staff.actor, null, id);
  if (server === null) throw noSuchPage();
  return server;
}

const actionsMax = 20;

interface ServerPageOptions extends Awaited<ReturnType<typeof readServerPage>> {
  staff: Staff;
  server: Server;
  toast?: { tone: Tone; text: Content } | undefined;
  confirmError?: string;
}

/** What the page shows of the server; throws the 404 of the console for one that was destroyed since it was found. */
async function readServerPage(deps: Features, { actor }: Staff, { id, tenantId }: Server) {
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
function serverPage(options: ServerPageOptions): Html {
  const { staff, server, inMonitor, nowMs } = options;
  return consoleFrame({ staff, title: server.name, current: 'servers', toast: options.toast }, [
    pageHeader({
      title: server.name,
      state: {
        tone: toneOf(server),
        text: [upperFirst(statusOf(server)), ' since ', moment(server.statusChangedAt.getTime(), nowMs), '.'],
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
      serverActionsTable(options, { withIds: true, emptyText: 'Actions on this server appear here.' }),
    ),
  ]);
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
