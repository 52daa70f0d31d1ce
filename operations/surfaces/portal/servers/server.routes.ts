/** The page of a server: what it does now, and its power. */
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import type { Features } from '#operations/features.ts';
import type { Guard } from '#operations/guards/index.ts';
import { statusOf, supersededBy } from '#operations/servers/index.ts';
import type { PowerCommand, Server } from '#operations/views/server-store.ts';
import type { Demo } from '#service-kit/demo/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  actionButton,
  askButton,
  badge,
  banner,
  type Content,
  chart,
  code,
  codeBlock,
  definitionList,
  formatCount,
  formatMoney,
  type Html,
  html,
  link,
  moment,
  pageHeader,
  progress,
  refreshing,
  section,
  sendPage,
  type Tone,
  toastOf,
} from '#service-kit/pages/index.ts';
import { readAll } from '#service-kit/web/index.ts';
import {
  actionWords,
  bootFacts,
  findingCountWords,
  openAttackWords,
  serverActionsTable,
  upperFirst,
} from '../../parts/index.ts';
import { Done, Id, type Visitor } from '../guard.ts';
import { faultOf } from '../networks/network-frame.ts';
import { liveChartData, liveSource, readLive } from '../traffic/live.routes.ts';
import { overviewFigures } from './overview-figures.ts';
import { findServerOf, serverFrame, statusTone } from './server-frame.ts';

export interface ServerPagesDeps extends Features {
  demo: Demo | null;
}

const PowerForm = Type.Object({
  action: Type.Union(
    (['start', 'shutdown', 'stop', 'reboot', 'reset'] as const).map((command) => Type.Literal(command)),
  ),
});

/** What the toast says after a redirect; the name in the URL chooses, its text never comes from there. */
const outcomes: Record<string, string> = {
  start: 'Starting.',
  shutdown: 'The server was asked to shut down.',
  stop: 'Switching off.',
  reboot: 'Rebooting.',
  reset: 'Resetting.',
  resize: 'The server is being resized.',
  restore: 'The snapshot is being restored.',
  unrescue: 'The server starts from its own disk.',
  destroy: 'The server is being destroyed.',
};

export function registerServer(app: App, deps: ServerPagesDeps): void {
  app.get('/servers/:id', { schema: { params: Id, querystring: Done } }, async (request, reply) => {
    const { visitor, server } = await findServerOf(deps.servers, request);
    const toast = toastOf(outcomes, request.query.done);
    return showOverview(deps, { visitor, server }, reply, 200, { toast });
  });

  app.post('/servers/:id/actions', { schema: { params: Id, body: PowerForm } }, async (request, reply) => {
    const { visitor, server } = await findServerOf(deps.servers, request);
    const command = request.body.action as PowerCommand;
    const fault = await faultOf(() => deps.servers.changePower(visitor.actor, null, server.id, { command }));
    if (fault === null) return reply.redirect(`/client/servers/${server.id}?done=${command}`, 303);
    const toast = { tone: 'bad' as const, text: fault.message };
    return showOverview(deps, { visitor, server }, reply, 409, { toast });
  });
}

async function showOverview(
  deps: ServerPagesDeps,
  of: { visitor: Visitor; server: Server },
  reply: FastifyReply,
  status: number,
  state: Pick<OverviewOptions, 'toast'>,
): Promise<FastifyReply> {
  const page = overviewPage({ ...of, ...(await readOverview(deps, of)), ...state });
  return sendPage(reply, page, status);
}

async function readOverview(deps: ServerPagesDeps, of: { visitor: Visitor; server: Server }) {
  const { server } = of;
  const { actor } = of.visitor;
  const subject = { serverId: server.id, tenantId: server.tenantId };
  const settings = await deps.protectSettings.find(actor, subject);
  const { latest, history, ...read } = await readAll({
    // Absent while the protection views are off (NET-1.6).
    live: settings.viewsOn ? readLive(deps, { ...of, subject, settings }, undefined) : undefined,
    actions: deps.servers.listActions(actor, null, server.id, 10),
    latest: deps.protectTraffic.readLatest(actor, [server.id]),
    history: deps.bandwidth.readHistory(actor, null, server.id, { granularity: 'month' }),
    // Open ones on it or from it.
    attack: deps.protectIncidents.readOpen(actor, [server.id]).then((open) => open.get(server.id)),
    findings: deps.protectFindings.countOf(actor, [server.id]).then((counts) => counts.get(server.id)),
    guard: deps.guards.readGuard(actor, server.id),
  });
  return {
    ...read,
    traffic: { latest: latest.get(server.id), month: history?.current },
    // Its hypervisor has consoles.
    hasConsole: deps.servers.capabilitiesOf(server).includes('console'),
    nowMs: deps.clock.nowMs(),
  };
}

