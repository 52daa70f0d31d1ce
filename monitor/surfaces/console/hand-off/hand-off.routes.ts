/** `/sites/{id}/protection/hand-off`: the request for rules and actions, the limit, and what operators may do to an action. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { Id } from '#contracts/scalars.ts';
import type { PeerState } from '#monitor/hand-off/index.ts';
import {
  type Action,
  addressesMaxMost,
  type ListedRule,
  ruleKinds,
  type SiteHandOff,
} from '#monitor/hand-off/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import {
  age,
  badge,
  banner,
  type Content,
  field,
  form,
  formatCount,
  formatDuration,
  hiddenField,
  html,
  isoTime,
  link,
  pageHeader,
  refreshing,
  section,
  type Tone,
} from '#service-kit/pages/index.ts';
import {
  countColumn,
  dataTable,
  figureColumn,
  linkColumn,
  rowsLimit,
  textColumn,
} from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { DoneQuery, faultText, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { type Viewer, viewerOf } from '../guard.ts';
import { actionTable } from './action-table.ts';
import { kindNames, modeBadge, type Refused, Revision, refusalOf, targetText } from './rule-text.ts';

const actionsShown = 100;
const ActionParams = Type.Object({ ...SiteParams.properties, actionId: Id });

const done: Readonly<Record<string, string>> = {
  saved: 'Saved.',
  removed: 'Rule removed. Its actions end now.',
  approved: 'The action starts now.',
  drops: 'The filter drops from now on.',
  ended: 'The action ends now.',
  given_up: 'The action is not tried any more.',
};

export function registerHandOff(app: App, deps: ConsoleDeps): void {
  const path = '/sites/:siteId/protection/hand-off';
  app.get(path, { schema: { params: SiteParams, querystring: DoneQuery } }, async (request, reply) =>
    showHandOff(deps, reply, await siteOf(deps.sites, request.params.siteId)),
  );

  const Limit = Type.Object({ ...Revision, addresses_max: Type.String({ maxLength: 20 }) });
  app.post(`${path}/limit`, { schema: { params: SiteParams, body: Limit } }, async (request, reply) => {
    const site = await siteOf(deps.sites, request.params.siteId);
    const { addresses_max: text, revision } = request.body;
    try {
      await deps.handOff.setLimit(viewerOf(request).actor, site.id, text, Number(revision));
    } catch (error) {
      return showHandOff(deps, reply, site, refusalOf(error, request.body));
    }
    return reply.redirect(`/sites/${site.id}/protection/hand-off?done=saved#limit`, 303);
  });

  const onAction = (
    name: string,
    operation: 'approveAction' | 'dropAction' | 'endAction' | 'giveUpAction',
    answer: string,
  ) =>
    app.post(
      `${path}/actions/:actionId/${name}`,
      { schema: { params: ActionParams } },
      async (request, reply) => {
        const { siteId, actionId } = request.params;
        await siteOf(deps.sites, siteId);
        const { actor } = viewerOf(request);
        const isDone = await deps.handOff[operation](actor, siteId, actionId).catch((error: unknown) => {
          faultText(error);
          return false;
        });
        if (!isDone) {
          const message = 'This action has changed in the meantime. Load the page again to see its state.';
          throw new HttpError(409, { code: 'action_changed', message });
        }
        return reply.redirect(`/sites/${siteId}/protection/hand-off?done=${answer}#actions`, 303);
      },
    );
  onAction('approve', 'approveAction', 'approved');
  onAction('drop', 'dropAction', 'drops');
  onAction('end', 'endAction', 'ended');
  onAction('give-up', 'giveUpAction', 'given_up');
}

async function showHandOff(deps: ConsoleDeps, reply: FastifyReply, site: Site, limit?: Refused) {
  const { request } = reply;
  const [found, actions] = await Promise.all([
    deps.handOff.describeSite(site.id),
    deps.handOff.listActions(site.id, null, rowsLimit(request, actionsShown)),
  ]);
  return sendConsolePage(
    reply,
    { title: 'Hand-off', site: { site, page: 'protection' }, status: limit?.status ?? 200, done },
    handOffPage(request, {
      ...{ site, found, actions, limit },
      viewer: viewerOf(request),
      nowMs: deps.clock.nowMs(),
    }),
  );
}

interface HandOffPage {
  site: Site;
  found: SiteHandOff;
  actions: readonly Action[];
  viewer: Viewer;
  nowMs: number;
  /** The refused form of the limit. */
  limit?: Refused | undefined;
}

