/** `/operations`: what operators may change about the connection to operations, and the request for its page. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { inventoryContract } from '#contracts/admin-api/schemas.ts';
import type { Feed, HeldBack } from '#monitor/feeds/index.ts';
import type { ClusterCount, ImportState } from '#monitor/inventory/index.ts';
import {
  type ConnectionView,
  type NoticeSecretStatus,
  OperationsError,
} from '#monitor/operations-client/index.ts';
import { requireOperator } from '#monitor/operators/index.ts';
import type { ClusterMapping, Site } from '#monitor/sites/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import {
  banner,
  type Content,
  chosenOf,
  code,
  formatAge,
  formatCount,
  type Html,
  isConfirmed,
  isoTime,
  moment,
  pageHeader,
  section,
  type Tone,
  toast,
} from '#service-kit/pages/index.ts';
import { ageColumn, dataTable, figureColumn, textColumn } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, sendConsolePage } from '../frame.ts';
import { type Viewer, viewerOf } from '../guard.ts';
import { inventoryBanner } from '../parts/inventory-banner.ts';
import {
  clusterSection,
  connectionPanel,
  feedTable,
  noticePanel,
  type ShownFeed,
  secretName,
  type TypedConnection,
} from './operations-parts.ts';

interface Shown extends ShownAnswer {
  toast?: Html;
}

const notSynced = {
  not_enabled: 'Nothing was imported: no connection is enabled.',
  running: 'Nothing was imported: another import is running. Its result appears under Feeds.',
} as const;

const done: Readonly<Record<string, string>> = {
  saved: 'Connection saved without a test.',
  tested_and_saved: 'Operations answered, and the connection is saved.',
  tested: 'Operations answered; the permissions below are current.',
  mapped: 'Clusters mapped.',
  imported: 'Inventory imported.',
};

export function registerOperations(app: App, deps: ConsoleDeps): void {
  const Query = Type.Object({ done: Type.Optional(Type.String()) });
  app.get('/operations', { schema: { querystring: Query } }, (request, reply) => {
    const text = chosenOf(done, request.query.done);
    return showOperations(deps, reply, text ? { toast: toast('good', text) } : {});
  });

  const Connection = Type.Object({
    base_url: Type.String({ maxLength: 2_000 }),
    token: Type.String({ maxLength: 400 }),
    is_enabled: Type.Optional(Type.String()),
    is_sync_automatic: Type.Optional(Type.String()),
  });
  for (const [path, isTested] of [
    ['/operations/connection', true],
    ['/operations/connection/untested', false],
  ] as const) {
    app.post(path, { schema: { body: Connection } }, (request, reply) => {
      const { base_url: baseUrl, token, is_enabled, is_sync_automatic } = request.body;
      const typed = {
        baseUrl,
        isEnabled: is_enabled !== undefined,
        isSyncAutomatic: is_sync_automatic !== undefined,
      };
      const save = async () => {
        const { actor } = viewerOf(request);
        const input = { ...typed, token: token.trim() || null };
        await (isTested ? deps.connection.testAndSave(actor, input) : deps.connection.save(actor, input));
      };
      return attempt(deps, reply, isTested ? 'tested_and_saved' : 'saved', save, typed);
    });
  }

  app.post('/operations/test', (_request, reply) =>
    attempt(deps, reply, 'tested', () => deps.connection.check()),
  );

  app.post('/operations/import', (request, reply) =>
    attempt(deps, reply, 'imported', async () => {
      const result = await deps.inventory.syncNow(viewerOf(request).actor);
      if (result.outcome === 'failed') throw new ShownFault(result.error);
      if (result.outcome !== 'imported') throw new ShownFault(notSynced[result.outcome]);
    }),
  );

  app.post(
    '/operations/clusters',
    {
      schema: {
        body: Type.Object({
          cluster_id: Type.String({ pattern: '^[1-9][0-9]{0,14}$' }),
          site_id: Type.String({ pattern: '^[0-9]{0,15}$' }),
        }),
      },
    },
    (request, reply) =>
      attempt(deps, reply, 'mapped', async () => {
        const { cluster_id, site_id } = request.body;
        const siteId = site_id === '' ? null : Number(site_id);
        if (siteId !== null && !(await deps.sites.find(siteId)))
          throw new ShownFault('This site does not exist.');
        await deps.sites.mapCluster(viewerOf(request).actor, Number(cluster_id), siteId);
      }),
  );

  app.post('/operations/notice-secret', async (request, reply) => {
    if ((await deps.connection.noticeStatus()) && !isConfirmed(request.body, secretName)) {
      const message = `Nothing was changed: type “${secretName}” to confirm.`;
      throw new HttpError(422, { code: 'not_confirmed', message });
    }
    try {
      const secret = await deps.connection.createNoticeSecret(viewerOf(request).actor);
      // Rendered here instead of a redirect: only this answer contains the secret.
      return await showOperations(deps, reply, { secret });
    } catch (error) {
      faultText(error);
    }
  });
}

/** An error whose message belongs on the page. */
class ShownFault extends Error {}

