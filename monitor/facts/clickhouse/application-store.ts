/** Reads of applications. */
import { directionOf, evidenceOf, vantageOf } from '../contract/codes.ts';
import * as facts from '../contract/facts.ts';
import { type Sources, scopeOf } from './address-store.ts';
import { type Judging, judged, owners } from './judge-store.ts';
import { findTopPairs, portOf, portsInOrder } from './pair-store.ts';
import { isAmong, within } from './select-store.ts';
import { ch, number, plain, text } from './statement.ts';
import { hexOf, readForeign } from './verdict-store.ts';

/** All facts of a range and direction. */
export async function judgingOf(
  sources: Sources,
  range: facts.SiteRange & { direction?: facts.Direction | null },
): Promise<Judging> {
  return { ...(await scopeOf(sources, range)), direction: range.direction ?? null };
}

const named = plain(
  `max(evidence) as best_evidence, max(is_attributed) as attributed, max(last_sent_ms) as sent`,
);
const bytes = plain(
  `sumIf(inbound, owns) as inbound_sum, sumIf(outbound, owns) as outbound_sum, max(owns) as is_known`,
);

interface NamedRow {
  name: string;
  protocol: number;
  port: number;
  best_evidence: number;
  attributed: number;
  sent: number;
}

function namedOf({ name, protocol, port, best_evidence, attributed, sent }: NamedRow) {
  return {
    name,
    protocol,
    serverPort: portOf(port),
    evidence: evidenceOf(best_evidence),
    isAttributed: attributed === 1,
    lastSentMs: sent > 0 ? sent : null,
  };
}

/** What each address used and hosted over the Internet, in the order of the ranges. Null where there are more rows than `rowsMax`. */
export async function readAddressesApplications(
  sources: Sources,
  ranges: readonly facts.AddressRange[],
  rowsMax: number | null,
): Promise<facts.AddressApplication[][] | null> {
  if (ranges.length === 0) return [];
  const found: facts.AddressApplication[][] = [];
  let rows = 0;
  // Ranges of one site and segment are read at once; each row then goes to the ranges that it is in.
  const groups = Map.groupBy(ranges, ({ siteId, segment }) => JSON.stringify([siteId, segment ?? null]));
  const byGroup = new Map<string, Map<string, (facts.AddressApplication & { hex: string })[]>>();
  for (const [key, of] of groups) {
    const read = await readApplicationsOf(sources, of);
    byGroup.set(
      key,
      Map.groupBy(read, (row) => row.hex.toLowerCase()),
    );
  }
  for (const range of ranges) {
    const group = byGroup.get(JSON.stringify([range.siteId, range.segment ?? null]))!;
    const own = (group.get(hexOf(range.address)) ?? [])
      .filter(({ minute }) => minute >= range.fromMinute && minute < range.toMinute)
      .map(({ hex: _, ...row }) => row);
    rows += own.length;
    if (rowsMax !== null && rows > rowsMax) return null;
    found.push(own);
  }
  return found;
}

async function readApplicationsOf({ engine, db }: Sources, ranges: readonly facts.AddressRange[]) {
  const { siteId, segment } = ranges[0]!;
  const around = {
    siteId,
    fromMinute: ranges.reduce((least, one) => Math.min(least, one.fromMinute), Number.POSITIVE_INFINITY),
    toMinute: ranges.reduce((most, one) => Math.max(most, one.toMinute), 0),
  };
  const foreign = await readForeign(db(), { ...around, siteIds: [siteId] });
  const addresses = [...new Set(ranges.map((one) => one.address))];
  const isAsked = ch`${within(around)} and ${isAmong(plain('local'), addresses)} and direction in (1, 2) and not (${foreign('local')})
    and ${segment === undefined ? plain('1') : ch`segment in ('', ${text(segment)})`}`;
  const rows = await engine.rows<
    NamedRow & { hex: string; at: number; direction: number; inbound_sum: number; outbound_sum: number }
  >(ch`
    with owning as (
      select local, minute, direction, argMin(capture_id, (if(vantage = 1 and bytes > 0, 0, 1), -bytes, sensor, of_capture)) as owner
      from (select local, minute, direction, capture_id, vantage, any(sensor_id) as sensor, toString(any(capture)) as of_capture,
          toInt64(sum(inbound_bytes + outbound_bytes)) as bytes
        from application_facts where ${isAsked} group by local, minute, direction, capture_id, vantage)
      group by local, minute, direction)
    select hex(f.local) as hex, toUnixTimestamp(f.minute) as at, f.direction as direction, toString(f.name) as name, f.protocol as protocol,
      f.server_port as port, ${named}, toFloat64(sum(inbound_bytes)) as inbound_sum, toFloat64(sum(outbound_bytes)) as outbound_sum
    from (select * from application_facts where ${isAsked}) f
    inner join owning o on o.local = f.local and o.minute = f.minute and o.direction = f.direction and o.owner = f.capture_id
    group by f.local, f.minute, f.direction, f.name, f.protocol, f.server_port
    order by f.minute, f.direction = 1, toString(f.name), f.protocol, f.server_port = -1, f.server_port`);
  return rows.map((row) => {
    const { name, protocol, serverPort, evidence, isAttributed, lastSentMs } = namedOf(row);
    return {
      hex: row.hex,
      minute: row.at,
      direction: directionOf(row.direction) as 'outbound' | 'inbound',
      ...{ name, protocol, serverPort, evidence, isAttributed },
      inboundBytes: row.inbound_sum,
      outboundBytes: row.outbound_sum,
      lastSentMs,
    };
  });
}

