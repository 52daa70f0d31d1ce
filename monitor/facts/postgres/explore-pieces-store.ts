/**
 * The rows that a query over any dimensions sums: of hours where they hold all that is asked for, of judged minutes and of the
 * facts of others elsewhere. Each statement is made for one query, so that no table is joined that it does not need.
 */
import { type RawBuilder, sql } from 'kysely';
import {
  type Exploration,
  type Explored,
  type ExploredDimension,
  type ExploredView,
  splitPlaces,
} from '../contract/exploration.ts';
import { ownedMinutes } from './detail-store.ts';
import { judgedFacts, judgedPairs, noAddress } from './judge-store.ts';
import { excludedLocals, namePieces, namePiecesWithout } from './name-pieces-store.ts';
import type { PieceQuery, Pieces } from './pieces.ts';
import {
  type Coverage,
  daySeconds,
  hourSeconds,
  inHours,
  inSpans,
  inStarts,
  type MinuteParts,
  type Parts,
  type Span,
  tenSeconds,
  type UsageParts,
  uniteSpans,
  withoutHours,
} from './span-store.ts';

/** Expressions over a row `b` of a source, by dimension. */
type Columns = Partial<Record<ExploredDimension, RawBuilder<unknown>>>;

type Asked = Pick<Exploration, 'by' | 'filters'>;

const usesDimension = (asked: Asked, ...dimensions: ExploredDimension[]): boolean =>
  asked.by.some((one) => dimensions.includes(one)) ||
  asked.filters.some((one) => dimensions.includes(one.dimension));

/** Text of a value, null where there is none; over the columns that `base` selects. */
export const columns: Columns = {
  address: sql`host(b.local) || case when b.segment = '' then '' else '%' || b.segment end`,
  device: sql`b.device_key`,
  application: sql`b.name`,
  peer: sql`host(b.peer)`,
  port: sql`coalesce(b.server_port::text, 'none')`,
  transport: sql`b.protocol::text`,
  direction: sql`(array['outbound', 'inbound', 'internal', 'transit'])[b.direction]`,
  sensor: sql`c.sensor_id::text`,
  scope: sql`case b.vantage when 1 then 'uplink' else 'bridge' end`,
  server: sql`coalesce(l.server, w.server)`,
  customer: sql`coalesce(l.customer, w.customer)`,
  country: sql`n.country`,
  as: sql`n.as_number`,
};

/** Local addresses that a query can be about, where its filters name them one by one; null: any. */
export function localsOf({ filters }: Pick<Exploration, 'filters'>): string[] | null {
  const named = filters
    .filter((one) => one.dimension === 'address' && one.is)
    .map((one) => splitPlaces(one.values))
    .filter((one) => one.networks.length === 0)
    .map((one) => [...one.addresses, ...one.segments.map(({ address }) => address)]);
  return named.toSorted((a, b) => a.length - b.length)[0] ?? null;
}

/** The sensors that a query can be about; null: any. */
const sensorsOf = ({ filters }: Exploration): readonly string[] | null =>
  filters.find(({ dimension, is }) => dimension === 'sensor' && is)?.values ?? null;

/** The names that a query can be about, as a condition that an index takes. */
function nameCondition({ filters }: Exploration): RawBuilder<unknown> {
  const named = filters.find(({ dimension, is }) => dimension === 'application' && is);
  return named === undefined ? sql`true` : sql`name = any(${[...named.values]}::text[])`;
}

const fitsHours = (asked: Exploration) => asked.stepSeconds === null || asked.stepSeconds % hourSeconds === 0;

/** Ten minutes of usage and connections hold neither captures nor devices. */
const fitsUsageTens = (asked: Exploration) =>
  (asked.stepSeconds === null || asked.stepSeconds % tenSeconds === 0) &&
  !usesDimension(asked, 'sensor', 'scope', 'device');

