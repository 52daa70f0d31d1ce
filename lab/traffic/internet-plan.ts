/** Who lives in the lab's internet: names, addresses and what they serve. All below the reserved documentation domains. */
import { type ServiceKind, services } from './services.ts';
import { wireOf } from './wires.ts';

export interface Site {
  /** The addresses of its A and AAAA records. */
  ipv4: string;
  ipv6: string;
}

export const resolver: Site = { ipv4: '198.51.100.53', ipv6: '2001:db8:51::53' };

const sites = {
  'www.example.com': { ipv4: '198.51.100.80', ipv6: '2001:db8:51::80' },
  // Two names behind one address, so that only what was spoken tells them apart.
  'edge.example.net': { ipv4: '198.51.100.81', ipv6: '2001:db8:51::81' },
  'api.example.org': { ipv4: '198.51.100.82', ipv6: '2001:db8:51::82' },
  'updates.example.edu': { ipv4: '198.51.100.83', ipv6: '2001:db8:51::83' },
  'time.example.org': { ipv4: '198.51.100.84', ipv6: '2001:db8:51::84' },
  'whois.example.net': { ipv4: '198.51.100.85', ipv6: '2001:db8:51::85' },
} as const satisfies Readonly<Record<string, Site>>;

export const addressRecords: ReadonlyMap<string, Site> = new Map<string, Site>([
  ...Object.entries(sites),
  ...services.map((service) => [service.name, service] as const),
]);

export const aliasRecords: ReadonlyMap<string, string> = new Map([
  ['cdn.example.net', 'edge.example.net'],
  ['static.example.com', 'edge.example.net'],
]);

/** A name with so many addresses that its answer needs TCP. */
export const manyAddressesName = 'pool.example.org';
export const manyAddresses: readonly string[] = Array.from({ length: 110 }, (_, i) => `198.51.100.${90 + i}`);

/** Clients in the internet that call the guests' servers. */
export const clientSites: readonly Site[] = [
  { ipv4: '198.51.100.210', ipv6: '2001:db8:51::210' },
  { ipv4: '198.51.100.211', ipv6: '2001:db8:51::211' },
  { ipv4: '198.51.100.212', ipv6: '2001:db8:51::212' },
];

/** The name under which the internet calls a guest. */
export function nameHostedSite(guestName: string): string {
  return `${guestName}.example.edu`;
}

/** Every address of the internet's end, besides its gateway. */
export const serviceAddresses: readonly string[] = [
  resolver,
  ...addressRecords.values(),
  ...clientSites,
].flatMap((site) => [site.ipv4, site.ipv6]);

/** Names of the certificate that all TLS servers of a world show. */
export const certificateNames: readonly string[] = [
  ...['*.example.com', '*.example.net', '*.example.org', '*.example.edu'],
  ...services.filter(({ kind }) => usesTls(kind)).map(({ name }) => name),
];

function usesTls(kind: ServiceKind): boolean {
  return kind === 'https' || wireOf(kind)?.transport === 'tls';
}
