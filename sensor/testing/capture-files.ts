/**
 * Writes capture files for tests: pcap and pcapng of either byte order and any time resolution.
 */
import { join, joinAll } from './frames.ts';

export interface StoredFrame {
  bytes: Uint8Array;
  seconds: number;
  nanoseconds: number;
  /** Length on the wire if it exceeds the stored length. */
  wireLength?: number;
  /** Index of the interface, pcapng only. */
  interfaceIndex?: number;
  /** Kept without a time, in a simple packet block; pcapng only. */
  hasNoTime?: boolean;
}

type Put = (value: number, size: 2 | 4) => number[];

function order(isLittle: boolean): Put {
  return (value, size) => {
    const bytes = [value >>> 24, value >>> 16, value >>> 8, value].map((byte) => byte & 255).slice(4 - size);
    return isLittle ? bytes.reverse() : bytes;
  };
}

/** A pcap file. */
export function pcapFile(
  frames: readonly StoredFrame[],
  options: { isLittle?: boolean; isNano?: boolean; linkType?: number } = {},
): Uint8Array {
  const put = order(options.isLittle ?? true);
  const isNano = options.isNano ?? false;
  const header = [
    ...put(isNano ? 0xa1b23c4d : 0xa1b2c3d4, 4),
    ...put(2, 2),
    ...put(4, 2),
    ...put(0, 4),
    ...put(0, 4),
    ...put(262_144, 4),
    ...put(options.linkType ?? 1, 4),
  ];
  const records = frames.map((frame) =>
    join(
      put(frame.seconds, 4),
      put(isNano ? frame.nanoseconds : Math.floor(frame.nanoseconds / 1000), 4),
      put(frame.bytes.length, 4),
      put(frame.wireLength ?? frame.bytes.length, 4),
      frame.bytes,
    ),
  );
  return joinAll([header, ...records]);
}

/** A pcapng file with these interfaces; `resolution` is the power of ten of its time units. */
export function pcapngFile(
  frames: readonly StoredFrame[],
  options: { isLittle?: boolean; interfaces?: { linkType: number; resolution?: number }[] } = {},
): Uint8Array {
  const put = order(options.isLittle ?? true);
  const interfaces = options.interfaces ?? [{ linkType: 1 }];
  const block = (type: number, body: Uint8Array) => {
    const padded = join(body, new Uint8Array((4 - (body.length % 4)) % 4));
    return join(put(type, 4), put(padded.length + 12, 4), padded, put(padded.length + 12, 4));
  };
  const section = join(put(0x1a2b3c4d, 4), put(1, 2), put(0, 2), put(0xffffffff, 4), put(0xffffffff, 4));
  const described = interfaces.map(({ linkType, resolution }) => {
    const option =
      resolution === undefined ? [] : [...put(9, 2), ...put(1, 2), resolution, 0, 0, 0, ...put(0, 4)];
    return block(1, join(put(linkType, 2), put(0, 2), put(0, 4), option));
  });
  const packets = frames.map((frame) => {
    // A simple packet block.
    if (frame.hasNoTime) return block(3, join(put(frame.bytes.length, 4), frame.bytes));
    const index = frame.interfaceIndex ?? 0;
    const perSecond = 10n ** BigInt(interfaces[index]!.resolution ?? 6);
    const units =
      BigInt(frame.seconds) * perSecond + (BigInt(frame.nanoseconds) * perSecond) / 1_000_000_000n;
    const high = Number(units >> 32n);
    const low = Number(units & 0xffffffffn);
    const sizes = [...put(frame.bytes.length, 4), ...put(frame.wireLength ?? frame.bytes.length, 4)];
    return block(6, join(put(index, 4), put(high, 4), put(low, 4), sizes, frame.bytes));
  });
  return join(block(0x0a0d0d0a, section), ...described, ...packets);
}