/** Runs a change; then redirects with a message, or shows the page with the error. */
async function attempt(
  deps: ConsoleDeps,
  reply: FastifyReply,
  outcome: string,
  change: () => Promise<void>,
  typed?: Omit<TypedConnection, 'fault'>,
): Promise<FastifyReply> {
  const { request } = reply;
  try {
    requireOperator(viewerOf(request).actor);
    await change();
  } catch (error) {
    const isShown = error instanceof OperationsError || error instanceof ShownFault;
    const fault = isShown ? error.message : faultText(error, 'connection.invalid');
    return showOperations(deps, reply, typed ? { connection: { ...typed, fault } } : { fault });
  }
  return reply.redirect(`/operations?done=${outcome}`, 303);
}

async function showOperations(deps: ConsoleDeps, reply: FastifyReply, shown: Shown): Promise<FastifyReply> {
  const { request } = reply;
  const nowMs = Date.now();
  const [view, inventory, feeds, heldBack, notices, clusters, mappings, sites] = await Promise.all([
    deps.connection.view(),
    deps.inventory.state(),
    Promise.all(deps.feeds.all.map(async ({ feed, state }) => ({ feed, state: await state() }))),
    deps.feeds.listHeldBack(),
    deps.connection.noticeStatus(),
    deps.inventory.listClusters(),
    deps.sites.listClusters(),
    deps.sites.list(),
  ]);
  const monitorUrl = deps.monitorUrl() ?? `${request.protocol}://${request.host}`;
  const known = { view, inventory, feeds, heldBack, notices, clusters, mappings, sites, monitorUrl };
  const content = operationsPage(request, { ...known, shown, viewer: viewerOf(request), nowMs });
  return sendConsolePage(
    reply,
    {
      title: 'Operations',
      status: shown.fault || shown.connection ? 422 : 200,
      ...(shown.toast ? { toast: shown.toast } : {}),
    },
    content,
  );
}

/** What the request before this page led to. */
interface ShownAnswer {
  fault?: string;
  /** Input of a refused form. */
  connection?: TypedConnection;
  /** A new secret, shown only in this answer. */
  secret?: string;
}

interface OperationsPage {
  view: ConnectionView | null;
  inventory: ImportState;
  feeds: readonly ShownFeed[];
  heldBack: readonly HeldBack[];
  notices: NoticeSecretStatus | null;
  /** Clusters in the inventory, and the sites that they belong to. */
  clusters: readonly ClusterCount[];
  mappings: readonly ClusterMapping[];
  sites: readonly Site[];
  /** Where operations reaches this monitor. */
  monitorUrl: string;
  shown: ShownAnswer;
  viewer: Viewer;
  nowMs: number;
}

/** The page of the connection to operations: its clusters, its feeds, and the secret of destroy notices. */
function operationsPage(request: FastifyRequest, page: OperationsPage): Content {
  const { view, inventory, feeds, shown, viewer, nowMs } = page;
  const contracts = [inventoryContract, ...feeds.map(({ feed }) => feed.contract)];
  return [
    pageHeader({ title: 'Operations', state: stateOf(view, inventory, feeds, nowMs) }),
    shown.fault && banner({ tone: 'bad', title: shown.fault }),
    view && inventoryBanner(view, inventory, nowMs),
    section(
      {
        title: 'Connection',
        description:
          'Uses the admin API of operations with one token: imports the inventory and delivers observed minutes.',
      },
      connectionPanel(view, viewer, shown.connection, contracts, nowMs),
    ),
    feedSection(request, page),
    section(
      {
        id: 'clusters',
        title: 'Clusters',
        description: 'Only servers of mapped clusters are delivered, from the site of the mapping.',
      },
      clusterSection(request, page.clusters, page.mappings, page.sites, viewer),
    ),
    section(
      {
        id: 'notices',
        title: 'Destroy notices',
        description:
          'Operations sends a signed notice when servers are destroyed, so that their addresses do not count for the previous owner.',
      },
      noticePanel(page.notices, shown.secret, viewer, page.monitorUrl, nowMs),
    ),
  ];
}

