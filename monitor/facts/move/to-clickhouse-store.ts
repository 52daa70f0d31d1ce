import { type RawBuilder, sql } from 'kysely';
import { type Queryable, readLines } from '#service-kit/postgres/index.ts';
import type { Engine } from '../clickhouse/engine-store.ts';
import { peerLengths } from '../contract/peer-networks.ts';
import type { SiteDay } from '../control/engine-use-store.ts';

/** Bytes of one insert. */
const pieceBytes = 4 * 1024 * 1024;

interface ToClickhouse extends SiteDay {
  /** What is older is being removed. */
  fromMinute: number;
  /** Of pairs the same. */
  pairsFrom: number;
  /** Networks of peers of hours from this one on are made of exact pairs. */
  peersFrom: number;
  /** Verdicts in PostgreSQL are as new as this. */
  verdictEpoch: number;
}

/** Throws what `onRows` throws. */
export async function copyToClickhouse(
  { db, engine }: { db: Queryable; engine: Engine },
  of: ToClickhouse,
  onRows: (rows: number) => Promise<void>,
): Promise<void> {
  const bounds = { ...of, toMinute: of.day + 86_400, fromMinute: Math.max(of.day, of.fromMinute) };
  for (const { table, columns, fields, from } of copiedTables(bounds)) {
    let held: Buffer[] = [];
    let bytes = 0;
    const send = async (piece: Buffer) => {
      if (piece.length === 0) return;
      await onRows(countLines(piece));
      await engine.load({ table, columns }, piece);
    };
    await readLines(db, sql`select ${tabbed(fields)} ${from}`, async (piece) => {
      held.push(piece);
      bytes += piece.length;
      if (bytes < pieceBytes) return;
      const all = Buffer.concat(held);
      const end = all.lastIndexOf(10) + 1;
      held = [all.subarray(end)];
      bytes = held[0]!.length;
      await send(all.subarray(0, end));
    });
    await send(Buffer.concat(held));
  }
}

export function countLines(piece: Uint8Array): number {
  let lines = 0;
  for (let at = piece.indexOf(10); at >= 0; at = piece.indexOf(10, at + 1)) lines += 1;
  return lines;
}

// Rows of a day of a site in PostgreSQL, as ClickHouse's format TabSeparated has them.

/** A day of a site. */
interface CopiedDay {
  siteId: number;
  fromMinute: number;
  toMinute: number;
  /** Older pairs are being removed. */
  pairsFrom: number;
  /** Networks of peers of hours from this one on are made of exact pairs. */
  peersFrom: number;
  /** Verdicts in PostgreSQL are as new as this. */
  verdictEpoch: number;
}

const place = ['site_id', 'minute', 'capture_id', 'sensor_id', 'capture'];
const verdict = ['segment', 'is_foreign', 'verdict_epoch'];
const service = ['vantage', 'direction', 'name', 'protocol', 'server_port', 'evidence', 'is_attributed'];
const hostCounters = [
  ...['rx_bytes', 'tx_bytes', 'packets', 'lan_rx_bytes', 'lan_tx_bytes'],
  ...['own_scan_rx_bytes', 'own_scan_tx_bytes', 'own_scan_packets'],
];
/** Null for nothing. */
const droppedCounters = ['dropped_rx_bytes', 'dropped_tx_bytes', 'dropped_rx_packets', 'dropped_tx_packets'];
const captureTotals = [
  ...['packets', 'ip_packets', 'ip_bytes', 'non_ip_packets', 'parser_dropped', 'kernel_dropped'],
  ...['detail_truncated', 'merged_frames'],
];

type Field = RawBuilder<unknown>;

const tabbed = (fields: readonly Field[]) => sql.join(fields, sql` || e'\\t' || `);
/** Columns of `f` that need no other form. */
const same = (...names: string[]): Field[] => names.map((name) => sql`f.${sql.ref(name)}::text`);
/** The bytes of an address; none for null. */
const bytesOf = (address: RawBuilder<unknown>): Field =>
  sql`coalesce(regexp_replace(substr(encode(inet_send(${address}), 'hex'), 9), '(..)', '\\\\x\\1', 'g'), '')`;
