const nameLengthMax = 80;
let prefixes: Promise<ReadonlyMap<string, string>> | null = null;

/**
 * Manufacturer of a MAC from the bundled IEEE table; null when unknown or randomized.
 *
 * Longest prefix first: IEEE sells 28- and 36-bit blocks inside a 24-bit one with another name. The table is read at
 * first use, because most commands never need it.
 */
export async function findOffline(mac: string): Promise<string | null> {
  if (isLocallyAdministered(mac)) return null;
  prefixes ??= loadPrefixes();
  const table = await prefixes;
  const digits = mac.replaceAll(':', '').toUpperCase();
  for (const length of [9, 7, 6]) {
    const name = table.get(digits.slice(0, length));
    if (name) return name;
  }
  return null;
}

async function loadPrefixes(): Promise<ReadonlyMap<string, string>> {
  const { default: data } = await import('oui-data', { with: { type: 'json' } });
  const table = new Map<string, string>();
  for (const [prefix, text] of Object.entries(data)) {
    const name = text.slice(0, text.indexOf('\n') < 0 ? undefined : text.indexOf('\n')).trim();
    // "Private" means that the name is withheld.
    if (name && name !== 'Private') table.set(prefix, name.slice(0, nameLengthMax));
  }
  return table;
}

// The part of a MAC that identifies its manufacturer.

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
