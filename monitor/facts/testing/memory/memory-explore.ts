/** Sums over any filters and dimensions, in plain memory. */
import {
  type Exploration,
  type Explored,
  type ExploredAmount,
  type ExploredDimension,
  type ExploredFilter,
  isAmong,
  placeText,
  splitPlaces,
} from '../../contract/exploration.ts';
import { judged, ownersOf } from './memory-applications.ts';
import type { MemoryRows } from './memory-rows.ts';
import { nullsLast, stepOf, strongest, sumOf, within } from './memory-selection.ts';

/** One fact that counts, with what every dimension says of it. */
interface Piece {
  minute: number;
  local: string | null;
  segment: string;
  peer: string | null;
  values: Record<
    Exclude<ExploredDimension, 'server' | 'customer' | 'address' | 'peer' | 'country' | 'as'>,
    string | null
  >;
  inBytes: number;
  outBytes: number;
  packets: number;
  /** The part that own scans are: bytes of both directions, and packets. */
  ownScan: { bytes: number; packets: number };
}

function addressPieces(rows: MemoryRows, range: Exploration): Piece[] {
  return strongest(rows, range).map((one) => ({
    minute: one.minute,
    local: one.address,
    segment: one.segment,
    peer: null,
    values: {
      device: one.deviceKey || null,
      sensor: String(one.capture.sensorId),
      scope: one.capture.vantage === 1 ? 'uplink' : 'bridge',
      ...{ application: null, port: null, transport: null, direction: null },
    },
    inBytes: one.rxBytes,
    outBytes: one.txBytes,
    packets: one.packets,
    ownScan: { bytes: one.ownScan.rxBytes + one.ownScan.txBytes, packets: one.ownScan.packets },
  }));
}

function usagePieces(rows: MemoryRows, range: Exploration): Piece[] {
  const ownerOf = ownersOf(rows, range);
  return judged(rows, { ...range, direction: null })
    .filter((one) => one.owns && (range.source === 'applications' || rows.isYoung(one.minute)))
    .map((one) => ({
      minute: one.minute,
      local: one.local,
      segment: one.segment,
      peer: range.source === 'pairs' ? (one.direction === 'inbound' ? one.client : one.server) : null,
      values: {
        device: ownerOf(one),
        sensor: String(one.capture.sensorId),
        scope: one.vantage === 1 ? 'uplink' : 'bridge',
        application: one.name,
        port: one.serverPort === null ? 'none' : String(one.serverPort),
        transport: String(one.protocol),
        direction: one.direction,
      },
      inBytes: one.inboundBytes,
      outBytes: one.outboundBytes,
      packets: one.packets,
      ownScan: { bytes: 0, packets: 0 },
    }));
}

function isKept(filter: ExploredFilter, piece: Piece): boolean {
  const { dimension, values } = filter;
  if (dimension === 'address' || dimension === 'peer') {
    const [address, segment] = dimension === 'address' ? [piece.local, piece.segment] : [piece.peer, ''];
    return filter.is === (address !== null && isAmong(splitPlaces(values), address, segment));
  }
  const value = piece.values[dimension];
  const isOfTransport = dimension === 'port' && values.includes(`${piece.values.transport}/${value}`);
  return filter.is === (value !== null && (values.includes(value) || isOfTransport));
}

function valueIn(
  dimension: ExploredDimension,
  piece: Piece,
  { owners, networks }: Pick<Exploration, 'owners' | 'networks'>,
): string | null {
  switch (dimension) {
    case 'address':
      return piece.local === null ? null : placeText(piece.local, piece.segment);
    case 'peer':
      return piece.peer;
    case 'server':
    case 'customer': {
      const ofAddress = owners.filter((one) => one.address === piece.local);
      const owner =
        ofAddress.find((one) => one.segment === piece.segment) ?? ofAddress.find((one) => one.segment === '');
      return owner?.[dimension] ?? null;
    }
    case 'country':
    case 'as':
      return networks.find((one) => one.peer === piece.peer)?.[dimension] ?? null;
    default:
      return piece.values[dimension];
  }
}

