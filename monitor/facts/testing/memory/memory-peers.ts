/** The rules of peer networks in plain memory. */
import { parseAddress, parsePrefix, prefixContains } from '#common/ip/index.ts';
import type * as facts from '../../contract/facts.ts';
import {
  firstAddressOf,
  hoursOf,
  type PeerList,
  type PeerOfNetwork,
  type PeerUse,
  peerNetworkOf,
} from '../../contract/peer-networks.ts';
import { type JudgedFact, judged } from './memory-applications.ts';
import type { MemoryRows } from './memory-rows.ts';
import { compare, compareAddresses, sumOf } from './memory-selection.ts';

const hourOf = (minute: number) => Math.floor(minute / 3600) * 3600;
const peerOf = (one: JudgedFact) => (one.direction === 'inbound' ? one.client : one.server);

/** What counts of the hours that the range touches. */
function exchanged(rows: MemoryRows, range: facts.SiteRange): JudgedFact[] {
  return judged(rows, { ...hoursOf(range), direction: null }).filter(
    (one) => one.owns && (one.direction === 'outbound' || one.direction === 'inbound'),
  );
}

function useOf(all: readonly JudgedFact[]): PeerUse {
  const directions = new Set(all.map((one) => one.direction));
  const hours = all.map((one) => hourOf(one.minute));
  return {
    network: peerNetworkOf(peerOf(all[0]!))!,
    inboundBytes: sumOf(all, (one) => one.inboundBytes),
    outboundBytes: sumOf(all, (one) => one.outboundBytes),
    packets: sumOf(all, (one) => one.packets),
    minutes: new Set(all.map((one) => one.minute)).size,
    openedBy: directions.size > 1 ? 'both' : directions.has('outbound') ? 'address' : 'network',
    firstHour: Math.min(...hours),
    lastHour: Math.max(...hours),
  };
}

function listOf<T extends PeerUse>(all: readonly T[], limit: number): PeerList<T> {
  return {
    items: all.slice(0, limit),
    total: all.length,
    inboundBytes: sumOf(all, (one) => one.inboundBytes),
    outboundBytes: sumOf(all, (one) => one.outboundBytes),
    packets: sumOf(all, (one) => one.packets),
  };
}

const bytesFirst = (a: PeerUse, b: PeerUse) =>
  b.inboundBytes + b.outboundBytes - a.inboundBytes - a.outboundBytes;
const networksInOrder = (a: PeerUse, b: PeerUse) =>
  compareAddresses(firstAddressOf(a.network.split('/')[0]!), firstAddressOf(b.network.split('/')[0]!));

export function listPeerNetworks(
  rows: MemoryRows,
  range: facts.AddressRange,
  limit: number,
): PeerList<PeerUse> {
  const own = exchanged(rows, range)
    .filter((one) => one.local === range.address)
    .filter((one) => range.segment === undefined || ['', range.segment].includes(one.segment));
  const all = [...Map.groupBy(own, (one) => firstAddressOf(peerOf(one))).values()].map(useOf);
  return listOf(
    all.sort((a, b) => bytesFirst(a, b) || networksInOrder(a, b)),
    limit,
  );
}

export function findPeers(
  rows: MemoryRows,
  range: facts.SiteRange & { prefix: string },
  limit: number,
): PeerList<PeerOfNetwork> {
  const prefix = parsePrefix(range.prefix)!;
  const found = exchanged(rows, range).filter((one) => prefixContains(prefix, parseAddress(peerOf(one))!));
  const keyOf = (one: JudgedFact) => `${one.local} ${one.segment} ${firstAddressOf(peerOf(one))}`;
  const all = [...Map.groupBy(found, keyOf).values()].map(
    (of): PeerOfNetwork => ({ address: of[0]!.local!, segment: of[0]!.segment, ...useOf(of) }),
  );
  return listOf(
    all.sort(
      (a, b) =>
        bytesFirst(a, b) ||
        compareAddresses(a.address, b.address) ||
        compare(a.segment, b.segment) ||
        networksInOrder(a, b),
    ),
    limit,
  );
}
