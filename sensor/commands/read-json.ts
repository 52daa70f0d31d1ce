/**
 * The JSON of `sensor read --json`. Fields are part of what programs rely on: add, never rename.
 */
import type { ListedFlow, ReadingResult, UsageRow } from '#sensor/capture/index.ts';

const rowsPerPiece = 500;

export interface InstantOfFrame {
  seconds: number;
  nanoseconds: number;
}

/** What the file says of itself. Times are the earliest and the latest, null without packets. */
export interface FileFacts {
  linkType: number | null;
  firstAt: InstantOfFrame | null;
  lastAt: InstantOfFrame | null;
  /** Packets that were stored cut, and the longest of those. */
  cutFrames: number;
  snapLength: number;
}

/** What was counted in one UTC minute, unix seconds. */
export interface MinuteTotals {
  minute: number;
  packets: number;
  bytes: number;
  parserDropped: number;
}

export interface Application {
  name: string;
  transport: string;
  server_port: number | null;
  inbound_bytes: number;
  outbound_bytes: number;
}

/** The document in pieces, one row a line: a large file's would not fit into one string. */
export function* renderJson(
  facts: FileFacts,
  result: ReadingResult,
  minutes: readonly MinuteTotals[] | null,
): Generator<string> {
  const { totals } = result;
  const capture = {
    packets: totals.packets,
    bytes: totals.ipBytes,
    ip_packets: totals.ipPackets,
    non_ip: totals.nonIpPackets,
    parser_dropped: totals.parserDropped,
    first_at: formatInstant(facts.firstAt),
    last_at: formatInstant(facts.lastAt),
    link_type: facts.linkType,
  };
  yield `{\n"capture": ${JSON.stringify(capture)}`;
  yield* renderRows('flows', result.flows, toFlow);
  yield* renderRows('dns', result.answers, (answer) => ({
    client: answer.client,
    server: answer.server,
    name: answer.name,
    cname_chain: answer.cnameChain,
    addresses: answer.addresses,
    query_seen: answer.querySeen,
  }));
  yield* renderRows('hosts', result.hosts, (host) => ({
    ip: host.address,
    rx_bytes: host.rxBytes,
    tx_bytes: host.txBytes,
    packets: host.packets,
  }));
  yield* renderRows('conversations', result.conversations, (pair) => ({
    a: pair.a,
    b: pair.b,
    packets_a_to_b: pair.packetsAToB,
    bytes_a_to_b: pair.bytesAToB,
    packets_b_to_a: pair.packetsBToA,
    bytes_b_to_a: pair.bytesBToA,
  }));
  yield* renderRows('applications', sumApplications(result.usage), (application) => application);
  if (minutes)
    yield* renderRows('minutes', minutes, (one) => ({
      minute: new Date(one.minute * 1000).toISOString().replace('.000Z', 'Z'),
      packets: one.packets,
      bytes: one.bytes,
      parser_dropped: one.parserDropped,
    }));
  yield '\n}\n';
}

function* renderRows<T>(name: string, rows: readonly T[], toJson: (row: T) => object): Generator<string> {
  yield `,\n"${name}": [`;
  for (let from = 0; from < rows.length; from += rowsPerPiece) {
    const piece = rows.slice(from, from + rowsPerPiece).map((row) => JSON.stringify(toJson(row)));
    yield `${from === 0 ? '' : ','}\n  ${piece.join(',\n  ')}`;
  }
  yield rows.length === 0 ? ']' : '\n]';
}

function toFlow(flow: ListedFlow) {
  return {
    transport: transportName(flow.protocol),
    client: flow.client,
    server: flow.server,
    host: flow.host,
    name: flow.name,
    evidence: flow.evidence,
    tunnel: flow.tunnel,
    client_packets: flow.clientPackets,
    client_bytes: flow.clientBytes,
    server_packets: flow.serverPackets,
    server_bytes: flow.serverBytes,
  };
}

/** Rows of one name, transport and port added up, the largest first. Inbound is towards the local end, or the client. */
export function sumApplications(usage: readonly UsageRow[]): Application[] {
  const applications = new Map<string, Application>();
  for (const row of usage) {
    const transport = transportName(row.protocol);
    const key = `${row.name} ${transport} ${row.serverPort}`;
    let application = applications.get(key);
    if (!application) {
      application = {
        name: row.name,
        transport,
        server_port: row.serverPort,
        inbound_bytes: 0,
        outbound_bytes: 0,
      };
      applications.set(key, application);
    }
    const isServed = row.direction === 'inbound';
    application.inbound_bytes += isServed ? row.clientBytes : row.serverBytes;
    application.outbound_bytes += isServed ? row.serverBytes : row.clientBytes;
  }
  const bytes = (one: Application) => one.inbound_bytes + one.outbound_bytes;
  return [...applications.values()].sort((a, b) => bytes(b) - bytes(a));
}

const transports = new Map([
  [1, 'icmp'],
  [2, 'igmp'],
  [4, 'ipip'],
  [6, 'tcp'],
  [17, 'udp'],
  [41, 'ipv6'],
  [47, 'gre'],
  [50, 'esp'],
  [51, 'ah'],
  [58, 'icmpv6'],
  [89, 'ospf'],
  [132, 'sctp'],
]);

/** Name of an IP protocol; `ip-` and its number where it has none here. */
export function transportName(protocol: number): string {
  return transports.get(protocol) ?? `ip-${protocol}`;
}

/** Number of an IP protocol of that name, or null. */
export function protocolNumber(name: string): number | null {
  for (const [number, known] of transports) if (known === name) return number;
  return null;
}

/** RFC 3339 in UTC, microseconds, or nanoseconds where there are any. */
export function formatInstant(instant: InstantOfFrame | null): string | null {
  if (!instant) return null;
  const date = new Date(instant.seconds * 1000);
  if (Number.isNaN(date.getTime())) return null;
  const digits = String(instant.nanoseconds).padStart(9, '0');
  const fraction = digits.endsWith('000') ? digits.slice(0, 6) : digits;
  return `${date.toISOString().slice(0, -5)}.${fraction}Z`;
}
