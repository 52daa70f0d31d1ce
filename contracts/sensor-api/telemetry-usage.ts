/**
 * Usage rows as columns: one list a field, texts once each (4.5 times faster to decode than repeated rows, a third
 * smaller). Column i of every list is row i.
 */
import { create } from '@bufbuild/protobuf';
import type { Slice, Sliced } from './decode-slices.ts';
import { isPlausible, looseCount, type SetAside } from './set-aside.ts';
import type { TelemetryUsageRow } from './telemetry.ts';
import { NameEvidence, type UsageColumns, UsageColumnsSchema, UsageDirection } from './telemetry_pb.js';
import {
  canonicalAddressText,
  checkColumns,
  cleanText,
  countOf,
  malformed,
  namesOf,
  plainText,
  textMax,
} from './telemetry-values.ts';

const directions = namesOf(UsageDirection);
const evidences = namesOf(NameEvidence);
/** Bytes of a segment without data: IP and TCP with the options of an opening, over IPv4. */
const tcpHeadersMax = 64;

/** The columns of these rows, of the minute that starts at `minuteMs` (unix milliseconds). */
export function encodeUsage(rows: readonly TelemetryUsageRow[], minuteMs: number): UsageColumns {
  const columns = create(UsageColumnsSchema);
  columns.sentMeansService = true;
  const indexes = new Map<string, number>();
  const indexOf = (text: string): number => {
    const clean = cleanText(text);
    const known = indexes.get(clean);
    if (known !== undefined) return known;
    indexes.set(clean, columns.texts.length);
    return columns.texts.push(clean) - 1;
  };
  const sentOffset = (ms: number) => (ms === 0 ? 0 : Math.min(Math.max(ms - minuteMs, 0), 59_999) + 1);
  for (const row of rows) {
    columns.client.push(indexOf(row.client));
    columns.server.push(indexOf(row.server));
    columns.name.push(indexOf(row.name));
    columns.protocol.push(row.protocol);
    columns.serverPortPlusOne.push(row.serverPort === null ? 0 : row.serverPort + 1);
    columns.direction.push(directions.toWire[row.direction]);
    columns.evidence.push(evidences.toWire[row.evidence]);
    columns.clientBytes.push(BigInt(row.clientBytes));
    columns.serverBytes.push(BigInt(row.serverBytes));
    columns.packets.push(BigInt(row.packets));
    columns.clientLastSent.push(sentOffset(Math.floor(row.clientLastSentMs)));
    columns.serverLastSent.push(sentOffset(Math.floor(row.serverLastSentMs)));
  }
  return columns;
}

/** Where rows go that can't be true, and how many of this minute did. */
export interface LeftOut {
  setAside: SetAside | null;
  hasMergedFrames: boolean;
  rows: number;
}

/** Elements of a row, one a column. */
const rowElements = 12;
/** Rows, or texts, between two looks at the slice. */
const rowsAtOnce = 256;

/** The rows of these columns. Throws `telemetry.malformed`. */
export function* decodeUsage(
  columns: UsageColumns,
  minuteMs: number,
  slice: Slice,
  leftOut: LeftOut,
): Sliced<TelemetryUsageRow[]> {
  const length = columns.client.length;
  if (columns.texts.length > 3 * length) throw malformed('usage.texts holds more texts than rows can name');
  const { texts, ...others } = columns;
  checkColumns('usage', length, Object.values(others).filter(Array.isArray));
  for (let i = 0; i < texts.length; i += 1) {
    if (i % rowsAtOnce === 0) {
      if (slice.isFullFor(rowsAtOnce)) yield slice.end();
      slice.add(Math.min(rowsAtOnce, texts.length - i));
    }
    plainText(texts[i]!, textMax, 'usage.texts');
  }
  const textAt = (index: number): string => {
    const text = texts[index];
    if (text === undefined) throw malformed('usage names a text that is not there');
    return text;
  };
  const addresses = new Map<number, string>();
  const addressAt = (index: number): string => {
    const known = addresses.get(index);
    if (known !== undefined) return known;
    const address = canonicalAddressText(textAt(index), 'an address of usage');
    addresses.set(index, address);
    return address;
  };
  const rows: TelemetryUsageRow[] = [];
  for (let i = 0; i < length; i += 1) {
    if (i % rowsAtOnce === 0) {
      if (slice.isFullFor(rowsAtOnce * rowElements)) yield slice.end();
      slice.add(Math.min(rowsAtOnce, length - i) * rowElements);
    }
    if (leftOut.setAside && !isRowPlausible(columns, i, leftOut.hasMergedFrames)) {
      leftOut.setAside.usageRows += 1;
      leftOut.rows += 1;
      continue;
    }
    const portPlusOne = columns.serverPortPlusOne[i]!;
    if (portPlusOne > 65_536) throw malformed('a port of usage is over 65535');
    const protocol = columns.protocol[i]!;
    if (protocol > 255) throw malformed('a protocol of usage is over 255');
    const row: TelemetryUsageRow = {
      client: addressAt(columns.client[i]!),
      server: addressAt(columns.server[i]!),
      protocol,
      serverPort: portPlusOne === 0 ? null : portPlusOne - 1,
      direction: known(directions.fromWire, columns.direction[i]!, 'direction'),
      name: textAt(columns.name[i]!),
      evidence: known(evidences.fromWire, columns.evidence[i]!, 'evidence'),
      clientBytes: countOf(columns.clientBytes[i]!, 'usage.client_bytes'),
      serverBytes: countOf(columns.serverBytes[i]!, 'usage.server_bytes'),
      packets: countOf(columns.packets[i]!, 'usage.packets'),
      clientLastSentMs: sentMs(columns.clientLastSent[i]!, minuteMs),
      serverLastSentMs: sentMs(columns.serverLastSent[i]!, minuteMs),
    };
    if (!columns.sentMeansService && isRefusal(row)) row.clientLastSentMs = row.serverLastSentMs = 0;
    rows.push(row);
  }
  return rows;
}

function isRowPlausible(columns: UsageColumns, i: number, hasMergedFrames: boolean): boolean {
  const bytes = [looseCount(columns.clientBytes[i]!), looseCount(columns.serverBytes[i]!)] as const;
  return isPlausible(bytes, looseCount(columns.packets[i]!), hasMergedFrames);
}

/**
 * What an older sensor calls sent may be a reset or an ICMP error. Nothing but headers in a row of TCP, and ICMP in one
 * direction only, is taken for that (NET-2.4.4).
 */
function isRefusal({ protocol, clientBytes, serverBytes, packets }: TelemetryUsageRow): boolean {
  if (protocol === 6) return clientBytes + serverBytes <= packets * tcpHeadersMax;
  return (protocol === 1 || protocol === 58) && (clientBytes === 0 || serverBytes === 0);
}

function sentMs(offsetPlusOne: number, minuteMs: number): number {
  if (offsetPlusOne > 60_000) throw malformed('a last sending of usage lies outside its minute');
  return offsetPlusOne === 0 ? 0 : minuteMs + offsetPlusOne - 1;
}

function known<T>(table: ReadonlyMap<number, T>, value: number, field: string): T {
  const found = table.get(value);
  if (found === undefined) throw malformed(`a ${field} of usage is unknown`);
  return found;
}