const second = (name: string): Field => sql`extract(epoch from f.${sql.ref(name)})::bigint::text`;
const bit = (name: string): Field => sql`f.${sql.ref(name)}::int::text`;
const constant = (value: number): Field => sql`${sql.lit(String(value))}::text`;

/** Characters that the format escapes, or that would be quoted on the way. */
const specials = [
  ['\\\\', '\\\\\\\\'],
  ['\\t', '\\\\t'],
  ['\\n', '\\\\n'],
  ['\\r', '\\\\r'],
  ['\\x01', '\\\\x01'],
  ['\\x02', '\\\\x02'],
] as const;
/** Text, escaped as the format asks. */
function textOf(value: RawBuilder<unknown>): Field {
  let text: RawBuilder<unknown> = value;
  for (const [from, to] of specials) text = sql`replace(${text}, e'${sql.raw(from)}', e'${sql.raw(to)}')`;
  return sql`case when ${value} ~ e'[\\\\\\\\\\x01-\\x1f]' then ${text} else ${value} end`;
}

interface CopiedTable {
  table: string;
  columns: readonly string[];
  /** Of the rows `f`. */
  fields: readonly Field[];
  from: RawBuilder<unknown>;
}

/** What every table needs of a day. */
function dayOf({ siteId, fromMinute, toMinute, verdictEpoch }: CopiedDay) {
  const within = (since: number, to = toMinute, column = 'minute') =>
    sql`site_id = ${sql.lit(siteId)} and ${sql.ref(column)} >= to_timestamp(${sql.lit(Math.max(since, fromMinute))})
      and ${sql.ref(column)} < to_timestamp(${sql.lit(Math.min(to, toMinute))})`;
  const from = (table: string, since = fromMinute) =>
    sql`from (select * from ${sql.table(table)} where ${within(since)}) f join captures c on c.id = f.capture_id`;
  return { within, from, judged: [textOf(sql`f.segment`), bit('is_foreign'), constant(verdictEpoch)] };
}

const placed = [
  ...[...same('site_id'), second('minute'), ...same('capture_id')],
  ...[sql`c.sensor_id::text`, textOf(sql`c.name`)],
];
const named = [
  ...[...same('vantage', 'direction'), textOf(sql`f.name`), ...same('protocol')],
  ...[sql`coalesce(f.server_port, -1)::text`, ...same('evidence'), bit('is_attributed')],
];

/** Every table of ClickHouse, that of captures' minutes last. */
const copiedTables = (day: CopiedDay): CopiedTable[] => [
  ...addressTables(day),
  ...peerTables(day),
  captureTable(day),
];

function addressTables(day: CopiedDay): CopiedTable[] {
  const { from, judged } = dayOf(day);
  return [
    {
      table: 'host_minutes',
      columns: [...[...place, 'address', ...verdict, 'device_key'], ...hostCounters, ...droppedCounters],
      fields: [
        ...[...placed, bytesOf(sql`f.address`), ...judged, textOf(sql`f.device_key`)],
        ...same(...hostCounters),
        ...droppedCounters.map((name): Field => sql`coalesce(f.${sql.ref(name)}, 0)::text`),
      ],
      from: from('host_minutes'),
    },
    {
      table: 'application_facts',
      columns: [
        ...[...place, 'local', ...verdict, ...service],
        ...['inbound_bytes', 'outbound_bytes', 'packets', 'last_sent_ms'],
      ],
      fields: [
        ...[...placed, bytesOf(sql`f.local_address`), ...judged, ...named],
        ...same('inbound_bytes', 'outbound_bytes', 'packets'),
        sql`coalesce(round(extract(epoch from f.last_sent_at) * 1000)::bigint, 0)::text`,
      ],
      from: from('application_facts'),
    },
    {
      table: 'endpoint_pairs',
      columns: [
        ...[...place, 'local', ...verdict, ...service, 'client', 'server'],
        ...['client_bytes', 'server_bytes', 'packets'],
      ],
      fields: [
        ...placed,
        bytesOf(sql`case f.direction when 4 then null when 2 then f.server else f.client end`),
        ...[...judged, ...named, bytesOf(sql`f.client`), bytesOf(sql`f.server`)],
        ...same('client_bytes', 'server_bytes', 'packets'),
      ],
      from: from('endpoint_pairs', day.pairsFrom),
    },
  ];
}

