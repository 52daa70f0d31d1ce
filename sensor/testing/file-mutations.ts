/**
 * Capture files to break, and ways to break them: in lengths, types and times, at random positions, and in the
 * compressed data.
 */
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { pcapFile, pcapngFile, type StoredFrame } from './capture-files.ts';
import { join, u32 } from './frames.ts';
import { generatedSeeds, mutate } from './mutations.ts';

/** A valid file and its description. */
export interface SeedFile {
  format: string;
  bytes: Uint8Array;
}

const framesPerFile = 8;

/** Files of every supported format, with frames of every kind. */
export function seedFiles(random: () => number): SeedFile[] {
  const frames = generatedSeeds();
  const files: SeedFile[] = [];
  for (let i = 0; i < 24; i += 1) {
    const linkType = frames[Math.floor(random() * frames.length)]!.linkType;
    const fitting = frames.filter((frame) => frame.linkType === linkType);
    const stored: StoredFrame[] = Array.from({ length: framesPerFile }, (_, at) => ({
      bytes: fitting[Math.floor(random() * fitting.length)]!.bytes,
      seconds: 1_700_000_000 + at * 20,
      nanoseconds: Math.floor(random() * 1e9),
    }));
    for (const isLittle of [true, false]) {
      for (const isNano of [true, false]) {
        const name = `pcap, ${isLittle ? 'little' : 'big'}-endian, ${isNano ? 'nano' : 'micro'}seconds`;
        files.push({ format: name, bytes: pcapFile(stored, { isLittle, isNano, linkType }) });
      }
      const interfaces = [6, 9, 3].map((resolution) => ({ linkType, resolution }));
      const several = stored.map((frame, at) => ({ ...frame, interfaceIndex: at % interfaces.length }));
      files.push({
        format: `pcapng, ${isLittle ? 'little' : 'big'}-endian`,
        bytes: pcapngFile(several, { isLittle, interfaces }),
      });
    }
  }
  return files;
}

const interesting = [
  0, 1, 2, 3, 6, 8, 9, 11, 12, 14, 16, 28, 31, 32, 63, 64, 127, 128, 255, 256, 65_535, 65_536, 262_144,
  0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff, 0x0a0d0d0a, 0x1a2b3c4d, 0xa1b2c3d4,
];

/** One broken file. Some are compressed, before or after the damage. */
export function mutateFile(seeds: readonly SeedFile[], random: () => number): SeedFile {
  const below = (limit: number) => Math.floor(random() * limit);
  const seed = seeds[below(seeds.length)]!;
  const packing = random() < 0.02 ? (random() < 0.5 ? 'gzip' : 'zstd') : null;
  const isBrokenBefore = packing === null || random() < 0.5;
  let bytes = isBrokenBefore ? breakBytes(seed.bytes, seeds, below) : seed.bytes;
  if (packing === 'gzip') bytes = gzipSync(bytes);
  if (packing === 'zstd') bytes = zstdCompressSync(bytes);
  if (packing !== null && (!isBrokenBefore || random() < 0.3)) bytes = breakBytes(bytes, seeds, below);
  return { format: packing === null ? seed.format : `${seed.format}, ${packing}`, bytes };
}

function breakBytes(
  whole: Uint8Array,
  seeds: readonly SeedFile[],
  below: (limit: number) => number,
): Uint8Array {
  let bytes: Uint8Array = whole.slice();
  const times = 1 + below(5);
  for (let i = 0; i < times && bytes.length > 0; i += 1) {
    // Half of the damage is in the file's header and descriptions.
    const at = below(2) === 0 ? below(Math.min(bytes.length, 120)) : below(bytes.length);
    bytes = breakAt(bytes, at, seeds, below);
  }
  return bytes;
}

function breakAt(
  bytes: Uint8Array,
  at: number,
  seeds: readonly SeedFile[],
  below: (limit: number) => number,
): Uint8Array {
  switch (below(8)) {
    case 0:
      bytes[at]! ^= 1 << below(8);
      return bytes;
    case 1:
      bytes[at] = below(256);
      return bytes;
    case 2:
    case 3: {
      const word = u32(interesting[below(interesting.length)]!);
      bytes.set((below(2) === 0 ? word : word.toReversed()).slice(0, bytes.length - at), at);
      return bytes;
    }
    case 4:
      return bytes.slice(0, at);
    case 5:
      return join(bytes.subarray(0, at), bytes.subarray(Math.min(bytes.length, at + 1 + below(40))));
    case 6:
      return join(bytes.subarray(0, at), bytes.subarray(at, at + below(80)), bytes.subarray(at));
    default: {
      const other = seeds[below(seeds.length)]!.bytes;
      return join(bytes.subarray(0, at), other.subarray(below(other.length)));
    }
  }
}

/** A valid file with broken frames. */
export function fileOfBrokenFrames(random: () => number): SeedFile {
  const frames = generatedSeeds();
  const first = mutate(frames, random);
  const stored = Array.from({ length: framesPerFile }, (_, at) => {
    const { bytes } = at === 0 ? first : mutate(frames, random);
    return { bytes, seconds: 1_700_000_000 + at, nanoseconds: 0 };
  });
  return { format: 'pcap of broken frames', bytes: pcapFile(stored, { linkType: first.linkType }) };
}
