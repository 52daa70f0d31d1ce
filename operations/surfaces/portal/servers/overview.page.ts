import type { OpenAttack, ServerFindingCount } from '#operations/protect/index.ts';
import { type Server, type ServerAction, statusOf } from '#operations/servers/index.ts';
import {
  actionButton,
  badge,
  banner,
  type Content,
  code,
  confirm,
  definitionList,
  drawer,
  field,
  form,
  formatMoney,
  type Html,
  html,
  link,
  moment,
  pageHeader,
  progress,
  refreshing,
  section,
  type Tone,
} from '#service-kit/pages/index.ts';
import {
  actionWords,
  findingCountWords,
  openAttackWords,
  serverActionsTable,
  upperFirst,
} from '../../parts/index.ts';
import type { Visitor } from '../guard.ts';
import { type OverviewTraffic, overviewFigures } from './overview-figures.ts';
import { serverFrame, statusTone } from './server-frame.ts';

export interface OverviewOptions {
  visitor: Visitor;
  server: Server;
  actions: readonly ServerAction[];
  traffic: OverviewTraffic;
  /** Open attacks on it or from it. */
  attack: OpenAttack | undefined;
  findings: ServerFindingCount | undefined;
  nowMs: number;
  toast?: { tone: Tone; text: Content };
  confirmError?: string;
  /** What a refused form about its words held, and what was wrong. */
  words?: { name: string; hostname: string; labels: string; faults: ReadonlyMap<string, string> };
}

/** `/client/servers/{id}`: what it is, what it does, and how it is switched. */
export function overviewPage(options: OverviewOptions): Html {
  const { server, visitor } = options;
  const path = `/client/servers/${server.id}`;
  // Only state and history refresh: a refresh must not replace a form while a person fills it in.
  const header = refreshing({ id: 'server-state', url: path, everySeconds: 5 }, [
    pageHeader({ title: server.name, state: stateOf(server, options.nowMs), actions: powerButtons(options) }),
    attackBanner(options),
    currentAction(server),
    server.provisioningState === 'ready' && overviewFigures(server, options.traffic, options.nowMs),
  ]);
  return serverFrame({ visitor, server, tab: 'overview', toast: options.toast }, header, [
    server.failure &&
      banner({
        tone: 'bad',
        title: 'This server could not be provisioned',
        text: 'We have notified an operator. You are not charged for it. You can destroy it after the operator has checked it.',
      }),
    section({ title: 'Details' }, facts(options)),
    refreshing(
      { id: 'server-actions', url: path, everySeconds: 10 },
      section(
        { title: 'Activity' },
        serverActionsTable(options, { emptyText: 'Starts, stops and reboots appear here.' }),
      ),
    ),
    section(
      { title: 'Name and labels', description: 'Changes names here only, not inside the server.' },
      wordsForm(options),
    ),
    destroySection(options),
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

function currentAction({ currentAction: action }: Server): Content {
  if (action === null) return '';
  return progress({
    label: actionWords[action.command].going,
    value: action.progress,
    max: 100,
    detail: `${action.progress} %`,
  });
}

function facts({ server, findings, nowMs }: OverviewOptions): Html {
  const addresses = server.addresses.map((each) => html`<div>${code(each.address, true)}</div>`);
  const cards = server.privateNetworks.map(
    (card) =>
      html`<div>${link(`/client/networks/${card.networkId}`, card.name)} ${code(card.ip, true)}</div>`,
  );
  return definitionList([
    { term: 'Host name', value: code(server.hostname, true) },
    { term: 'Addresses', value: addresses.length > 0 ? addresses : 'no public address' },
    ...(cards.length > 0 ? [{ term: 'Private networks', value: cards }] : []),
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
    { term: 'Location', value: `${server.locationName}, ${server.country}` },
    {
      term: 'Price',
      value: `${formatMoney(server.hourlyQuanta)} an hour, at most ${formatMoney(server.monthlyCapQuanta)} a month`,
    },
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
function powerButtons({ server, visitor }: OverviewOptions): Content {
  if (server.provisioningState !== 'ready' || server.currentAction !== null) return '';
  const action = `/client/servers/${server.id}/actions`;
  const { csrfToken } = visitor;
  const button = (command: string, label: string) =>
    actionButton({ action, csrfToken, label, fields: { action: command } });
  if (server.powerState === 'stopped') return button('start', 'Start');
  const hard = (command: string, label: string, warning: string) =>
    drawer({ id: `ask-${command}`, open: label, title: `${label}?` }, [
      html`<p>${warning}</p>`,
      actionButton({ action, csrfToken, label, kind: 'danger', fields: { action: command } }),
    ]);
  return [
    server.powerState === 'unknown' ? button('start', 'Start') : button('reboot', 'Reboot'),
    server.powerState !== 'unknown' && button('shutdown', 'Shut down'),
    hard('reset', 'Reset', 'The operating system is not shut down. Data not yet written to disk is lost.'),
    hard(
      'stop',
      'Power off',
      'The power is cut without a shutdown. Data not yet written to disk is lost. Use Shut down to stop the operating system first.',
    ),
  ];
}

function wordsForm({ server, visitor, words }: OverviewOptions): Html {
  const faultOf = (name: string) => words?.faults.get(name);
  const labels = Object.entries(server.labels).map(([key, value]) => `${key}=${value}`);
  return form(
    {
      action: `/client/servers/${server.id}/words`,
      csrfToken: visitor.csrfToken,
      submit: 'Save',
      submitKind: 'button',
    },
    [
      field({
        name: 'name',
        label: 'Name',
        required: true,
        maxLength: 64,
        value: words?.name ?? server.name,
        error: faultOf('name'),
      }),
      field({
        name: 'hostname',
        label: 'Host name',
        required: true,
        maxLength: 253,
        isCode: true,
        value: words?.hostname ?? server.hostname,
        error: faultOf('hostname'),
      }),
      field({
        kind: 'textarea',
        name: 'labels',
        label: 'Labels',
        hint: 'One per line, for example env=prod. The API can filter by labels.',
        isCode: true,
        rows: 3,
        value: words?.labels ?? labels.join('\n'),
        error: faultOf('labels'),
      }),
    ],
  );
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
