import { isLocallyAdministered } from './mac-prefix.ts';

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
