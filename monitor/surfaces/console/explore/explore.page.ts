/** The explorer: any traffic of a site, by any dimension. */
import type { FastifyRequest } from 'fastify';
import type { Answer } from '#monitor/explorer/index.ts';
import { type Dimension, queryBox } from '#monitor/explorer/index.ts';
import type { exploreForm } from '#service-kit/explorer/index.ts';
import {
  amountText,
  type ChartAround,
  changeText,
  explorerPage,
  type FlowEnd,
  type FlowPair,
  type FlowPicture,
  minus,
  type Row,
  restRates,
  sizeOf,
  totalsOfNext,
  unclassifiedPairs,
  wholeRates,
} from '#service-kit/explorer/index.ts';
import { type Content, formatAge, formatDuration, html, type Range } from '#service-kit/pages/index.ts';
import { type OperationsLink, placeOfFilters } from '../parts/address-link.ts';
import type { ExploreView } from './explore-view.ts';
import { type SavedViewsPart, savedLinks, savedSection } from './saved-views.routes.ts';

export interface SitePage {
  view: ExploreView;
  range: Range;
  answer: Answer;
  /** The same by nothing. */
  whole: Answer;
  /** The two further tables. */
  tables: readonly { dimension: Dimension; answer: Answer }[];
  /** Null: the chart is shown. */
  flows: Flows | null;
  around: ChartAround;
  /** What can be grouped by here. */
  offered: readonly Dimension[];
  /** Of the servers that the filters name, by their value. */
  serverNames: ReadonlyMap<string, string>;
  saved: SavedViewsPart;
  inOperations: OperationsLink;
  nowMs: number;
}

const sources = {
  addresses: 'counters of addresses',
  applications: 'usage by application',
  pairs: 'connections between exact addresses',
} as const;

export function sitePage(request: FastifyRequest, page: SitePage): Content {
  const { view, answer, whole, range, nowMs, around } = page;
  const place = placeOfFilters(view.query.filters);
  const query = view.url.split('?')[1];
  const charted = withUnclassified(answer, whole);
  const shown = [...(view.by === null ? [] : [{ dimension: view.by, answer }]), ...page.tables];
  return explorerPage(request, {
    ...{ title: 'Explorer', view, range, nowMs, around, answer: charted, state: stateOf(page) },
    totals: totalsOf(page),
    actions: place !== null && page.inOperations(place),
    above: savedLinks(view, page.saved),
    form: formOf(page.offered, view, page.serverNames),
    tables: shown.map((one) => ({ ...one, answer: withUnclassified(one.answer, whole) })),
    table: { fields: { in: 'in_bytes', out: 'out_bytes' } },
    flows: page.flows && flowsOf(page.flows),
    notes: ownScansNote(whole),
    chart: {
      dataUrl: `/sites/${view.siteId}/explore.json${query ? `?${query}` : ''}`,
      source: `${sources[answer.source]}, each minute from one capture; gaps stay empty`,
    },
    below: savedSection(view, page.saved),
  });
}

/** Figures of all traffic, however it is grouped. */
const totalsOf = ({ answer, whole }: SitePage): Answer => ({
  ...answer,
  ...{ total: whole.total, previousTotal: answer.previousTotal && whole.previousTotal },
});

function stateOf(page: SitePage) {
  const { answer, nowMs } = page;
  const { measure, total, previousTotal } = totalsOf(page);
  if (answer.newestMs === null)
    return { tone: 'neutral', text: 'No minute of this site has arrived yet.' } as const;
  const change = previousTotal && changeText(sizeOf(total, measure) ?? 0, sizeOf(previousTotal, measure));
  const span = formatDuration(answer.to - answer.from);
  const against = change === null ? '' : `, ${change} against the ${span} before`;
  const fresh = `Newest minute ${formatAge(answer.newestMs + 60_000, nowMs)}`;
  return { tone: 'info', text: `${amountText(total, measure)} in ${span}${against}. ${fresh}.` } as const;
}

/**
 * A table of usage that says what the counters of addresses hold beside it: under an attack sensors do not attribute most packets, and
 * port scans are no application. The total is that of the counters.
 */