/** The page of a site's hand-off: its rules, its limit, and what was done. */
const prefixesShown = 3;

function handOffPage(request: FastifyRequest, page: HandOffPage): Content {
  const { site, actions, viewer, nowMs } = page;
  const path = `/sites/${site.id}/protection/hand-off`;
  return [
    pageHeader({ title: 'Hand-off', state: stateOf(page) }),
    warnings(actions),
    section(
      {
        id: 'rules',
        title: 'Rules',
        description:
          'What the monitor does by itself when an address is attacked. A new rule is off; it shows in a dry run what it would do before it can be switched on.',
        actions: viewer.canChange && [
          ...ruleKinds.map((kind) =>
            link(`${path}/rules/new?kind=${kind}`, `Add: ${kindNames[kind]}`, { kind: 'button' }),
          ),
        ],
      },
      ruleTable(request, page, path),
    ),
    limitSection(page, path),
    peerSection(request, page.found.sessions, path, nowMs),
    section(
      {
        id: 'actions',
        title: 'Actions',
        description: 'An action ends when the attack has recovered and the hold time has passed.',
      },
      refreshing(
        { id: 'action-list', url: path, everySeconds: 10 },
        actionTable(request, { siteId: site.id, actions, viewer, nowMs }),
      ),
    ),
  ];
}

const plural = (n: number, one: string, many: string) => `${formatCount(n)} ${n === 1 ? one : many}`;

function stateOf({ found, actions }: HandOffPage): { tone: Tone; text: string } {
  const on = found.rules.filter(({ mode }) => mode === 'on').length;
  const dry = found.rules.filter(({ mode }) => mode === 'dry_run').length;
  const addresses = new Set(
    actions
      .filter(({ isDryRun, endedAtMs }) => !isDryRun && endedAtMs === null)
      .map(({ address }) => address),
  ).size;
  const rehearsed = dry > 0 ? ` ${plural(dry, 'rule is a dry run', 'rules are dry runs')}.` : '';
  if (on === 0 && addresses === 0)
    return {
      tone: 'neutral',
      text: `No active rules: the monitor takes no action against attacks.${rehearsed}`,
    };
  return {
    tone: addresses > 0 ? 'warn' : 'good',
    text: `${on === 0 ? 'No active rules' : plural(on, 'active rule', 'active rules')}, ${plural(addresses, 'address has', 'addresses have')} actions.${rehearsed}`,
  };
}

function warnings(actions: readonly Action[]): Content {
  const stuck = actions.filter(({ state, attempts }) => state === 'ending' && attempts > 0);
  const waiting = actions.filter(({ state, lastError }) => state === 'waiting' && lastError !== null);
  return [
    stuck.length > 0 &&
      banner({
        tone: 'bad',
        title: `The end of ${plural(stuck.length, 'action', 'actions')} fails`,
        text: `${stuck[0]!.address}: ${stuck[0]!.lastError}. It is tried again. Undo it by hand where it is urgent, then stop retrying.`,
      }),
    waiting.length > 0 &&
      banner({
        tone: 'warn',
        title: `${plural(waiting.length, 'action waits', 'actions wait')}`,
        text: `${waiting[0]!.address}: ${waiting[0]!.lastError}.`,
      }),
  ];
}

