/** Addresses that have a place in the tables under any traffic. */
import { canonicalAddress } from '#common/ip/index.ts';
import { type PlanFields, type ReadSection, readList } from './section.ts';

/** NET-8. */
const protectedAddressesMax = 4096;

export interface ProtectionSection {
  /** Exact addresses of live allocations. */
  protectedAddresses: string[];
}

export function readProtection(fields: PlanFields): ReadSection<ProtectionSection> {
  const read = readList(fields.protected_targets, protectedAddressesMax, (entry) =>
    typeof entry === 'string' ? canonicalAddress(entry) : null,
  );
  return { ...read, values: { protectedAddresses: read.values } };
}
