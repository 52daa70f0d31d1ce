/** Which MACs may send from which address. */
import { canonicalAddress } from '#common/ip/index.ts';
import type { PlanOwners } from '#contracts/sensor-api/http.ts';
import { isAdvertised, type PlanFields, type ReadSection, readList } from './section.ts';

/** As many as protected addresses (NET-8). */
const ownersMax = 4096;
const macsMax = 8;
const macShape = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/;

export interface OwnersSection {
  /** None for a monitor that takes no spoofed traffic: then nothing is taken for it. */
  owners: PlanOwners[];
  /** The monitor takes what is spoofed beside source addresses of other servers. */
  takesClaims: boolean;
}

export function readOwners(fields: PlanFields): ReadSection<OwnersSection> {
  const offered = isAdvertised(fields.owners_version) ? fields.owners : [];
  const read = readList(offered, ownersMax, parseOwners);
  const takesClaims = isAdvertised(fields.owners_version) && fields.owners_version !== 1;
  return { ...read, values: { owners: read.values, takesClaims } };
}

/** Null unless every MAC is understood: the one that is not might be the sender. */
function parseOwners(entry: unknown): PlanOwners | null {
  if (typeof entry !== 'object' || entry === null) return null;
  const { address: text, macs } = entry as Record<string, unknown>;
  const address = typeof text === 'string' ? canonicalAddress(text) : null;
  if (address === null || !Array.isArray(macs) || macs.length === 0 || macs.length > macsMax) return null;
  return macs.every((mac) => typeof mac === 'string' && macShape.test(mac)) ? { address, macs } : null;
}
