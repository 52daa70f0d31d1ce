/**
 * Counting in the kernel: a program at an interface's tc hooks that gives the engine's numbers by address for a third of the
 * engine's processor time, whether the ring is full or not. It knows no names.
 *
 * Loading and attaching need CAP_BPF and CAP_NET_ADMIN (`attach`); counters that are pinned are read without either.
 */
import { CodedError, describeError } from '#common/errors/index.ts';

export type { AttachedCounter } from './attachment.ts';
export type { KernelMinute } from './counter.ts';

/** Throws `kernel.no_library` where the library of calls can not be loaded (another architecture or libc). */
export async function loadKernel(): Promise<typeof import('./attachment.ts')> {
  try {
    return await import('./attachment.ts');
  } catch (error) {
    const why = describeError(error).split('\n')[0]!;
    throw new CodedError('kernel.no_library', `The kernel’s programs can not be loaded: ${why}`);
  }
}
