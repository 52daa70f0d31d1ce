/** The part of a MAC that identifies its manufacturer. */

/** True for a locally administered address, which no table and no registry contains (NET-2.1.4). */
export function isLocallyAdministered(mac: string): boolean {
  return (Number.parseInt(mac.slice(0, 2), 16) & 2) !== 0;
}

/**
 * The 24 bits that may be sent, as six capital digits; null for a MAC that must never be looked up (NET-2.1.4). `mac`
 * is in lower case with colons.
 */
export function registryPrefix(mac: string): string | null {
  if (!/^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/.test(mac) || isLocallyAdministered(mac)) return null;
  return mac.slice(0, 8).replaceAll(':', '').toUpperCase();
}
