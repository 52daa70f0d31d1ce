/** Registrable domains by the pinned public suffix list. Separate, because the packet path imports no package. */
import { getDomain } from 'tldts';

/** `www.example.co.uk` gives `example.co.uk`; null for an address, a bare suffix or a single label. */
export function registrableDomain(host: string): string | null {
  return getDomain(host, { allowPrivateDomains: false });
}
