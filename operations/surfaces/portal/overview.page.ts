import { type PowerCommand, type Server, type ServerAction, statusOf } from '#operations/servers/index.ts';
import {
  actionButton,
  badge,
  type Content,
  code,
  confirm,
  definitionList,
  formatMoney,
  type Html,
  html,
  moment,
  notice,
  pageHeader,
  refreshing,
  section,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';
import type { Visitor } from './guard.ts';
import { serverFrame, statusTone } from './server-frame.ts';

export interface OverviewOptions {
  visitor: Visitor;
  server: Server;
  actions: readonly ServerAction[];
  nowMs: number;
  toast?: { tone: Tone; text: Content };
  confirmError?: string;
}

/** `/client/servers/{id}`: what it is, what it does, and how it is switched. */
export function overviewPage(options: OverviewOptions): Html {
  const { server, visitor } = options;
  const path = `/client/servers/${server.id}`;
  // The state alone is fetched again: a form that somebody is filling in must not be replaced under their hands.
  const header = refreshing(
    { id: 'server-state', url: path, everySeconds: 5 },
    pageHeader({ title: server.name, state: stateOf(server), actions: powerButtons(options) }),
  );
  return serverFrame({ visitor, server, tab: 'overview', toast: options.toast }, header, [
    server.failure &&
      notice({
        tone: 'bad',
        title: 'This server could not be provisioned',
        text: 'An operator has been told. Nothing is charged for it until it runs; it can be destroyed once they have looked at it.',
      }),
    section({ title: 'Facts' }, facts(options)),
    section({ title: 'What was done' }, actionsTable(options)),
    destroySection(options),
  ]);
}

function facts({ server, nowMs }: OverviewOptions): Html {
  const addresses = server.addresses.map((each) => html`<div>${code(each.address, true)}</div>`);
  return definitionList([
    { term: 'Id', value: code(String(server.id)) },
    { term: 'Host name', value: code(server.hostname) },
    { term: 'Addresses', value: addresses.length > 0 ? addresses : 'none yet' },
    {
      term: 'Plan',
      value: `${server.planName}: ${server.vcpus} vCPU, ${server.memoryMb / 1024} GiB memory, ${server.diskGb} GB disk`,
    },
    { term: 'Image', value: server.imageName },
    { term: 'Location', value: `${server.locationName}, ${server.country}` },
    {
      term: 'Price',
      value: `${formatMoney(server.hourlyQuanta)} an hour, at most ${formatMoney(server.monthlyCapQuanta)} a month`,
    },
    { term: 'Created', value: moment(server.createdAt.getTime(), nowMs) },
  ]);
}

function stateOf(server: Server): { tone: Tone; text: string } {
  const status = statusOf(server);
  const text: Partial<Record<typeof status, string>> = {
    queued: 'Ordered. It will be provisioned in a moment.',
    provisioning: `Being provisioned${server.currentAction ? `, ${server.currentAction.progress} %` : ''}.`,
    failed: 'Provisioning failed.',
    deleting: 'Being destroyed.',
    unknown: 'Its power state is unknown.',
    running: 'Running.',
    stopped: 'Stopped. It is still charged by the hour.',
  };
  return { tone: statusTone(server), text: text[status] ?? `${status[0]!.toUpperCase()}${status.slice(1)}.` };
}

function powerButtons({ server, visitor }: OverviewOptions): Content {
  if (server.provisioningState !== 'ready' || server.currentAction !== null) return '';
  const labels: Partial<Record<PowerCommand, string>> =
    server.powerState === 'stopped'
      ? { start: 'Start' }
      : server.powerState === 'running'
        ? { reboot: 'Reboot', shutdown: 'Shut down', stop: 'Power off' }
        : {};
  return Object.entries(labels).map(([action, label]) =>
    actionButton({
      action: `/client/servers/${server.id}/actions`,
      csrfToken: visitor.csrfToken,
      label,
      fields: { action },
    }),
  );
}

const actionTones: Record<ServerAction['status'], Tone> = {
  queued: 'info',
  running: 'info',
  success: 'good',
  error: 'bad',
};

function actionsTable({ actions, nowMs }: OverviewOptions): Html {
  return table({
    caption: 'What was done',
    columns: [
      { key: 'command', header: 'Action', cell: (action) => action.command },
      { key: 'status', header: 'Status', cell: (action) => badge(actionTones[action.status], action.status) },
      {
        key: 'by',
        header: 'Asked by',
        cell: (action) => (action.requestedByKey ? 'an API key' : 'a person'),
      },
      { key: 'asked', header: 'Asked', cell: (action) => moment(Date.parse(action.createdAt), nowMs) },
      {
        key: 'finished',
        header: 'Finished',
        cell: (action) => (action.finishedAt ? moment(Date.parse(action.finishedAt), nowMs) : 'not yet'),
      },
    ],
    rows: actions,
    empty: { title: 'Nothing yet', text: 'Starts, stops and reboots will be listed here.' },
  });
}

function destroySection({ server, visitor, confirmError }: OverviewOptions): Content {
  const status = statusOf(server);
  if (status === 'deleting' || status === 'failed') return '';
  return section(
    { title: 'Destroy this server', id: 'destroy' },
    confirm({
      action: `/client/servers/${server.id}/destroy`,
      csrfToken: visitor.csrfToken,
      name: server.name,
      consequence:
        'Its disk and its addresses are gone for good, at once. Charging ends with the current hour.',
      submit: 'Destroy server',
      ...(confirmError === undefined ? {} : { error: confirmError }),
    }),
  );
}
