/**
 * Names that providers put on the outside of encrypted hellos (ECH): they say who carries the traffic, not whose it
 * is. That a hello has the extension proves nothing, because browsers send it as grease with any name.
 */
export const defaultOuterNames: readonly string[] = [
  'cloudflare-ech.com',
  'crypto.cloudflare.com',
  'cloudflare-esni.com',
  'tls-ech.dev',
  'public.tls-ech.dev',
  'cover.defo.ie',
  'public-ech.example',
];
