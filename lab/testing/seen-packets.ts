/** What the sensor's decoder reads in frames: tests of the lab's own packets judge them by it. */
import { formatAddress } from '#common/ip/index.ts';
import { decodeFrame, LinkType } from '#sensor/capture/decode/decode-link.ts';
import { Packet, Verdict } from '#sensor/capture/decode/packet.ts';
import { openCaptureFile } from '#sensor/capture-files/index.ts';

export interface SeenPacket {
  version: number;
  source: string;
  target: string;
  protocol: number;
  ipLength: number;
  isFragment: boolean;
  fragmentOffset: number;
  hasMoreFragments: boolean;
  fragmentId: number;
  sourcePort: number;
  targetPort: number;
  tcpFlags: number;
  sequence: number;
  dataBytes: number;
  transportAt: number;
  /** The first byte after the IP header: the type of ICMP. */
  type: number;
}

/** Decodes Ethernet frames; throws at one that the sensor would drop or not count as IP. */
export function readFrames(frames: readonly Uint8Array[]): SeenPacket[] {
  const packet = new Packet();
  return frames.map((frame) => decode(packet, frame, 0, frame.length, frame.length));
}

/** Decodes a capture file of an Ethernet link. */
export function readCaptured(path: string): SeenPacket[] {
  const file = openCaptureFile(path);
  const packet = new Packet();
  const seen: SeenPacket[] = [];
  while (file.next())
    seen.push(decode(packet, file.bytes, file.offset, file.capturedLength, file.wireLength));
  file.close();
  return seen;
}

function decode(packet: Packet, bytes: Uint8Array, at: number, captured: number, wire: number): SeenPacket {
  packet.attach(bytes);
  packet.end = at + captured;
  packet.wireEnd = at + wire;
  if (decodeFrame(packet, LinkType.ethernet, at) !== Verdict.ip) throw new Error('no IP packet');
  const { version, protocol, ipLength, isFragment, fragmentOffset, hasMoreFragments, fragmentId } = packet;
  const { sourcePort, targetPort, tcpFlags, sequence, transportAt } = packet;
  return {
    ...{ version, protocol, ipLength, isFragment, fragmentOffset, hasMoreFragments, fragmentId },
    ...{ sourcePort, targetPort, tcpFlags, sequence, transportAt: transportAt - at },
    source: addressOf(version, [packet.source0, packet.source1, packet.source2, packet.source3]),
    target: addressOf(version, [packet.target0, packet.target1, packet.target2, packet.target3]),
    dataBytes: packet.dataEnd - packet.dataAt,
    type: bytes[transportAt]!,
  };
}

function addressOf(version: number, words: number[]): string {
  const bytes = Buffer.alloc(16);
  for (const [i, word] of words.entries()) bytes.writeInt32BE(word, 4 * i);
  return formatAddress(Uint8Array.from(version === 4 ? bytes.subarray(12) : bytes));
}
