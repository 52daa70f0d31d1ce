/**
 * Capture files of attacks: what a sensor writes and a monitor believes.
 *
 * The file is a classic pcap file, little-endian with nanoseconds (magic a1b23c4d), so that every tool reads it. The reader
 * accepts exactly what the writer can make: anything else is `evidence.malformed`.
 */
import { CodedError } from '#common/errors/index.ts';

/** Of one file: whichever is reached first. */
export const evidencePacketsMax = 2000;
export const evidenceBytesMax = 8 * 1024 * 1024;
/** Of one packet. */
export const evidenceSnapBytes = 256;
/** Compressed, as it is sent. */
export const evidenceUploadBytesMax = 8 * 1024 * 1024;
export const evidenceContentType = 'application/vnd.tcpdump.pcap';
/** The code of a 409: the monitor does not know this incident of the sensor yet. */
export const incidentUnknownCode = 'incident_unknown';

export const evidenceHeaderBytes = 24;
export const evidenceRecordBytes = 16;
const magic = 0xa1b23c4d;

export interface EvidencePacket {
  /** Unix time. */
  seconds: number;
  nanoseconds: number;
  /** Bytes on the wire, at least those that are kept. */
  wireLength: number;
  bytes: Uint8Array;
}

export interface EvidenceCapture {
  /** Link type as numbered in capture files. */
  linkType: number;
  packets: EvidencePacket[];
}

/** The file of these packets, which stay within the bounds. */
export function encodeEvidence({ linkType, packets }: EvidenceCapture): Uint8Array {
  const size = packets.reduce(
    (sum, { bytes }) => sum + evidenceRecordBytes + bytes.length,
    evidenceHeaderBytes,
  );
  const file = new Uint8Array(size);
  const view = new DataView(file.buffer);
  view.setUint32(0, magic, true);
  view.setUint16(4, 2, true);
  view.setUint16(6, 4, true);
  view.setUint32(16, evidenceSnapBytes, true);
  view.setUint32(20, linkType, true);
  let at = evidenceHeaderBytes;
  for (const { seconds, nanoseconds, wireLength, bytes } of packets) {
    view.setUint32(at, seconds, true);
    view.setUint32(at + 4, nanoseconds, true);
    view.setUint32(at + 8, bytes.length, true);
    view.setUint32(at + 12, wireLength, true);
    file.set(bytes, at + evidenceRecordBytes);
    at += evidenceRecordBytes + bytes.length;
  }
  return file;
}

/** The packets of a file; their bytes are views of it. Throws `evidence.malformed`. */
export function decodeEvidence(file: Uint8Array): EvidenceCapture {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  if (file.length > evidenceBytesMax) throw malformed(`has more than ${evidenceBytesMax} bytes`);
  if (file.length < evidenceHeaderBytes) throw malformed('has no header');
  if (view.getUint32(0, true) !== magic) throw malformed('is no pcap file with nanoseconds');
  if (view.getUint16(4, true) !== 2 || view.getUint16(6, true) !== 4)
    throw malformed('has an unknown version');
  if (view.getUint32(16, true) !== evidenceSnapBytes)
    throw malformed(`does not say that packets are cut at ${evidenceSnapBytes} bytes`);
  const packets: EvidencePacket[] = [];
  for (let at = evidenceHeaderBytes; at < file.length; ) {
    if (packets.length === evidencePacketsMax) throw malformed(`has more than ${evidencePacketsMax} packets`);
    if (at + evidenceRecordBytes > file.length) throw malformed('ends within a record');
    const length = view.getUint32(at + 8, true);
    const packet = {
      seconds: view.getUint32(at, true),
      nanoseconds: view.getUint32(at + 4, true),
      wireLength: view.getUint32(at + 12, true),
      bytes: file.subarray(at + evidenceRecordBytes, at + evidenceRecordBytes + length),
    };
    if (length > evidenceSnapBytes || packet.bytes.length < length)
      throw malformed('has a packet that is too long');
    if (packet.wireLength < length || packet.nanoseconds > 999_999_999)
      throw malformed('has a packet that can not be');
    packets.push(packet);
    at += evidenceRecordBytes + length;
  }
  if (packets.length === 0) throw malformed('has no packets');
  return { linkType: view.getUint32(20, true), packets };
}

function malformed(what: string): CodedError {
  return new CodedError('evidence.malformed', `The capture file ${what}.`);
}