function withUnclassified(answer: Answer, whole: Answer): Answer {
  if (answer.source !== 'applications' || whole.source !== 'addresses') return answer;
  const { measure, previousTotal } = answer;
  const amount = minus(whole.total, answer.total);
  const size = sizeOf(whole.total, measure) ?? 0;
  if ((sizeOf(amount, measure) ?? 0) <= 0) return answer;
  const scale = (sizeOf(answer.total, measure) ?? 0) / size;
  const scaled = <T extends { share: number | null }>(one: T): T => ({
    ...one,
    share: (one.share ?? 0) * scale,
  });
  const scans = whole.ownScans;
  // In which direction they went is not known, so they are no row with an in and an out.
  const ofScans = scans && amountText({ inBytes: scans, outBytes: 0, packets: scans }, measure);
  const label = ofScans ? `Unclassified, ${ofScans} of it port scans by the sensors` : 'Unclassified';
  const previous = previousTotal && whole.previousTotal && minus(whole.previousTotal, previousTotal);
  return {
    ...answer,
    rows: answer.rows.map(scaled),
    rest: answer.rest && scaled(answer.rest),
    ...{ total: whole.total, previousTotal: whole.previousTotal },
    apart: [{ label, amount, share: 1 - scale, previous, rates: unclassifiedRates(answer, whole) }],
  };
}

/** Known where both were read in the same steps. */
function unclassifiedRates(answer: Answer, whole: Answer): (number | null)[] {
  if (answer.timesMs.length === 0 || answer.stepSeconds !== whole.stepSeconds) return [];
  const rateAt = new Map(
    wholeRates(whole.measure, whole.series).map((rate, at) => [whole.timesMs[at], rate]),
  );
  const known = wholeRates(answer.measure, answer.series);
  return restRates(
    answer.timesMs.map((ms) => rateAt.get(ms) ?? null),
    [{ rates: known }],
  );
}

/** Counters of addresses hold the sensors' own port scans, sums of applications do not. */
function ownScansNote({ ownScans, measure }: Answer): Content {
  if (!ownScans) return '';
  const text = amountText({ inBytes: ownScans, outBytes: 0, packets: ownScans }, measure);
  return html`<p class="hint">Port scans by the sensors are ${text} of the counters of addresses. They are no application.</p>`;
}

interface Flows {
  /** By server: the totals, of which connections hold a part. */
  servers: Answer;
  /** By server and application. */
  left: Answer;
  /** By application and peer. */
  right: Answer;
}

/** Server to application to peer, as far as connections are kept. */
function flowsOf({ servers, left, right }: Flows): FlowPicture {
  const ofServers = pairsOf(left, 0);
  const totals = servers.rows.map((row) => ({
    from: endOf(row, 0),
    size: sizeOf(row.amount, left.measure) ?? 0,
  }));
  const first = [...ofServers, ...unclassifiedPairs(0, totals, ofServers)];
  const toPeers = pairsOf(right, 1);
  return {
    ...{ columns: ['server', 'application', 'peer'], colourColumn: 1, title: 'Who talks to whom' },
    source: 'unclassified: no flow is known, as of most packets of an attack, port scans, or before 24 hours',
    measure: left.measure,
    pairs: [...first, ...toPeers, ...unclassifiedPairs(1, totalsOfNext(0, first), toPeers)],
    limits: right.limits,
  };
}

const pairsOf = (answer: Answer, column: number): FlowPair[] =>
  answer.rows.map((row) => ({
    ...{ column, from: endOf(row, 0), to: endOf(row, 1) },
    size: sizeOf(row.amount, answer.measure) ?? 0,
  }));

function endOf({ key }: Row, at: number): FlowEnd {
  const { value, label } = key[at]!;
  return { key: value ?? `(${label})`, label, value };
}

// The form of a site's explorer.

/** `serverNames`: by the value of a filter. */
export function formOf(
  groups: readonly Dimension[],
  { siteId }: ExploreView,
  serverNames: ReadonlyMap<string, string>,
): Parameters<typeof exploreForm>[1] {
  const path = `/sites/${siteId}/explore`;
  return {
    ...{ path, completePath: `${path}/complete`, box: { ...queryBox, groups } },
    example: 'app:github.com peer:198.51.100.0/24 port:443 -server:web-1',
    labelOf: (dimension, value) => (dimension === 'server' ? serverNames.get(value) : undefined) ?? value,
  };
}