const usagePartsOf = (coverage: Coverage, asked: Exploration, rolled: Parts & MinuteParts): UsageParts => {
  const parts = fitsHours(asked) && !isOfCaptures(asked) ? rolled : withoutHours(rolled);
  return fitsUsageTens(asked) ? coverage.withUsageTens(parts) : { ...parts, tens: [] };
};

const grainsOf = (parts: {
  hours: readonly unknown[];
  tens?: readonly unknown[];
  judged: readonly unknown[];
  unjudged: readonly unknown[];
}) =>
  new Set<Explored['grains'][number]>([
    ...(parts.hours.length > 0 ? (['hours'] as const) : []),
    ...(parts.tens?.length ? (['tens'] as const) : []),
    ...(parts.judged.length + parts.unjudged.length > 0 ? (['minutes'] as const) : []),
  ]);

export function piecesOf(coverage: Coverage, asked: PieceQuery & ExploredView): Pieces {
  if (asked.source === 'addresses') {
    if (!usesDimension(asked, ...addressOnly)) return sitePieces(coverage, asked);
    const locals = asked.isDirect || asked.by.length > 0 ? null : excludedLocals(asked.filters);
    const isFine = asked.stepSeconds !== null && asked.stepSeconds % tenSeconds !== 0;
    return locals !== null && isFine && onlyOfAddress(asked)
      ? sitePiecesWithout(coverage, asked, locals)
      : addressPieces(coverage, asked);
  }
  if (asked.source === 'pairs')
    return isPairTotal(asked)
      ? namePieces(coverage, asked, coverage.youngNamesUpTo(asked.stepSeconds ?? hourSeconds))
      : pairPieces(coverage, asked);
  if (isByName(asked))
    return namePieces(coverage, asked, coverage.namesUpTo(asked.stepSeconds ?? daySeconds));
  if (coverage.isYoung && isOfPairs(asked)) return pairPieces(coverage, asked);
  const locals = excludedOf(asked);
  if (locals === null) return usagePieces(coverage, asked);
  const step = asked.stepSeconds ?? hourSeconds;
  return namePiecesWithout(
    coverage,
    asked,
    coverage.namesUpTo(step % hourSeconds === 0 ? hourSeconds : step),
    locals,
  );
}

/** Addresses without which sums by name hold all that is asked for; null: they don't. */
function excludedOf(asked: PieceQuery & ExploredView): string[] | null {
  const others = asked.filters.filter((one) => one.dimension !== 'address');
  const locals = asked.isDirect ? null : excludedLocals(asked.filters);
  return locals !== null && isByName({ ...asked, filters: others }) ? locals : null;
}

/** Whether what is asked for is found by name, all or without some addresses. */
export const isOfNames = (asked: PieceQuery & ExploredView): boolean =>
  isByName(asked) || (asked.source === 'applications' && excludedOf(asked) !== null);

/** Connections add up to the usage by application of the same minutes, where nothing is asked for that they alone know. */
const isPairTotal = (asked: Exploration): boolean =>
  asked.measure === 'bytes' && !usesDimension(asked, 'peer', 'country', 'as', ...addressOnly);

/** The other way round packets, which sums by name don't have: those by name and remote address are fewer than those by address. */
const isOfPairs = (asked: Exploration): boolean =>
  asked.measure === 'packets' && fitsHours(asked) && !usesDimension(asked, ...addressOnly);

/** What sums by name don't tell. */
const addressOnly = ['address', 'server', 'customer', 'device', 'sensor', 'scope'] as const;

/** Whether sums by name alone hold all that is asked for. */
const isByName = (asked: Exploration): boolean =>
  asked.source === 'applications' && asked.measure === 'bytes' && !usesDimension(asked, ...addressOnly);

/** Own scans in the measure. Sums have bytes of both directions together, minutes of each. */
const ownScansOf = ({ measure }: Exploration, bytes = sql`own_scan_bytes`) =>
  measure === 'packets' ? sql`own_scan_packets` : bytes;
const ofBothDirections = sql`own_scan_rx_bytes + own_scan_tx_bytes`;

