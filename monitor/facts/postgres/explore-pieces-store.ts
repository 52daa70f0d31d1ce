/**
 * The rows that a query over any dimensions sums: of hours where they hold all that is asked for, of judged minutes and of the
 * facts of others elsewhere. Each statement is made for one query, so that no table is joined that it does not need.
 */
import { type RawBuilder, sql } from 'kysely';
import {
  type Exploration,
  type Explored,
  type ExploredDimension,
  splitPlaces,
  usesDimension,
} from '../contract/exploration.ts';
import { ownedMinutes } from './detail-store.ts';
import { judgedFacts, judgedPairs, noAddress } from './judge-store.ts';
import { keptNames } from './name-store.ts';
import {
  type Coverage,
  hourSeconds,
  inHours,
  inSpans,
  inStarts,
  type Parts,
  tenSeconds,
  type Unit,
} from './span-store.ts';

/** What the parts of a query are made of, whichever tables they are of. */
interface Pieces {
  /** Questions with the same filters, range and steps sum the same rows where their kind is the same. */
  kind: string;
  /** Whether an index finds the rows of an address or of a name, so that these are read again at little cost. */
  isIndexed: boolean;
  /** Common table expressions before `parts`, with a comma after each. */
  before: RawBuilder<unknown>;
  /** Selects, each of other rows, of `columns`. They are summed one by one, so that PostgreSQL can share a large one out. */
  parts: readonly RawBuilder<unknown>[];
  columns: readonly string[];
  grains: Explored['grains'];
}

/** Text of a value, null where there is none; over the columns that `base` selects. */
export const columns: Readonly<Record<ExploredDimension, RawBuilder<unknown>>> = {
  address: sql`host(b.local) || case when b.segment = '' then '' else '%' || b.segment end`,
  device: sql`b.device`,
  application: sql`b.name`,
  peer: sql`host(b.peer)`,
  port: sql`coalesce(b.port::text, 'none')`,
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

/** Ten minutes of usage and connections hold neither captures nor devices, hours no captures. */
const unitsOf = (asked: Exploration): Unit[] => [
  ...(isOfCaptures(asked) ? [] : (['hours'] as const)),
  ...(usesDimension(asked, 'sensor', 'scope', 'device') ? [] : (['tens of usage'] as const)),
];

const grainsOf = ({ days, hours, spans, tens }: Parts): Explored['grains'] => [
  ...(days.length > 0 ? (['days'] as const) : []),
  ...(hours.length > 0 ? (['hours'] as const) : []),
  ...(spans.length > 0 ? (['minutes'] as const) : []),
  ...(tens.length > 0 ? (['tens'] as const) : []),
];

export function piecesOf(coverage: Coverage, asked: Exploration): Pieces {
  const { source, stepSeconds } = asked;
  const isOfAddresses = usesDimension(asked, ...addressOnly);
  if (source === 'addresses')
    return isOfAddresses ? addressPieces(coverage, asked) : sitePieces(coverage, asked);
  const isByName = asked.measure === 'bytes' && !isOfAddresses;
  if (source === 'applications') {
    if (isByName) return namePieces(coverage, asked, coverage.all(['days', 'hours', 'tens'], stepSeconds));
    // Packets are no part of sums by name, and connections by name are fewer than usage by address.
    return coverage.isYoung && !isOfAddresses && fitsHours(asked)
      ? pairPieces(coverage, asked)
      : usagePieces(coverage, asked);
  }
  // Connections add up to the usage by application of the same minutes.
  return isByName && !usesDimension(asked, 'peer', 'country', 'as')
    ? namePieces(coverage, asked, coverage.young(['hours', 'tens'], stepSeconds))
    : pairPieces(coverage, asked);
}

const fitsHours = ({ stepSeconds }: Exploration) => stepSeconds === null || stepSeconds % hourSeconds === 0;

/** What sums by name don't tell. */
const addressOnly = ['address', 'server', 'customer', 'device', 'sensor', 'scope'] as const;

/** Own scans in the measure. Sums have bytes of both directions together, minutes of each. */
const ownScansOf = ({ measure }: Exploration, bytes = sql`own_scan_bytes`) =>
  measure === 'packets' ? sql`own_scan_packets` : bytes;
const ofBothDirections = sql`own_scan_rx_bytes + own_scan_tx_bytes`;

/** A site's sums by minute and hour. Quiet ones, in which captures listened and saw no address, hold no row of any address. */
function sitePieces(coverage: Coverage, asked: Exploration): Pieces {
  const parts = coverage.all(['hours'], asked.stepSeconds);
  const ofSite = sql`site_id = ${coverage.siteId} and addresses > 0`;
  const sums = sql`rx_bytes, tx_bytes, packets, ${ownScansOf(asked)}`;
  return {
    kind: 'site',
    isIndexed: true,
    before: sql``,
    columns: ['start', ...addressAmounts],
    parts: [
      sql`select minute, ${sums} from site_minutes where ${ofSite} and ${inSpans(parts.spans)}`,
      sql`select hour, ${sums} from site_hours where ${ofSite} and ${inHours(parts.hours)}`,
    ],
    grains: grainsOf(parts),
  };
}

/** Sums by name; rows without a name hold the sum of all names. */
function namePieces({ siteId }: Coverage, asked: Exploration, parts: Parts): Pieces {
  const isOfAll = [...asked.by, ...asked.filters.map((one) => one.dimension)].every(
    (one) => one === 'direction',
  );
  const only = sql`name is ${sql.raw(isOfAll ? 'null' : 'not null')} and inbound_bytes is not null`;
  const shared = sql`name, protocol, server_port, direction, inbound_bytes, outbound_bytes, null::numeric`;
  return {
    kind: isOfAll ? 'all names' : 'names',
    isIndexed: true,
    before: sql`${judgedFacts({ siteId, judged: [], unjudged: parts.unjudged, direction: null })},`,
    columns: ['start', 'name', 'protocol', 'port', 'direction', ...amounts],
    parts: [
      ...keptNames(siteId, parts, shared, only),
      sql`select minute, ${shared} from judged where owns and ${inSpans(parts.unjudged)}`,
    ],
    grains: grainsOf(parts),
  };
}

/** Counters of addresses; which capture counted is known by the minute alone. */
function addressPieces(coverage: Coverage, asked: Exploration): Pieces {
  const { siteId } = coverage;
  const needsCapture = isOfCaptures(asked);
  const parts = coverage.all(needsCapture ? ['tens'] : ['hours', 'tens'], asked.stepSeconds);
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
    isIndexed: !needsCapture,
    before: sql``,
    columns: ['start', 'local', 'segment', 'device', 'seen_by', 'vantage', ...addressAmounts],
    parts: [
      sql`select start, ${shared}, capture_id, vantage, rx_bytes, tx_bytes, packets, ${ownScansOf(asked)} from address_tens
        where site_id = ${siteId} and ${inStarts(parts.tens, tenSeconds, 'start')} and ${isLocal}`,
      sql`select hour, ${shared}, null::bigint, null::smallint, rx_bytes, tx_bytes, packets, ${ownScansOf(asked)} from address_hours
        where site_id = ${siteId} and ${inHours(parts.hours)} and rx_bytes is not null and ${isLocal}`,
      ...minutes,
    ],
    grains: grainsOf(parts),
  };
}

