/** Which observations belong to an allocation generation; the same for minutes and for live traffic. */
import { canonicalAddress, isGlobalUnicast, parseAddress } from '#common/ip/index.ts';
import type { Allocation } from '#operations/addresses/index.ts';

/** A generation as a monitor names it. */
export interface NamedGeneration {
  address: string;
  assigned_at: string;
}

/** True when the target is this very generation, of a cluster that the sender speaks for. */
export function isTargetOf(
  allocation: Allocation,
  target: NamedGeneration,
  clusterIds: readonly number[],
  isDocumentationGlobal: boolean,
): boolean {
  const bytes = parseAddress(allocation.address);
  return (
    clusterIds.includes(allocation.clusterId) &&
    // The exact text: a generation's mark is echoed, not computed again.
    target.assigned_at === allocation.assignedAt &&
    canonicalAddress(target.address) === allocation.address &&
    bytes !== null &&
    isGlobalUnicast(bytes, isDocumentationGlobal)
  );
}

/**
 * True when the whole interval lies inside the generation: one in which the address changed hands holds traffic of two
 * owners and belongs to neither.
 */
export function liesInGeneration(
  startMs: number,
  lengthMs: number,
  generation: { assignedAt: string; releasedAt: string | null },
): boolean {
  if (startMs < ceilMs(generation.assignedAt)) return false;
  return generation.releasedAt === null || startMs + lengthMs <= Date.parse(generation.releasedAt);
}

/** Milliseconds of an RFC 3339 stamp, rounded up: `Date.parse` drops the microseconds. */
function ceilMs(stamp: string): number {
  const finer = /\.\d{3}(\d+)/.exec(stamp)?.[1] ?? '';
  return Date.parse(stamp) + (/[1-9]/.test(finer) ? 1 : 0);
}