/** A site's sums by minute and hour. Quiet ones, in which captures listened and saw no address, hold no row of any address. */
function sitePieces(coverage: Coverage, asked: Exploration): Pieces {
  const { siteId } = coverage;
  const parts = fitsHours(asked) ? coverage : withoutHours(coverage);
  const ofSite = sql`site_id = ${siteId} and addresses > 0`;
  return {
    kind: 'site',
    before: sql``,
    columns: ['start', ...addressAmounts],
    parts: [
      sql`select minute, rx_bytes, tx_bytes, packets, ${ownScansOf(asked)} from site_minutes where ${ofSite} and ${inSpans(parts.spans)}`,
      sql`select hour, rx_bytes, tx_bytes, packets, ${ownScansOf(asked)} from site_hours where ${ofSite} and ${inHours(parts.hours)}`,
    ],
    filters: asked.filters,
    grains: grainsOf(parts),
  };
}

const onlyOfAddress = ({ filters }: Asked) => filters.every(({ dimension }) => dimension === 'address');

/** The minutes of a site without some addresses: its sums minus theirs, which an index finds; those of changed minutes from all counters. */
function sitePiecesWithout(coverage: Coverage, asked: Exploration, locals: readonly string[]): Pieces {
  const { siteId } = coverage;
  const { judged, unjudged } = withoutHours(coverage);
  const minuteScans = ownScansOf(asked, ofBothDirections);
  const isLeftOut = sql`address = any(${[...locals]}::inet[])`;
  const minutesOf = (spans: readonly Span[], where: RawBuilder<unknown>) =>
    spans.map(
      (span) => sql`select minute, rx_bytes, tx_bytes, packets, ${minuteScans} as own_scans
        from strongest_host_minutes(${siteId}, to_timestamp(${span.from}), to_timestamp(${span.to})) s where ${where}`,
    );
  const ofPart = minutesOf(uniteSpans(judged, []), isLeftOut);
  const nothing = sql`select null::timestamptz as minute, 0 as rx_bytes, 0 as tx_bytes, 0 as packets, 0 as own_scans where false`;
  return {
    kind: 'site without addresses',
    before: sql`part as materialized (
      select minute, sum(rx_bytes) as rx_bytes, sum(tx_bytes) as tx_bytes, sum(packets) as packets, sum(own_scans) as own_scans,
        count(*) as addresses
      from (${sql.join([nothing, ...ofPart], sql` union all `)}) s group by minute),`,
    columns: ['start', ...addressAmounts],
    parts: [
      sql`select k.minute, k.rx_bytes - coalesce(p.rx_bytes, 0), k.tx_bytes - coalesce(p.tx_bytes, 0), k.packets - coalesce(p.packets, 0),
          ${ownScansOf(asked)} - coalesce(p.own_scans, 0)
        from site_minutes k left join part p on p.minute = k.minute
        where site_id = ${siteId} and ${inSpans(judged, 'k.minute')} and k.addresses > coalesce(p.addresses, 0)`,
      ...minutesOf(unjudged, sql`not ${isLeftOut}`),
    ],
    filters: [],
    grains: new Set(['minutes']),
  };
}

