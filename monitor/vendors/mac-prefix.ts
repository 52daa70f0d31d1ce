/** The part of a MAC that names its maker. */

/** True when nobody gave the address: its owner made it up, and no table and no registry knows it (NET-2.1.4). */
export function isLocallyAdministered(mac: string): boolean {
  return (Number.parseInt(mac.slice(0, 2), 16) & 2) !== 0;
}

/**
 * The 24 bits that may leave the network, as six capital digits; null for a MAC that must never be looked up
 * (NET-2.1.4). `mac` is in lower-case pairs joined by colons.
 */
export function registryPrefix(mac: string): string | null {
  if (!/^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/.test(mac) || isLocallyAdministered(mac)) return null;
  return mac.slice(0, 8).replaceAll(':', '').toUpperCase();
}
