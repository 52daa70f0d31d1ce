/** Prefixes as operators write them, and which of several prefixes an address belongs to. */
import { CodedError } from '#common/errors/index.ts';
import {
  canonicalAddress,
  formatAddress,
  formatPrefix,
  type Prefix,
  parseAddress,
  parsePrefix,
} from '#common/ip/index.ts';

const shown = 5;

/** Canonical, sorted, distinct prefixes of these texts. Throws `protection.invalid` that names the wrong ones. */
export function parsePrefixes(
  texts: readonly string[],
  bounds: { field: string; atLeast: number; atMost: number; what: string },
): string[] {
  const wrong = (message: string) =>
    new CodedError('protection.invalid', message, { fields: { [bounds.field]: message } });
  const faults: string[] = [];
  const found = new Map<string, Prefix>();
  for (const text of texts.map((one) => one.trim()).filter((one) => one !== '')) {
    const prefix = parsePrefix(text);
    if (prefix) found.set(formatPrefix(prefix), prefix);
    else faults.push(describeFault(text));
  }
  if (faults.length > 0) {
    const more = faults.length > shown ? `, and ${faults.length - shown} more` : '';
    throw wrong(
      `Not a prefix: ${faults.slice(0, shown).join(', ')}${more}. Write address/length, such as 192.0.2.0/24 or 2001:db8::/48.`,
    );
  }
  const all = [...found].find(([, prefix]) => prefix.length === 0);
  if (all) throw wrong(`${all[0]} is every address. Write the prefixes that your servers have.`);
  if (found.size < bounds.atLeast) throw wrong(`${bounds.what} needs at least one prefix.`);
  if (found.size > bounds.atMost)
    throw wrong(`${bounds.what} has at most ${bounds.atMost} prefixes, not ${found.size}.`);
  return [...found.keys()].sort();
}

/** The text, with the prefix that was probably meant where only host bits are wrong. */
function describeFault(text: string): string {
  const [address, length] = text.split('/');
  const bytes = parseAddress(address ?? '');
  const bits = Number(length);
  if (!bytes || !/^\d{1,3}$/.test(length ?? '') || bits > bytes.length * 8) return text.slice(0, 64);
  return `${text} (host bits are set: ${maskOf(bytes, bits)}/${bits}?)`;
}

/** The address with everything after `length` bits zero. */
function maskOf(bytes: Uint8Array, length: number): string {
  const masked = bytes.map((byte, i) => {
    const kept = Math.max(0, Math.min(8, length - i * 8));
    return byte & (0xff << (8 - kept)) & 0xff;
  });
  return formatAddress(masked);
}

/** The canonical text of an address. Throws `protection.invalid`. */
export function requireAddress(text: string): string {
  const address = canonicalAddress(text.trim());
  if (address) return address;
  throw new CodedError('protection.invalid', `"${text.trim().slice(0, 64)}" is not an IP address.`, {
    fields: { address: 'Write an IPv4 or IPv6 address, such as 192.0.2.7.' },
  });
}

/** Finds the value of the longest prefix that contains an address, in one look for each length that there is. */
export class PrefixMap<Value> {
  readonly #values = new Map<string, Value>();
  readonly #lengths: Readonly<Record<4 | 16, Set<number>>> = { 4: new Set(), 16: new Set() };

  /** `prefix` is canonical. A later value of the same prefix replaces the earlier one. */
  set(prefix: string, value: Value): void {
    const slash = prefix.indexOf('/');
    this.#values.set(prefix, value);
    this.#lengths[prefix.includes(':') ? 16 : 4].add(Number(prefix.slice(slash + 1)));
  }

  get(prefix: string): Value | undefined {
    return this.#values.get(prefix);
  }

  /** `address` is canonical. Null: it is in none of the prefixes. */
  find(address: string): { prefix: string; value: Value } | null {
    const bytes = parseAddress(address)!;
    const lengths = [...this.#lengths[bytes.length as 4 | 16]].sort((a, b) => b - a);
    for (const length of lengths) {
      const prefix = `${maskOf(bytes, length)}/${length}`;
      const value = this.#values.get(prefix);
      if (value !== undefined) return { prefix, value };
    }
    return null;
  }

  entries(): IterableIterator<[string, Value]> {
    return this.#values.entries();
  }
}

/** The prefix of one address. */
export function hostPrefix(address: string): string {
  return `${address}/${address.includes(':') ? 128 : 32}`;
}
