/**
 * Networks that local addresses talked to, for three months: a /24 of IPv4 or a /48 of IPv6, bytes and packets by the hour.
 *
 * They answer complaints that come weeks later: who exchanged something with a network in an hour. Remote addresses and
 * services are not in them. The AS and the country come from a file of the operator's at the time of reading, and are absent
 * without one; nothing of them is stored. Nothing of this leaves the monitor: no feed reads it.
 */

import { canonicalAddress, formatPrefix, parseAddress, parsePrefix } from '#common/ip/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import {
  type FactStore,
  type PeerList,
  type PeerOfNetwork,
  type PeerUse,
  peerLengths,
  peerNetworkOf,
} from '#monitor/facts/index.ts';
import { type AddressServer, listServersOfAddresses } from '#monitor/views/address-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { createNetworkFiles, type NetworkRecord } from './network-file.ts';

export type { NetworkRecord } from './network-file.ts';

/** Milliseconds since 1970; hours that the range touches count as a whole. */
export interface PeerRange {
  fromMs: number;
  toMs: number;
}

export type PeerNetwork = PeerUse & NetworkRecord;

/** An address that talked to a network, and the servers that had the address at that time. */
export interface PeerHit extends PeerOfNetwork, NetworkRecord {
  servers: AddressServer[];
}

export function createPeers({
  db,
  facts,
  networkFiles,
  reporter,
}: {
  db: () => Queryable;
  facts: Pick<FactStore, 'listPeerNetworks' | 'findPeers'>;
  /** Paths of files in MaxMind's format; empty: networks have neither AS nor country. */
  networkFiles: readonly string[];
  reporter: Reporter;
}) {
  const files = createNetworkFiles(networkFiles, reporter);
  const describeList = async <T extends PeerUse>(list: PeerList<T>) => {
    const records = await files.describe(list.items.map(({ network }) => network.split('/')[0]!));
    return { ...list, items: list.items.map((item, i) => ({ ...item, ...records[i]! })) };
  };
  const minutes = ({ fromMs, toMs }: PeerRange) => ({ fromMinute: fromMs / 1000, toMinute: toMs / 1000 });
  return {
    /** AS and country of addresses, in their order; null: no file of networks is set. */
    describe: networkFiles.length === 0 ? null : (addresses: readonly string[]) => files.describe(addresses),
    /** Networks that a local address talked to, by bytes, largest first. The segment is for an address that is not unique. */
    async listNetworks(
      siteId: number,
      { address, segment }: { address: string; segment: string },
      range: PeerRange,
      limit: number,
    ): Promise<PeerList<PeerNetwork>> {
      const place = segment === '' ? { address } : { address, segment };
      return describeList(await facts.listPeerNetworks({ siteId, ...place, ...minutes(range) }, limit));
    },
    /** Who talked to networks within this prefix, by bytes, largest first; the prefix is one of `readNetwork`. */
    async findPeers(
      siteId: number,
      prefix: string,
      range: PeerRange,
      limit: number,
    ): Promise<PeerList<PeerHit>> {
      const list = await facts.findPeers({ siteId, prefix, ...minutes(range) }, limit);
      const found = await describeList(list);
      const servers = await listServersOfAddresses(
        db(),
        siteId,
        found.items.map(({ address, segment, firstHour, lastHour }) => ({
          address,
          segment,
          from: firstHour,
          to: lastHour + 3600,
        })),
      );
      return { ...found, items: found.items.map((item, i) => ({ ...item, servers: servers[i]! })) };
    },
    /** Why a file of networks is not read, as a sentence; null: none is set, or all are read. */
    fileFault: () => files.fault(),
    /** The files are looked at again on the next read, not up to a minute later. */
    forgetFiles: () => files.forget(),
  };
}

export interface AskedNetwork {
  /** Canonical text; a whole kept network or several. */
  prefix: string;
  /** An address or a part of a kept network was typed, and the answer is of the whole network. */
  isWidened: boolean;
}

/** An address, or a network in CIDR notation with or without host bits; null where the text is neither. */
export function readNetwork(text: string): AskedNetwork | null {
  const [first = '', lengthText, ...more] = text.trim().split('/');
  const bytes = parseAddress(first);
  if (!bytes || canonicalAddress(first) === null || more.length > 0) return null;
  const network = peerNetworkOf(first)!;
  if (lengthText === undefined) return { prefix: network, isWidened: true };
  if (!/^(0|[1-9]\d{0,2})$/.test(lengthText) || Number(lengthText) > bytes.length * 8) return null;
  const length = Number(lengthText);
  const kept = bytes.length === 4 ? peerLengths[4] : peerLengths[6];
  if (length > kept) return { prefix: network, isWidened: true };
  const masked = bytes.map((byte, i) => byte & (0xff00 >> Math.min(8, Math.max(0, length - i * 8))));
  const prefix = formatPrefix({ bytes: masked, length });
  return parsePrefix(prefix) === null ? null : { prefix, isWidened: false };
}
