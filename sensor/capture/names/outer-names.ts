/**
 * Public names on the outside of encrypted hellos (ECH): they identify the provider that carries the traffic, not the
 * site. The presence of the extension proves nothing, because browsers send it as GREASE with any name.
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