function feedSection(request: FastifyRequest, { inventory, feeds, heldBack, nowMs }: OperationsPage) {
  const declared = feeds.map(({ feed }) => feed);
  return section({ title: 'Feeds', description: 'A run without data to deliver is no delivery.' }, [
    feedTable(request, inventory, feeds, nowMs),
    heldBackTable(request, heldBack, declared, nowMs),
  ]);
}

function stateOf(
  view: ConnectionView | null,
  inventory: ImportState,
  feeds: readonly ShownFeed[],
  nowMs: number,
): { tone: Tone; text: string } {
  if (!view) return { tone: 'neutral', text: 'Not connected yet.' };
  if (!view.isEnabled) return { tone: 'warn', text: 'Disabled: nothing is imported and nothing delivered.' };
  const faults = feeds.map(({ state }) => state?.lastError ?? null);
  const fault = view.checkError ?? inventory.lastError ?? faults.find((text) => text !== null);
  if (fault) return { tone: 'bad', text: fault };
  const [first] = feeds;
  if (!first) return { tone: 'good', text: 'Connected.' };
  const { noun, seconds } = first.feed.observation;
  const newest = first.state?.latestAcknowledged ?? null;
  if (newest === null) return { tone: 'neutral', text: `Connected. No ${noun} has been delivered yet.` };
  return {
    tone: 'good',
    text: `Connected. The newest delivered ${noun} ended ${formatAge((newest + seconds) * 1000, nowMs)}.`,
  };
}

// Items that feeds can not deliver, on the page `/operations`.

const outcomes: Readonly<Record<string, string>> = {
  source_conflict:
    'Another source delivers this address. This monitor takes over 15 minutes after that source stops, or at once with “Hand over” on the project’s page in operations.',
  unmatched: 'Operations has no such allocation. The targets are read again.',
  refused: 'Operations refused the request. The refused items are set aside, and the rest is sent.',
};
const reasons: Readonly<Record<string, string>> = {
  rate_implausible: 'a rate above 400 Gbit/s',
  bytes_implausible: 'an application above 400 Gbit/s',
  refused: 'refused by operations',
};

/** Empty when everything is delivered. */
function heldBackTable(
  request: FastifyRequest,
  rows: readonly HeldBack[],
  feeds: readonly Feed[],
  nowMs: number,
): Content {
  if (rows.length === 0) return false;
  const titles = new Map(feeds.map(({ name, title }) => [name, title]));
  return dataTable<HeldBack>(request, {
    id: 'held-back',
    caption: 'Not delivered in full',
    card: { line: ['feed', 'outcome', 'newest'] },
    rows,
    empty: { title: 'None', text: 'All items are delivered.' },
    columns: [
      textColumn('item', 'Address or record', (row) => row.item, { kind: 'code', show: code }),
      textColumn('feed', 'Feed', (row) => row.feed, { show: (feed) => titles.get(feed) ?? feed }),
      ageColumn('visit', 'Last visit', (row) => row.visitedAtMs, nowMs, { field: 'last_visit' }),
      textColumn('outcome', 'Outcome', (row) => row.outcome, {
        kind: 'prose',
        show: (outcome) => outcomes[outcome] ?? 'Delivered, except for items that are set aside.',
      }),
      figureColumn(
        'aside',
        'Set aside',
        (row) => row.setAside,
        (setAside) => (setAside === 0 ? '' : formatCount(setAside)),
        { field: 'set_aside' },
      ),
      {
        key: 'newest',
        header: 'Newest of them',
        cell: (row) =>
          row.newestSetAside === null
            ? ''
            : [moment(row.newestSetAside * 1000, nowMs), ': ', reasons[row.reason ?? ''] ?? row.reason ?? ''],
        field: 'newest_set_aside',
        value: (row) => isoTime(row.newestSetAside === null ? null : row.newestSetAside * 1000),
      },
    ],
  });
}