/** A local address's part of the site's applications over the Internet. */
export async function sumAddressApplications(
  sources: Sources,
  range: facts.AddressRange,
): Promise<facts.AddressUse[]> {
  const judging = await judgingOf(sources, range);
  const isLocal = isAmong(plain('local'), [range.address]);
  const isAsked = ch`${isLocal} and direction in (1, 2)`;
  const ofSegment = range.segment === undefined ? plain('1') : ch`segment in ('', ${text(range.segment)})`;
  const rows = await sources.engine.rows<
    NamedRow & { direction: number; inbound: number; outbound: number; is_known: number }
  >(ch`
    with ${owners(judging, isLocal)}, ${judged(judging, isAsked)}
    select direction, name, protocol, server_port as port, ${named}, max(owns) as is_known,
      toFloat64(sumIf(inbound, owns)) as inbound, toFloat64(sumIf(outbound, owns)) as outbound
    from judged where ${ofSegment} group by direction, name, protocol, server_port
    order by if(max(owns) = 1, toInt64(sumIf(inbound, owns) + sumIf(outbound, owns)), -1) desc, direction, name, protocol, ${portsInOrder}`);
  return rows.map((row) => ({
    direction: directionOf(row.direction) as 'outbound' | 'inbound',
    ...namedOf(row),
    inboundBytes: row.is_known === 1 ? row.inbound : null,
    outboundBytes: row.is_known === 1 ? row.outbound : null,
  }));
}

interface RankedRow extends NamedRow {
  is_known: number;
  inbound: number;
  outbound: number;
  vantage: number;
  addresses: number;
  total: number;
  all_bytes: number;
  domain_bytes: number;
  port_bytes: number;
}

/** A range's applications by bytes, largest first, with the busiest pair of each. */
export async function rankApplications(
  sources: Sources,
  range: facts.Ranking,
): Promise<facts.ApplicationUse> {
  const judging = await judgingOf(sources, range);
  const { limit, nameContains = '' } = range;
  const found = await sources.engine.rows<RankedRow>(ch`
    with ${owners(judging)}, ${judged(judging)},
    sums as (
      select name, protocol, server_port, ${named}, ${bytes}, minIf(vantage, owns) as owner, min(vantage) as seen,
        uniqExactIf(local, local != '') as several
      from judged group by name, protocol, server_port having is_known = 1 or attributed = 1),
    totals as (
      select *, sum(inbound_sum + outbound_sum) over () as all_bytes,
        sum(if(best_evidence > 0, inbound_sum + outbound_sum, 0)) over () as domain_bytes,
        sum(if(best_evidence = 0 and attributed = 1, inbound_sum + outbound_sum, 0)) over () as port_bytes,
        positionCaseInsensitiveUTF8(name, ${text(nameContains)}) > 0 as is_named
      from sums)
    select name, protocol, server_port as port, best_evidence, attributed, sent, is_known, toFloat64(inbound_sum) as inbound,
      toFloat64(outbound_sum) as outbound, if(is_known = 1, owner, seen) as vantage, toFloat64(several) as addresses,
      toFloat64(sum(is_named) over ()) as total, toFloat64(all_bytes) as all_bytes, toFloat64(domain_bytes) as domain_bytes,
      toFloat64(port_bytes) as port_bytes, is_named
    from totals
    order by is_named desc, if(is_known = 1, toInt64(inbound_sum + outbound_sum), -1) desc, name, protocol, ${portsInOrder}
    limit ${number(Math.max(limit, 1))}`);
  const first = found[0];
  const rows = found.slice(0, Math.min(limit, first?.total ?? 0));
  const known = range.topConnections ?? new Map<string, facts.ApplicationRow['topConnection']>();
  const keys = rows.map((row): facts.ApplicationKey => ({ ...row, serverPort: portOf(row.port) }));
  const top = await findTopPairs(
    sources,
    judging,
    keys.filter((key) => !known.has(facts.keyText(key))),
  );
  return {
    rows: rows.map((row, i) => {
      const { lastSentMs, ...of } = namedOf(row);
      const key = facts.keyText(keys[i]!);
      return {
        ...of,
        inboundBytes: row.is_known === 1 ? row.inbound : null,
        outboundBytes: row.is_known === 1 ? row.outbound : null,
        vantage: vantageOf(row.vantage),
        addresses: row.addresses,
        lastSentMs,
        topConnection: known.has(key) ? known.get(key)! : (top.get(key) ?? null),
      };
    }),
    total: first?.total ?? 0,
    bytes: first?.all_bytes ?? 0,
    domainBytes: first?.domain_bytes ?? 0,
    portBytes: first?.port_bytes ?? 0,
  };
}
