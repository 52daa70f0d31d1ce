import type { FactStore, ViewRange } from '#monitor/facts/index.ts';

/** What has to be said beside a window of applications (NET-2.2.6). Ratios are null where there are no bytes. */
export interface CollectionNotices {
  /** Any parser loss makes the window partial; lost bytes are never estimated. */
  isPartial: boolean;
  /** Packets that were seen, of those that passed. */
  packetCoverage: number | null;
  /** Bytes named by evidence from the wire, by their port alone, and of addresses whose device is known. */
  domainRatio: number | null;
  portRatio: number | null;
  deviceRatio: number | null;
  packets: number;
  kernelDropped: number;
  parserDropped: number;
  detailTruncated: number;
}

/** The notices of a window, given what its applications added up to. */
export async function readNotices(
  facts: Pick<FactStore, 'sumCollection' | 'sumOwned'>,
  range: ViewRange,
  use: { bytes: number; domainBytes: number; portBytes: number },
): Promise<CollectionNotices> {
  const [collection, owned] = await Promise.all([facts.sumCollection(range), facts.sumOwned(range)]);
  const { packets, kernelDropped, parserDropped, detailTruncated } = collection;
  const ratio = (part: number, whole: number) => (whole > 0 ? part / whole : null);
  return {
    isPartial: parserDropped > 0,
    packetCoverage: ratio(packets, packets + kernelDropped),
    domainRatio: ratio(use.domainBytes, use.bytes),
    portRatio: ratio(use.portBytes, use.bytes),
    deviceRatio: ratio(owned.ownedBytes, owned.bytes),
    packets,
    kernelDropped,
    parserDropped,
    detailTruncated,
  };
}
