/** The page of the connection to operations: its clusters, its feeds, and the secret of destroy notices. */
import type { FastifyRequest } from 'fastify';
import { inventoryContract } from '#contracts/admin-api/schemas.ts';
import type { HeldBack } from '#monitor/feeds/index.ts';
import type { ClusterCount, ImportState } from '#monitor/inventory/index.ts';
import type { ConnectionView, NoticeSecretStatus } from '#monitor/operations-client/index.ts';
import type { ClusterMapping, Site } from '#monitor/sites/index.ts';
import { banner, type Content, formatAge, pageHeader, section, type Tone } from '#service-kit/pages/index.ts';
import type { Viewer } from '../guard.ts';
import { inventoryBanner } from '../parts/inventory-banner.ts';
import { heldBackTable } from './held-back.ts';
import {
  clusterSection,
  connectionPanel,
  feedTable,
  noticePanel,
  type ShownFeed,
  type TypedConnection,
} from './operations-parts.ts';

/** What the request before this page led to. */
export interface ShownAnswer {
  fault?: string;
  /** Input of a refused form. */
  connection?: TypedConnection;
  /** A new secret, shown only in this answer. */
  secret?: string;
}

export interface OperationsPage {
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

export function operationsPage(request: FastifyRequest, page: OperationsPage): Content {
  const { view, inventory, feeds, shown, viewer, nowMs } = page;
  const contracts = [inventoryContract, ...feeds.map(({ feed }) => feed.contract)];
  return [
    pageHeader({
      title: 'Operations',
      state: stateOf(view, inventory, feeds, nowMs),
    }),
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

function feedSection(
  request: FastifyRequest,
  { inventory, feeds, heldBack, nowMs }: OperationsPage,
): Content {
  const declared = feeds.map(({ feed }) => feed);
  return section(
    {
      title: 'Feeds',
      description: 'A run without data to deliver is no delivery.',
    },
    [feedTable(request, inventory, feeds, nowMs), heldBackTable(request, heldBack, declared, nowMs)],
  );
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