/** Counters of addresses; which capture counted is known by the minute alone. */
function addressPieces(coverage: Coverage, asked: Exploration): Pieces {
  const { siteId } = coverage;
  const needsCapture = isOfCaptures(asked);
  const parts = coverage.addressesUpTo(asked.stepSeconds ?? hourSeconds, needsCapture);
  const locals = localsOf(asked);
  const isLocal = locals === null ? sql`true` : sql`address = any(${locals}::inet[])`;
  const shared = sql`address, segment, nullif(device_key, '')`;
  const minutes = parts.spans.map((span) => {
    const call = sql`(select * from strongest_host_minutes(${siteId}, to_timestamp(${span.from}), to_timestamp(${span.to}))
      where ${isLocal}) s`;
    const sums = sql`rx_bytes, tx_bytes, s.packets, ${ownScansOf(asked, ofBothDirections)}`;
    return needsCapture
      ? sql`select s.minute, ${shared}, s.capture_id, m.vantage, ${sums} from ${call}
          join capture_minutes m on m.site_id = ${siteId} and m.minute = s.minute and m.capture_id = s.capture_id
            and m.minute >= to_timestamp(${span.from}) and m.minute < to_timestamp(${span.to})`
      : sql`select s.minute, ${shared}, null::bigint, null::smallint, ${sums} from ${call}`;
  });
  return {
    kind: needsCapture ? 'addresses of captures' : 'addresses',
    before: sql``,
    columns: ['start', 'local', 'segment', 'device_key', 'capture_id', 'vantage', ...addressAmounts],
    parts: [
      sql`select start, ${shared}, capture_id, vantage, rx_bytes, tx_bytes, packets, ${ownScansOf(asked)} from address_tens
        where site_id = ${siteId} and ${inStarts(parts.tens, tenSeconds, 'start')} and ${isLocal}`,
      sql`select hour, ${shared}, null::bigint, null::smallint, rx_bytes, tx_bytes, packets, ${ownScansOf(asked)} from address_hours
        where site_id = ${siteId} and ${inHours(parts.hours)} and rx_bytes is not null and ${isLocal}`,
      ...minutes,
    ],
    filters: asked.filters,
    grains: grainsOf({ ...parts, judged: parts.spans, unjudged: [] }),
  };
}

/** The last columns of each part; those of addresses tell the own scans among them. */
const amounts = ['inbound', 'outbound', 'packets'];
const addressAmounts = [...amounts, 'own_scans'];
/** Those of usage and of connections. */
const usageColumns = ['local', 'segment', 'device_key', 'name', 'protocol', 'server_port', 'direction'];

const localOrNone = (of: string) => sql`nullif(${sql.ref(`${of}.local`)}, ${noAddress})`;

/** The facts of minutes that a query can be about. */
const judgingOf = (siteId: number, asked: Exploration, { judged, unjudged }: MinuteParts) => ({
  ...{ siteId, judged, unjudged, direction: null },
  locals: localsOf(asked),
  sensors: sensorsOf(asked),
});

/** Whether it matters which capture counts, which the minutes alone tell. */
export const isOfCaptures = (asked: Asked): boolean => usesDimension(asked, 'sensor', 'scope');

/** What the rows of usage and of connections depend on beside filters, range and steps. */
const detailOf = (asked: Exploration) =>
  `${isOfCaptures(asked) ? ' of captures' : ''}${usesDimension(asked, 'device') ? ' of devices' : ''}`;

function usagePieces(coverage: Coverage, asked: Exploration): Pieces {
  const { siteId } = coverage;
  const rolled: Parts & MinuteParts = asked.measure === 'packets' ? coverage.detailed.all : coverage;
  const parts = usagePartsOf(coverage, asked, rolled);
  const judging = judgingOf(siteId, asked, parts);
  const { locals } = judging;
  const isLocal = locals === null ? sql`true` : sql`local = any(${locals}::inet[])`;
  const isNamed = nameCondition(asked);
  const device = deviceOf(asked, siteId, parts, sql`j`);
  return {
    kind: `usage${detailOf(asked)}`,
    before: sql`${judgedFacts(judging)}, ${device.before}`,
    columns: ['start', ...usageColumns, 'capture_id', 'vantage', ...amounts],
    parts: [
      sql`select j.minute, ${localOrNone('j')}, j.segment, ${device.column}, j.name, j.protocol, j.server_port, j.direction, j.capture_id,
          j.vantage, j.inbound_bytes, j.outbound_bytes, j.packets
        from judged j ${device.join} where j.owns and ${locals === null ? sql`true` : sql`j.local = any(${locals}::inet[])`} and ${isNamed}`,
      sql`select hour, ${localOrNone('h')}, segment, device_key, name, protocol, server_port, direction, null::bigint, null::smallint,
          inbound_bytes, outbound_bytes, ${asked.measure === 'packets' ? sql`packets` : sql`null::numeric`}
        from application_hours h where site_id = ${siteId} and ${inHours(parts.hours)} and inbound_bytes is not null and ${isLocal}
          and ${isNamed}`,
      sql`select start, ${localOrNone('t')}, segment, null::text, name, protocol, server_port, direction, null::bigint, null::smallint,
          inbound_bytes, outbound_bytes, packets
        from usage_tens t where site_id = ${siteId} and ${inStarts(parts.tens, tenSeconds, 'start')} and ${isLocal} and ${isNamed}`,
    ],
    filters: asked.filters,
    grains: grainsOf(parts),
  };
}

