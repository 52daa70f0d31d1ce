/**
 * Small readers of bytes as they travel on networks and lie in files. No allocation, no bounds checks of their own:
 * callers compare with the end first, and a read past the end of a `Uint8Array` counts as zero bits.
 */

/** Unsigned 16 bits, most significant byte first. */
export function readUint16(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!;
}

/** 32 bits, most significant byte first, as a signed number: compare and mix it, don't print it. */
export function readInt32(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
}

/** Unsigned 32 bits, most significant byte first. */
export function readUint32(bytes: Uint8Array, at: number): number {
  return readInt32(bytes, at) >>> 0;
}

/** True when `bytes` holds the ASCII text at `at`, whole and before `end`; letters compare without case. */
export function matchesText(bytes: Uint8Array, at: number, end: number, lowerCaseText: string): boolean {
  if (at + lowerCaseText.length > end) return false;
  for (let i = 0; i < lowerCaseText.length; i += 1) {
    if (lowerCaseByte(bytes[at + i]!) !== lowerCaseText.charCodeAt(i)) return false;
  }
  return true;
}

/** An ASCII capital as its small letter; any other byte unchanged. */
export function lowerCaseByte(byte: number): number {
  return byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte;
}

/** Index of the first `byte` in [`from`, `end`), or -1. */
export function findByte(bytes: Uint8Array, byte: number, from: number, end: number): number {
  for (let at = from; at < end; at += 1) if (bytes[at] === byte) return at;
  return -1;
}
