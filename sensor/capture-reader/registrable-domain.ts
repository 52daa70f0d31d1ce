/**
 * Registrable domains by the pinned public suffix list, loaded with the first name, because many captures have none.
 */
import type { getDomain } from 'tldts';

let lookUp: typeof getDomain | null = null;

/** `www.example.co.uk` gives `example.co.uk`; null for an address, a bare suffix or a single label. */
export function registrableDomain(host: string): string | null {
  lookUp ??= (
    process.getBuiltinModule('node:module').createRequire(import.meta.url)('tldts') as {
      getDomain: typeof getDomain;
    }
  ).getDomain;
  return lookUp(host, { allowPrivateDomains: false });
}