function peerTables(day: CopiedDay): CopiedTable[] {
  const { within, judged } = dayOf(day);
  return [
    {
      table: 'peer_minutes',
      columns: [
        ...[...place, 'local', ...verdict, 'vantage', 'direction', 'network'],
        ...['inbound_bytes', 'outbound_bytes', 'packets'],
      ],
      fields: [
        ...[
          ...placed,
          bytesOf(sql`f.local`),
          ...judged,
          ...same('vantage', 'direction'),
          bytesOf(sql`f.peer`),
        ],
        ...same('inbound_bytes', 'outbound_bytes', 'packets'),
      ],
      from: sql`from (${pairPeers(within(day.peersFrom))}
        union all select minute, site_id, capture_id, vantage, direction, local, segment, peer, inbound_bytes, outbound_bytes,
          packets, is_foreign from late_peer_minutes where ${within(day.fromMinute, day.peersFrom)}) f join captures c on c.id = f.capture_id`,
    },
    {
      // Hours of which there are neither pairs nor captures any more.
      table: 'peer_minutes',
      columns: [
        ...['site_id', 'minute', 'local', ...verdict, 'direction', 'network'],
        ...['inbound_bytes', 'outbound_bytes', 'packets', 'minutes'],
      ],
      fields: [
        ...[...same('site_id'), second('hour'), bytesOf(sql`f.local`), textOf(sql`f.segment`), constant(0)],
        ...[constant(day.verdictEpoch), ...same('direction'), bytesOf(sql`f.network::inet`)],
        ...same('inbound_bytes', 'outbound_bytes', 'packets', 'minutes'),
      ],
      from: sql`from (select * from peer_network_hours where ${within(day.fromMinute, day.peersFrom, 'hour')} and not is_late) f`,
    },
  ];
}

function captureTable(day: CopiedDay): CopiedTable {
  const { from } = dayOf(day);
  return {
    // No upload's, and older than any note of an upload: these minutes count as stored.
    table: 'capture_minutes',
    columns: [...place, 'vantage', 'observed_ms', ...captureTotals],
    fields: [...placed, ...same('vantage', 'observed_ms', ...captureTotals)],
    from: from('capture_minutes'),
  };
}

// Networks of peers of captures' minutes, made of exact pairs in PostgreSQL; `contract/sum-peers.ts` says the same of uploads.

const peer = sql`case direction when 2 then client else server end`;
const network = sql`host(network(set_masklen(${peer}, case family(${peer}) when 4 then ${sql.lit(peerLengths[4])} else ${sql.lit(peerLengths[6])} end)))::inet`;

/** Rows as `late_peer_minutes` has them. */
export function pairPeers(within: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`select minute, site_id, capture_id, vantage, direction, case direction when 2 then server else client end as local, segment,
      ${network} as peer, sum(case direction when 2 then client_bytes else server_bytes end) as inbound_bytes,
      sum(case direction when 2 then server_bytes else client_bytes end) as outbound_bytes, sum(packets) as packets, is_foreign
    from endpoint_pairs where direction in (1, 2) and ${within}
    group by minute, site_id, capture_id, vantage, direction, 6, segment, 8, is_foreign`;
}