function ruleTable(request: FastifyRequest, { found }: HandOffPage, path: string): Content {
  return dataTable<ListedRule>(request, {
    id: 'rules',
    caption: 'Rules',
    card: { line: ['mode', 'does'] },
    rows: found.rules,
    columns: [
      linkColumn('name', 'Rule', (row) => [row.name, `${path}/rules/${row.id}`]),
      { key: 'mode', header: 'State', cell: (row) => modeBadge(row.mode), value: (row) => row.mode },
      {
        key: 'does',
        header: 'Does',
        kind: 'prose',
        cell: (row) => html`${kindNames[row.kind]}: ${targetText(row)}`,
        value: targetText,
      },
      {
        key: 'prefixes',
        header: 'Allowed addresses',
        kind: 'code',
        cell: (row) => {
          const more = row.prefixes.length - prefixesShown;
          return `${row.prefixes.slice(0, prefixesShown).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
        },
        value: (row) => row.prefixes.join(' '),
      },
      figureColumn('hold', 'Hold time', (row) => row.holdSeconds, formatDuration, { field: 'hold_seconds' }),
      countColumn('open', 'Actions now', (row) => row.openActions, { field: 'open_actions' }),
    ],
    empty: {
      title: 'No rules yet',
      text: 'A rule can start a program with the arguments of FastNetMon, call a webhook, announce a blackhole or filters by BGP, or drop attacks at hypervisors.',
    },
  });
}

function limitSection({ found, viewer, limit }: HandOffPage, path: string): Content {
  const { addressesMax, revision } = found.limit;
  const options = {
    id: 'limit',
    title: 'Limit',
    description:
      'How many addresses of this site may have actions at once. Others wait. Dry runs are counted apart.',
  };
  if (!viewer.canChange) return section(options, html`<p>${formatCount(addressesMax)} addresses</p>`);
  return section(
    options,
    form(
      {
        action: `${path}/limit`,
        csrfToken: viewer.csrfToken,
        submit: 'Save limit',
        submitKind: 'button',
        layout: 'inline',
        error: limit && Object.keys(limit.fields).length === 0 ? limit.message : undefined,
      },
      [
        hiddenField('revision', limit ? String(limit.typed.revision) : revision),
        field({
          kind: 'number',
          name: 'addresses_max',
          label: 'Addresses at once',
          required: true,
          min: 1,
          max: addressesMaxMost,
          value: limit?.typed.addresses_max ?? addressesMax,
          error: limit?.fields.addresses_max,
        }),
      ],
    ),
  );
}

// BGP peers of the settings, and how the session with each goes.

const badges: Readonly<Record<PeerState['session'], () => Content>> = {
  established: () => badge('good', 'established'),
  down: () => badge('bad', 'down'),
  unknown: () => badge('warn', 'unknown'),
  unused: () => badge('neutral', 'not needed'),
};

const texts: Readonly<Record<PeerState['session'], string>> = {
  established: '',
  down: '',
  unknown: 'No process of this monitor holds the session. Check that one runs with these settings.',
  unused: 'No rule that is on announces to it.',
};

const remarkOf = ({ problem, session }: PeerState) => problem ?? texts[session];

/** Nothing where the settings name no peers. */
function peerSection(request: FastifyRequest, sessions: readonly PeerState[], path: string, nowMs: number) {
  if (sessions.length === 0) return '';
  return section(
    {
      id: 'peers',
      title: 'BGP peers',
      description:
        'Routers of SVC_HAND_OFF_BGP_PEERS, with the routes of all sites. A session is kept while a rule needs it.',
    },
    refreshing(
      { id: 'peer-list', url: path, everySeconds: 10 },
      dataTable<PeerState>(request, {
        id: 'peers',
        caption: 'BGP peers',
        card: { line: ['session', 'since'] },
        rows: sessions,
        isComplete: true,
        columns: [
          { key: 'peer', header: 'Peer', kind: 'code', cell: (row) => row.name, value: (row) => row.name },
          textColumn('session', 'Session', (row) => row.session, { show: (session) => badges[session]() }),
          {
            key: 'since',
            header: 'Since',
            kind: 'figure',
            cell: (row) => (row.sinceMs === null ? '' : age(row.sinceMs, nowMs)),
            value: (row) => isoTime(row.sinceMs),
          },
          countColumn('routes', 'Routes announced', (row) => row.routes, { field: 'routes' }),
          { key: 'remark', header: 'Remark', kind: 'prose', cell: remarkOf, value: remarkOf },
        ],
        empty: { title: 'No peers', text: 'SVC_HAND_OFF_BGP_PEERS names none.' },
      }),
    ),
  );
}