export function explore(rows: MemoryRows, asked: Exploration): Explored {
  const { by, measure, order, stepSeconds } = asked;
  const all = asked.source === 'addresses' ? addressPieces(rows, asked) : usagePieces(rows, asked);
  const pieces = all.filter((one) => asked.filters.every((filter) => isKept(filter, one)));
  const amountOf = (of: readonly Piece[]): ExploredAmount => ({
    inBytes: sumOf(of, (one) => one.inBytes),
    outBytes: sumOf(of, (one) => one.outBytes),
    packets: measure === 'packets' ? sumOf(of, (one) => one.packets) : null,
  });
  const size = (one: ExploredAmount) =>
    order === 'in'
      ? one.inBytes
      : order === 'out'
        ? one.outBytes
        : (one.packets ?? one.inBytes + one.outBytes);
  const keyOf = (one: Piece) => JSON.stringify(by.map((dimension) => valueIn(dimension, one, asked)));
  const groups = by.length === 0 ? new Map<string, Piece[]>() : Map.groupBy(pieces, keyOf);
  const ranked = [...groups]
    .map(([text, of]) => ({ key: JSON.parse(text) as (string | null)[], of, ...amountOf(of) }))
    .sort(
      (a, b) =>
        size(b) - size(a) || nullsLast(a.key[0]!, b.key[0]!) || nullsLast(a.key[1] ?? null, b.key[1] ?? null),
    );
  const wanted =
    'limit' in asked.rows
      ? ranked.slice(0, asked.rows.limit)
      : ranked.filter((one) =>
          new Set((asked.rows as { keys: unknown[] }).keys.map(textOf)).has(textOf(one.key)),
        );
  const stepsOf = (of: readonly Piece[], row: number | null) =>
    stepSeconds === null
      ? []
      : [...Map.groupBy(of, (one) => stepOf(one.minute, stepSeconds))]
          .map(([timeMs, inStep]) => ({ timeMs, row, ...amountOf(inStep) }))
          .sort((a, b) => a.timeMs - b.timeMs);
  return {
    rows: wanted.map(({ of: _, ...row }) => row),
    groups: ranked.length,
    total: amountOf(pieces),
    ownScans: asked.source === 'addresses' ? sumOf(pieces, ({ ownScan }) => ownScan[measure]) : null,
    steps: [...stepsOf(pieces, null), ...wanted.flatMap(({ of }, row) => stepsOf(of, row))],
    observed: stepSeconds === null ? [] : observed(rows, asked, stepSeconds),
    grains: [],
  };
}

const textOf = (key: unknown) => JSON.stringify(key);

/** Minutes with a capture that could see what the filters name: of these sensors and scopes, and for addresses one that ever saw them. */
function observed(rows: MemoryRows, asked: Exploration, stepSeconds: number): Explored['observed'] {
  const places = asked.filters
    .filter((one) => one.dimension === 'address' && one.is)
    .map((one) => splitPlaces(one.values));
  const from = asked.fromMinute - (places.length > 0 ? 86_400 : 0);
  const seen = rows.hosts(asked.siteId).filter(within({ ...asked, fromMinute: from }));
  const saw = (captureId: number) =>
    seen.some(
      (one) =>
        one.capture.captureId === captureId &&
        places.every((all) => [...one.segments, ''].some((segment) => isAmong(all, one.address, segment))),
    );
  const listening = rows
    .captures(asked.siteId)
    .filter(within(asked))
    .filter((one) =>
      asked.filters.every(({ dimension, is, values }) => {
        if (dimension === 'sensor') return is === values.includes(String(one.sensorId));
        if (dimension === 'scope') return is === values.includes(one.vantage === 1 ? 'uplink' : 'bridge');
        return true;
      }),
    )
    .filter((one) => places.length === 0 || saw(one.captureId));
  return [...Map.groupBy(listening, (one) => stepOf(one.minute, stepSeconds))]
    .map(([timeMs, of]) => ({ timeMs, minutes: new Set(of.map((one) => one.minute)).size }))
    .sort((a, b) => a.timeMs - b.timeMs);
}