/** The last columns of each part; those of addresses tell the own scans among them. */
const amounts = ['inbound', 'outbound', 'packets'];
const addressAmounts = [...amounts, 'own_scans'];
/** Those of usage and of connections. */
const usageColumns = ['local', 'segment', 'device', 'name', 'protocol', 'port', 'direction'];

const localOrNone = (of: string) => sql`nullif(${sql.ref(`${of}.local`)}, ${noAddress})`;

/** The facts of minutes that a query can be about. */
const judgingOf = (siteId: number, asked: Exploration, { judged, unjudged }: Parts) => ({
  ...{ siteId, judged, unjudged, direction: null },
  locals: localsOf(asked),
  sensors: sensorsOf(asked),
});

/** Whether it matters which capture counts, which the minutes alone tell. */
const isOfCaptures = (asked: Exploration): boolean => usesDimension(asked, 'sensor', 'scope');

/** What the rows of usage and of connections depend on beside filters, range and steps. */
const detailOf = (asked: Exploration) =>
  `${isOfCaptures(asked) ? ' of captures' : ''}${usesDimension(asked, 'device') ? ' of devices' : ''}`;

function usagePieces(coverage: Coverage, asked: Exploration): Pieces {
  const { siteId } = coverage;
  const parts = coverage.all(unitsOf(asked), asked.stepSeconds);
  const judging = judgingOf(siteId, asked, parts);
  const { locals } = judging;
  const isLocal = locals === null ? sql`true` : sql`local = any(${locals}::inet[])`;
  const isNamed = nameCondition(asked);
  const device = deviceOf(asked, siteId, parts, sql`j`);
  return {
    kind: `usage${detailOf(asked)}`,
    isIndexed: false,
    before: sql`${judgedFacts(judging)}, ${device.before}`,
    columns: ['start', ...usageColumns, 'seen_by', 'vantage', ...amounts],
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
    grains: grainsOf(parts),
  };
}

function pairPieces(coverage: Coverage, asked: Exploration): Pieces {
  const { siteId } = coverage;
  const parts = coverage.young(unitsOf(asked), asked.stepSeconds);
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
    isIndexed: false,
    before: sql`${judgedFacts(judging)}, ${judgedPairs(judging)}, ${device.before}`,
    columns: ['start', ...usageColumns, 'peer', 'seen_by', 'vantage', ...amounts],
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
    grains: grainsOf(parts),
  };
}

/** The smallest sums of hours that hold all that is asked for of connections. */
const keptPairsOf = (asked: Exploration): 'connections by name' | 'connections' =>
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
