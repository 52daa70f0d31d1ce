/**
 * Who made the interface with a MAC: a bundled table first, a public registry by command.
 *
 * A locally administered MAC has no maker and is never looked up (NET-2.1.4).
 */
import { findOffline } from './find-offline.ts';

export { isLocallyAdministered } from './mac-prefix.ts';

export interface Vendors {
  /** The maker by the bundled table; null for an unknown or locally administered MAC. Asks nobody. */
  findOffline(mac: string): Promise<string | null>;
}

export function createVendors(): Vendors {
  return { findOffline };
}