interface OverviewOptions extends Awaited<ReturnType<typeof readOverview>> {
  visitor: Visitor;
  server: Server;
  toast?: { tone: Tone; text: Content } | undefined;
}

/** `/client/servers/{id}`: what it does now, how it is reached, what happened to it, and how it is switched. */
function overviewPage(options: OverviewOptions): Html {
  const { server, visitor } = options;
  const path = `/client/servers/${server.id}`;
  const header = refreshing({ id: 'server-state', url: path, everySeconds: 5 }, [
    pageHeader({
      title: server.name,
      state: stateOf(server, options.nowMs),
      actions: [consoleButton(options), powerButtons(options)],
    }),
    attackBanner(options),
    rescueBanner(server),
    currentAction(server),
    server.provisioningState === 'ready' &&
      overviewFigures(server, { ...options.traffic, live: options.live }, options.nowMs),
  ]);
  return serverFrame({ visitor, server, tab: 'overview', toast: options.toast }, header, [
    server.failure &&
      banner({
        tone: 'bad',
        title: 'This server could not be provisioned',
        text: 'We have notified an operator. You are not charged for it. You can destroy it after the operator has checked it.',
      }),
    refreshing({ id: 'server-traffic', url: path, everySeconds: 15 }, [liveChart(options)]),
    addressesSection(server),
    refreshing(
      { id: 'server-actions', url: path, everySeconds: 10 },
      section(
        { title: 'Activity' },
        serverActionsTable(options, { emptyText: 'Starts, stops and reboots appear here.' }),
      ),
    ),
    section({ title: 'Details' }, facts(options)),
  ]);
}

/** The last ten minutes in buckets of ten seconds: the first rate of a new server is here within 30 seconds. */
function liveChart({ server, live }: OverviewOptions): Content {
  if (live === undefined || server.provisioningState !== 'ready') return '';
  const path = `/client/servers/${server.id}/traffic`;
  return section(
    {
      title: 'Traffic now',
      id: 'traffic-now',
      actions: [
        link(`${path}?range=1h`, 'Last hour', { kind: 'button' }),
        link(path, 'All traffic', { kind: 'button' }),
      ],
    },
    chart({
      id: 'live-traffic',
      title: 'Last ten minutes',
      unit: 'bit/s',
      size: 'small',
      data: liveChartData(live),
      dataUrl: `${path}/live-chart.json`,
      refreshSeconds: 5,
      source: liveSource(live),
      emptyText:
        statusOf(server) === 'running'
          ? 'No traffic in the last ten minutes. The first packets appear here within 30 seconds.'
          : 'No traffic in the last ten minutes: the server is not running.',
    }),
  );
}

function addressesSection(server: Server): Content {
  if (server.provisioningState !== 'ready') return '';
  const reached =
    server.addresses.find((each) => each.isPrimary)?.address ??
    server.addresses[0]?.address ??
    server.privateNetworks[0]?.ip;
  const addresses = server.addresses.map((each) => ({
    term: each.family === 4 ? 'IPv4' : 'IPv6',
    value: code(each.address, true),
  }));
  const networks = server.privateNetworks.map((each) => ({
    term: link(`/client/networks/${each.networkId}`, each.name),
    value: code(each.ip, true),
  }));
  return section({ title: 'Addresses', id: 'addresses' }, [
    reached !== undefined &&
      codeBlock({
        code: `ssh root@${reached}`,
        label: server.hasPublicIp ? 'Sign in' : 'Sign in, from its private network',
      }),
    addresses.length + networks.length > 0
      ? definitionList([...addresses, ...networks])
      : html`<p class="hint">No address yet.</p>`,
  ]);
}

function attackBanner({ server, attack }: OverviewOptions): Content {
  if (attack === undefined) return '';
  const { tone, text } = openAttackWords(attack);
  return banner({
    tone,
    title: `${upperFirst(text)}.`,
    text: 'Class, strength and duration are on the Protect page.',
    actions: link(`/client/servers/${server.id}/protect`, 'Show', { kind: 'button' }),
  });
}

function rescueBanner({ id, isRescued }: Server): Content {
  if (!isRescued) return '';
  return banner({
    tone: 'warn',
    title: 'The server is in rescue.',
    text: 'It starts from a rescue system until you let it start from its own disk.',
    actions: link(`/client/servers/${id}/settings#rescue`, 'Show', { kind: 'button' }),
  });
}

function currentAction({ currentAction: action }: Server): Content {
  if (action === null) return '';
  return progress({
    label: actionWords[action.command].going,
    value: action.progress,
    max: 100,
    detail: `${action.progress} %`,
  });
}

