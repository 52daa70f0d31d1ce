/** The part of a MAC that names its maker. */

/** True when nobody gave the address: its owner made it up, and no table and no registry knows it (NET-2.1.4). */
export function isLocallyAdministered(mac: string): boolean {
  return (Number.parseInt(mac.slice(0, 2), 16) & 2) !== 0;
}
