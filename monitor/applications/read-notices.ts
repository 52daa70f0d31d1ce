import type { ExploredAmount, FactStore, SiteRange } from '#monitor/facts/index.ts';

/** Notices beside a list of applications (NET-2.2.6). Ratios are null without bytes. */
export interface CollectionNotices {
  /** Any parser loss makes the window partial; lost bytes are never estimated. */
  isPartial: boolean;
  /** Part of the packets that was captured. */
  packetCoverage: number | null;
  /** Parts of the bytes: named by evidence, named by port alone, and of addresses with a known device. */
  domainRatio: number | null;
  portRatio: number | null;
  deviceRatio: number | null;
  packets: number;
  kernelDropped: number;
  parserDropped: number;
  detailTruncated: number;
}

/** The notices of a window, from the sums of its applications. */
export async function readNotices(
  facts: Pick<FactStore, 'sumCollection' | 'explore'>,
  { siteId, fromMinute, toMinute }: SiteRange,
  use: { bytes: number; domainBytes: number; portBytes: number },
): Promise<CollectionNotices> {
  const range = { siteId, fromMinute, toMinute };
  const [collection, ofDevices] = await Promise.all([
    facts.sumCollection(range),
    facts.explore({
      ...{ ...range, source: 'addresses', filters: [], owners: [], networks: [], measure: 'bytes' },
      // What has no known device.
      ...{ by: ['device'], stepSeconds: null, order: 'size', rows: { keys: [[null]] } },
    }),
  ]);
  const bytesOf = (one?: ExploredAmount) => (one ? one.inBytes + one.outBytes : 0);
  const [bytes, unownedBytes] = [bytesOf(ofDevices.total), bytesOf(ofDevices.rows[0])];
  const { packets, kernelDropped, parserDropped, detailTruncated } = collection;
  const ratio = (part: number, whole: number) => (whole > 0 ? part / whole : null);
  return {
    isPartial: parserDropped > 0,
    packetCoverage: ratio(packets, packets + kernelDropped),
    domainRatio: ratio(use.domainBytes, use.bytes),
    portRatio: ratio(use.portBytes, use.bytes),
    deviceRatio: ratio(bytes - unownedBytes, bytes),
    packets,
    kernelDropped,
    parserDropped,
    detailTruncated,
  };
}