/** What the server sent from addresses that are not its own. */
function spoofedTraffic(guard: Guard | null, nowMs: number): { term: string; value: Content }[] {
  if (guard === null || guard.support === 'none') return [];
  const value = (): Content => {
    if (!guard.isOn) return badge('warn', 'Not dropped: an operator has switched the guard off');
    if (guard.support === 'uncounted') return 'Dropped by the hypervisor, which does not count it';
    const { packets, lastAt } = guard.spoofed;
    if (lastAt === null) return '0';
    const count = packets === 1 ? 'packet' : 'packets';
    return [
      badge('warn', `${formatCount(packets)} ${count} dropped in 30 days`),
      html` <span class="hint">the last ${moment(lastAt.getTime(), nowMs)}</span>`,
    ];
  };
  return [{ term: 'Spoofed traffic', value: value() }];
}

function facts({ server, findings, guard, nowMs }: OverviewOptions): Html {
  return definitionList([
    { term: 'Host name', value: code(server.hostname, true) },
    ...(findings === undefined
      ? []
      : [
          {
            term: 'Potential vulnerabilities',
            value: link(
              `/client/servers/${server.id}/protect/findings`,
              badge(findingCountWords(findings).tone, findingCountWords(findings).text),
              { kind: 'quiet' },
            ),
          },
        ]),
    {
      term: 'Plan',
      value: `${server.planName}: ${server.vcpus} vCPU, ${server.memoryMb / 1024} GiB memory, ${server.diskGb} GB disk`,
    },
    { term: 'Image', value: server.imageName },
    ...bootFacts(server),
    { term: 'Location', value: `${server.locationName}, ${server.country}` },
    {
      term: 'Price',
      value: `${formatMoney(server.hourlyQuanta)} an hour, at most ${formatMoney(server.monthlyCapQuanta)} a month`,
    },
    ...spoofedTraffic(guard, nowMs),
    { term: 'Created', value: moment(server.createdAt.getTime(), nowMs) },
    { term: 'ID in the API', value: code(String(server.id), true) },
  ]);
}

function stateOf(server: Server, nowMs: number): { tone: Tone; text: Content } {
  const status = statusOf(server);
  const since = html` since ${moment(server.statusChangedAt.getTime(), nowMs)}`;
  const text: Record<typeof status, Content> = {
    queued: 'Ordered. Provisioning starts in a moment.',
    provisioning: 'Being provisioned.',
    failed: 'Provisioning failed.',
    deleting: 'Being destroyed.',
    unknown: ['Power state unknown', since, '.'],
    starting: 'Starting.',
    running: ['Running', since, '.'],
    stopping: 'Stopping.',
    stopped: ['Stopped', since, '. It is still charged by the hour.'],
    rebooting: 'Rebooting.',
  };
  return { tone: statusTone(server), text: text[status] };
}

/** Buttons for what can be done now; what a guest could lose data by asks first. */
function consoleButton({ server, visitor: { csrfToken }, hasConsole }: OverviewOptions): Content {
  if (!hasConsole || server.provisioningState !== 'ready' || server.powerState === 'stopped') return '';
  return actionButton({ action: `/client/servers/${server.id}/console`, csrfToken, label: 'Console' });
}

function powerButtons({ server, visitor }: OverviewOptions): Content {
  if (server.provisioningState !== 'ready') return '';
  const action = `/client/servers/${server.id}/actions`;
  const { csrfToken } = visitor;
  const button = (command: string, label: string) =>
    actionButton({ action, csrfToken, label, fields: { action: command } });
  if (server.powerState === 'stopped') return button('start', 'Start');
  const asked = (command: string, label: string, warning: string) =>
    askButton(
      {
        ...{ id: `ask-${command}`, label, title: `${label}?`, openKind: 'button' as const },
        ...{ action, csrfToken, fields: { action: command } },
      },
      warning,
    );
  const harder = [
    asked('reset', 'Reset', 'The operating system is not shut down. Data not yet written to disk is lost.'),
    asked(
      'stop',
      'Power off',
      'The power is cut without a shutdown. Data not yet written to disk is lost. Use Shut down to stop the operating system first.',
    ),
  ];
  if (server.currentAction !== null)
    return supersededBy.stop?.includes(server.currentAction.command) ? harder : '';
  const isKnown = server.powerState !== 'unknown';
  return [
    isKnown
      ? asked('reboot', 'Reboot', 'The operating system restarts. The server does not answer meanwhile.')
      : button('start', 'Start'),
    isKnown &&
      asked(
        'shutdown',
        'Shut down',
        'The operating system is asked to shut down. The server does not answer until you start it again.',
      ),
    harder,
  ];
}