function pairPieces(coverage: Coverage, asked: Exploration): Pieces {
  const { siteId } = coverage;
  const parts = usagePartsOf(coverage, asked, coverage.detailed.pairs);
  const judging = judgingOf(siteId, asked, parts);
  const { locals } = judging;
  const device = deviceOf(asked, siteId, parts, sql`j`);
  const peer = sql`case direction when 2 then client else server end`;
  const isLocal = locals === null ? sql`true` : sql`local = any(${locals}::inet[])`;
  const isNamed = nameCondition(asked);
  const inHour = sql`site_id = ${siteId} and ${inHours(parts.hours)}`;
  const kept = keptPairsOf(asked);
  const hours = {
    'connections by name': sql`select hour, null::inet, '', null::text, name, protocol, server_port, direction, peer,
        null::bigint, null::smallint, inbound_bytes, outbound_bytes, packets
      from pair_name_hours where ${inHour} and ${isNamed}`,
    connections: sql`select hour, ${localOrNone('h')}, segment, device_key, name, protocol, server_port, direction, ${peer}, null::bigint,
        null::smallint, inbound_bytes, outbound_bytes, packets
      from pair_hours h where ${inHour} and inbound_bytes is not null and ${isLocal} and ${isNamed}`,
  };
  return {
    kind: `${kept}${detailOf(asked)}`,
    before: sql`${judgedFacts(judging)}, ${judgedPairs(judging)}, ${device.before}`,
    columns: ['start', ...usageColumns, 'peer', 'capture_id', 'vantage', ...amounts],
    parts: [
      sql`select j.minute, case when j.direction <> 4 then j.local end, j.segment, ${device.column}, j.name, j.protocol, j.server_port,
          j.direction, case j.direction when 2 then j.client else j.server end, j.capture_id, j.vantage,
          case j.direction when 2 then j.client_bytes else j.server_bytes end,
          case j.direction when 2 then j.server_bytes else j.client_bytes end, j.packets
        from judged_pairs j ${device.join} where j.owns and ${isLocal} and ${isNamed}`,
      hours[kept],
      sql`select start, ${localOrNone('t')}, segment, null::text, name, protocol, server_port, direction, peer, null::bigint,
          null::smallint, inbound_bytes, outbound_bytes, packets
        from pair_tens t where site_id = ${siteId} and ${inStarts(parts.tens, tenSeconds, 'start')} and ${isLocal} and ${isNamed}`,
    ],
    filters: asked.filters,
    grains: grainsOf(parts),
  };
}

/** The smallest sums of hours that hold all that is asked for of connections. */
const keptPairsOf = (asked: Asked): 'connections by name' | 'connections' =>
  usesDimension(asked, ...addressOnly) ? 'connections' : 'connections by name';

/** Whose the local address was, joined only where it is asked for. */
function deviceOf(asked: Exploration, siteId: number, parts: Parts, of: RawBuilder<unknown>) {
  if (!usesDimension(asked, 'device')) return { before: sql``, join: sql``, column: sql`null::text` };
  return {
    before: sql`${ownedMinutes(siteId, parts.spans, localsOf(asked))},`,
    join: sql`left join owned o on o.address = ${of}.local and o.minute = ${of}.minute and o.segment = ${of}.segment`,
    column: sql`o.device_key`,
  };
}
