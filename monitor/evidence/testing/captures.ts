/** Capture files as sensors send them, for tests. */
import { zstdCompressSync } from 'node:zlib';
import { type EvidencePacket, encodeEvidence } from '#contracts/sensor-api/evidence.ts';

/** An IPv4 SYN from 203.0.113.`n` to 198.51.100.7:443 by Ethernet. */
export function synFrame(n: number): Uint8Array {
  const frame = Buffer.alloc(54);
  frame.writeUInt16BE(0x0800, 12);
  frame[14] = 0x45;
  frame[23] = 6;
  frame.set([203, 0, 113, n], 26);
  frame.set([198, 51, 100, 7], 30);
  frame.writeUInt16BE(40_000 + n, 34);
  frame.writeUInt16BE(443, 36);
  frame[46] = 0x50;
  frame[47] = 0x02;
  return frame;
}

export function evidencePacket(bytes: Uint8Array, atMs: number): EvidencePacket {
  const seconds = Math.floor(atMs / 1000);
  return { seconds, nanoseconds: (atMs - seconds * 1000) * 1e6 + 1000, wireLength: bytes.length, bytes };
}

/** The body of an upload: so many SYNs, a millisecond apart. */
export function evidenceBody(fromMs: number, packets = 3, linkType = 1): Uint8Array {
  const of = Array.from({ length: packets }, (_, i) => evidencePacket(synFrame((i % 250) + 1), fromMs + i));
  return zstdCompressSync(encodeEvidence({ linkType, packets: of }));
}
