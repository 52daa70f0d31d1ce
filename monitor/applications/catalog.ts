/**
 * Names of applications on the server: the product of a known domain, then the evidence, then the service of the port,
 * then the remote address (NET-2.2.3). Labels of IP protocols precede all others (NET-2.2.4).
 */
import { serviceName } from '#common/ip/port-services.ts';
import { checkName, type NamedRow } from './check-name.ts';

/** Products of well-known registrable domains; other domains keep their name. */
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
  /** `none` when the sensor's name is invalid; absent when its evidence is valid. */
  evidence?: 'none';
  /** False when only the remote address is known. */
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

/** Transport and port as usually written: `tcp/443`, `icmp`, `IP 47`. */
export function describeService(protocol: number, serverPort: number | null): string {
  const transport =
    protocol === tcp ? 'tcp' : protocol === udp ? 'udp' : protocol === 132 ? 'sctp' : `IP ${protocol}`;
  return serverPort === null ? transport : `${transport}/${serverPort}`;
}
