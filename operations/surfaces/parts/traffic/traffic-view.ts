/** What the explorer shows, as its URL says it. */
import type { FastifyRequest } from 'fastify';
import type { Actor } from '#operations/accounts/index.ts';
import {
  type Exploration,
  isOfApplications,
  namesApplications,
  type RankedDimension,
} from '#operations/protect/index.ts';
import {
  type Dimension,
  type ExplorerBox,
  type ExploreView,
  type Filter,
  type Line,
  type Question,
  type RowDetails,
  readQuestion as readAsked,
  readView as readAskedView,
  readUrl,
  sidesOf,
  type UrlValues,
} from '#service-kit/explorer/index.ts';
import { type Content, type Html, type Range, readRange } from '#service-kit/pages/index.ts';
import type { EventHref } from './flags.ts';

const hourMs = 3_600_000;

export interface TrafficView extends ExploreView {
  range: Range;
  by: RankedDimension | null;
  /** Dimensions of the tables: the one of the chart, and two further ones. */
  shown: readonly RankedDimension[];
  /** Why it is not the measure that was asked for, as a sentence. */
  measureFault: string | null;
}

/** Grouped by the first of these that is not already one value. */
const preferred: readonly RankedDimension[] = [
  ...(['server', 'customer', 'application', 'port', 'address', 'node', 'cluster', 'transport'] as const),
];
/** With more servers the page does not open with applications: they have many rows of each. */
const serversWithApplications = 500;

/** Ranges of a day and more are whole hours, so that every page and every list has the same numbers for them. */
export function readTrafficRange(values: UrlValues, nowMs: number, fallback: '1h' | '6h' | '24h'): Range {
  const range = readRange(values, nowMs, fallback);
  if (range.name === 'custom' || range.toMs - range.fromMs < 24 * hourMs) return range;
  const toMs = Math.ceil(nowMs / hourMs) * hourMs;
  return { ...range, fromMs: toMs - (range.toMs - range.fromMs), toMs };
}

/** The filters, the measure and the range that a URL asks for. */
export function readQuestion(place: ExplorerPlace, values: UrlValues, nowMs: number) {
  const question = readAsked(readUrl(values), place.box);
  const range = readTrafficRange(values, nowMs, place.defaultRange);
  return { filters: question.filters, range, ...knownMeasure(question) };
}

/** Packets where they are asked for and known: of addresses, both directions together (NET-2.4.2). */
function knownMeasure({ measure, filters, by }: Question): Pick<TrafficView, 'measure' | 'measureFault'> {
  if (measure === 'bytes') return { measure, measureFault: null };
  const sides = sidesOf(filters);
  if (by?.some(isOfApplications) || namesApplications(filters))
    return { measure: 'bytes', measureFault: unknownOf('application, port or transport') };
  if (!sides.in || !sides.out)
    return { measure: 'bytes', measureFault: unknownOf('direction: in and out are counted together') };
  return { measure, measureFault: null };
}

const unknownOf = (what: string) => `Packets are counted by address. They are not known by ${what}.`;

/** The whole view; `serverCount` servers pass its filters. What can't be read has its default. */
export function readView(
  place: ExplorerPlace,
  url: string,
  values: UrlValues,
  { serverCount, nowMs }: { serverCount: number; nowMs: number },
): TrafficView {
  const question = readQuestion(place, values, nowMs);
  const given = place.tables === undefined ? values : { by: 'none', ...values };
  const view = readAskedView(place.box, url, given, () =>
    (place.tables ?? preferred).filter(
      (one) =>
        !isOfApplications(one) || (question.measure === 'bytes' && serverCount <= serversWithApplications),
    ),
  );
  const by = view.by as RankedDimension | null;
  const shown = [...(by === null ? [] : [by]), ...view.tables] as RankedDimension[];
  return { ...view, ...question, by, shown };
}

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
