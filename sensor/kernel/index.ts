/**
 * Counting in the kernel, and dropping. Counting: a program at an interface's tc hooks that gives the engine's numbers by address for a tenth of the
 * ring's processor time, whether the ring is full or not. It knows no names.
 *
 * Dropping: a program at an uplink's XDP hook and one on the way out, which drop what the rules of attacks on and by this host's servers
 * match. The second one also learns which pairs of addresses converse.
 *
 * Loading and attaching need CAP_BPF and CAP_NET_ADMIN (`attach`); counters that are pinned are read without either.
 */
import { CodedError, describeError } from '#common/errors/index.ts';

export type { AttachedCounter } from './attachment.ts';
export type { DetectedAddresses, KernelMinute } from './counter.ts';
export type { AttachedFilter } from './filter.ts';
export { type FilterCounts, type FilterRule, noCounts } from './filter-layout.ts';
export type { SpoofedCounts } from './layout.ts';

/** Throws `kernel.no_library` where the library of calls can not be loaded (another architecture or libc). */
export const loadKernel = () => loaded(import('./attachment.ts'));
/** The same for the filter. */
export const loadFilter = () => loaded(import('./filter.ts'));

async function loaded<Module>(module: Promise<Module>): Promise<Module> {
  try {
    return await module;
  } catch (error) {
    const why = describeError(error).split('\n')[0]!;
    throw new CodedError('kernel.no_library', `The kernel’s programs can not be loaded: ${why}`);
  }
}
