/** Where an explorer of traffic is: what differs between the customers' and the operators'. */
import type { FastifyRequest } from 'fastify';
import type { Actor } from '#operations/accounts/index.ts';
import type { Exploration, RankedDimension } from '#operations/protect/index.ts';
import type { Dimension, ExplorerBox, Filter, Line, RowDetails } from '#service-kit/explorer/index.ts';
import type { Content, Html } from '#service-kit/pages/index.ts';
import type { EventHref } from './flags.ts';

/** Who looks at a page of the explorer. */
export interface Explorer {
  actor: Actor;
  csrfToken: string;
  /** False for those who only read: they open views and save none. */
  canSave: boolean;
  /** Whether a view can be saved for all operators as well. */
  canShare: boolean;
}

export interface ExplorerPlace {
  /** Path of the page. */
  path: string;
  /** Path below which are its chart's data and its completion, with a final slash. */
  files: string;
  /** What can be asked. */
  box: ExplorerBox;
  defaultRange: '1h' | '6h' | '24h';
  /** Filters of every view, which no chip shows, such as the server of its tab. */
  fixed?: readonly Filter[];
  /** It opens with in and out, and with these tables; by default with what the filters leave open. */
  tables?: readonly RankedDimension[];
  /** Filters that show how one writes them. */
  example: string;
  /** Columns of the picture of flows: the last is `application`. */
  flowColumns: readonly ('customer' | 'server' | 'application')[];
  whoOf(request: FastifyRequest): Explorer;
  /** The page of a server or a customer; null where there is none. */
  hrefOf(of: Pick<RowDetails, 'serverId' | 'customerId'>, range: string | undefined): string | null;
  /** The page of what a flag of the chart tells of. */
  eventHref: EventHref;
  /** Read once for a page: the way to where the other ends of a row's connections are known. */
  readPeerLink?: (request: FastifyRequest) => Promise<PeerLink>;
}

/** A page of its own, with saved views. */
export interface ExplorerSurface extends ExplorerPlace {
  /** What one does who has no server yet. */
  deploy?: { label: string; href: string };
  frame(request: FastifyRequest, title: string, toast: string | null, content: Content): Html;
}

/** Nothing where a row is no server, address or customer. */
export type PeerLink = (row: Line, dimension: Dimension, explored: Exploration) => Content;
