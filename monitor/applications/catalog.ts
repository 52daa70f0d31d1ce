/**
 * What an application is called on the server: a known domain's product, then what evidence says, then the port's
 * service, and at last the remote address (NET-2.2.3). Labels of IP protocols come before everything (NET-2.2.4).
 */
import { serviceName } from '#common/ip/port-services.ts';
import { checkName, type NamedRow } from './check-name.ts';

/** Registrable domains that people know by another name; whatever is not here keeps its domain. */
const products: Readonly<Record<string, string>> = {
  'googlevideo.com': 'YouTube',
  'youtube.com': 'YouTube',
  'ytimg.com': 'YouTube',
  'nflxvideo.net': 'Netflix',
  'netflix.com': 'Netflix',
  'fbcdn.net': 'Facebook',
  'facebook.com': 'Facebook',
  'cdninstagram.com': 'Instagram',
  'instagram.com': 'Instagram',
  'whatsapp.net': 'WhatsApp',
  'whatsapp.com': 'WhatsApp',
  'githubusercontent.com': 'GitHub',
  'github.com': 'GitHub',
  'microsoftonline.com': 'Microsoft 365',
  'office.com': 'Microsoft 365',
  'office365.com': 'Microsoft 365',
  'windowsupdate.com': 'Windows Update',
  'steamcontent.com': 'Steam',
  'steampowered.com': 'Steam',
  'twimg.com': 'X',
  'twitter.com': 'X',
  'x.com': 'X',
  'tiktokcdn.com': 'TikTok',
  'tiktokv.com': 'TikTok',
  'tiktok.com': 'TikTok',
  'scdn.co': 'Spotify',
  'spotify.com': 'Spotify',
};

const tcp = 6;
const udp = 17;

export interface ApplicationName {
  name: string;
  /** `none` where what the sensor sent is no name; absent where its evidence stands. */
  evidence?: 'none';
  /** False where only the remote address is known. */
  isAttributed: boolean;
}

/** The name under which a usage row is kept. */
export function nameApplication(told: NamedRow): ApplicationName {
  const row = checkName(told);
  if (row.evidence === 'ip_protocol') return { name: row.name, isAttributed: true };
  if (row.evidence !== 'none') {
    const product = Object.hasOwn(products, row.name) ? products[row.name]! : row.name;
    return { name: product, isAttributed: true };
  }
  const service = serviceName(row.protocol, row.serverPort);
  const named = service ? { name: service, isAttributed: true } : { name: row.name, isAttributed: false };
  return told.evidence === 'none' ? named : { ...named, evidence: 'none' };
}

/** A transport and port as people write them: `tcp/443`, `icmp`, `IP 47`. */
export function describeService(protocol: number, serverPort: number | null): string {
  const transport =
    protocol === tcp ? 'tcp' : protocol === udp ? 'udp' : protocol === 132 ? 'sctp' : `IP ${protocol}`;
  return serverPort === null ? transport : `${transport}/${serverPort}`;
}
