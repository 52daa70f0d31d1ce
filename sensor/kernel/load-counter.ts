/** Loads the counting program of this folder into the kernel. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { KernelCounter } from './counter.ts';
import { hostBytes, type MapName, mapNames } from './layout.ts';
import { libbpf, must, openObject } from './libbpf.ts';

/** Compiled by `tools/compile-kernel.ts`; the same bytes serve amd64 and arm64, which are both little endian. */
export const objectFile = fileURLToPath(new URL('./counter.bpf.o', import.meta.url));
/** Memory of the addresses: processors × addresses × 320 bytes, and at least this number of addresses. */
const hostsBytesMax = 64 * 1024 * 1024;
const hostsMin = 8192;
const hostsMax = 16_384;

export interface LoadedCounter {
  counter: KernelCounter;
  programFd: number;
  /** Addresses that have room. */
  hostsMax: number;
  /** The maps are closed by the counter; the program is gone unless it is attached. */
  unload(): void;
}

/** Addresses that have room on a machine with so many processors. */
function roomForHosts(cpus: number): number {
  return Math.min(hostsMax, Math.max(hostsMin, Math.floor(hostsBytesMax / (cpus * hostBytes))));
}

/**
 * Loads the program; `pinFolder`: the maps are taken from there, or pinned there. Throws a `CodedError` (`kernel.…`) with what
 * is missing. `file`: another object, for tests.
 */
export function loadCounter(pinFolder: string | null, isEthernet: boolean, file = objectFile): LoadedCounter {
  const bpf = libbpf();
  const object = openObject(readFileSync(file));
  try {
    const room = roomForHosts(bpf.cpus());
    const findMap = (name: MapName): unknown => bpf.findMap(object.handle, name);
    for (const name of ['hosts', 'vacant', 'names'] as const)
      must(bpf.setMaxEntries(findMap(name), room), 'make room for addresses');
    must(bpf.setMaxEntries(findMap('counters'), room * bpf.cpus()), 'make room for addresses');
    if (pinFolder !== null)
      for (const name of mapNames) must(bpf.setPinPath(findMap(name), `${pinFolder}/${name}`), `pin ${name}`);
    object.load();
    const maps = Object.fromEntries(mapNames.map((name) => [name, bpf.mapFd(findMap(name)) as number]));
    const counter = new KernelCounter(maps as Record<MapName, number>);
    counter.prepare(isEthernet, room);
    const programFd: number = bpf.programFd(bpf.findProgram(object.handle, 'count'));
    return { counter, programFd, hostsMax: room, unload: () => object.close() };
  } catch (error) {
    object.close();
    throw error;
  }
}
