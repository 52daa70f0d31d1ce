/**
 * What an application is called on the server: a known domain's product, then what evidence says, then the port's
 * service, and at last the remote address (NET-2.2.3). Labels of IP protocols come before everything (NET-2.2.4).
 */
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

/** Services by protocol and server port; only where the port says it nearly always. */
const services: Readonly<Record<string, string>> = {
  '6/20': 'FTP',
  '6/21': 'FTP',
  '6/22': 'SSH',
  '6/23': 'Telnet',
  '6/25': 'SMTP',
  '6/53': 'DNS',
  '17/53': 'DNS',
  '17/67': 'DHCP',
  '17/69': 'TFTP',
  '6/80': 'HTTP',
  '6/110': 'POP3',
  '17/123': 'NTP',
  '6/143': 'IMAP',
  '17/161': 'SNMP',
  '6/179': 'BGP',
  '6/389': 'LDAP',
  '6/443': 'HTTPS',
  '17/443': 'QUIC',
  '6/445': 'SMB',
  '6/465': 'SMTP',
  '17/500': 'IPsec IKE',
  '17/514': 'Syslog',
  '6/587': 'SMTP',
  '6/636': 'LDAP',
  '6/853': 'DNS over TLS',
  '6/993': 'IMAP',
  '6/995': 'POP3',
  '17/1194': 'OpenVPN',
  '6/1433': 'Microsoft SQL Server',
  '6/1521': 'Oracle Database',
  '6/2049': 'NFS',
  '6/3306': 'MySQL',
  '6/3389': 'Remote Desktop',
  '17/3389': 'Remote Desktop',
  '17/4500': 'IPsec NAT traversal',
  '6/5432': 'PostgreSQL',
  '6/5671': 'AMQP',
  '6/5672': 'AMQP',
  '6/5900': 'VNC',
  '6/6379': 'Redis',
  '6/8080': 'HTTP',
  '6/8443': 'HTTPS',
  '6/9200': 'Elasticsearch',
  '6/11211': 'Memcached',
  '6/27017': 'MongoDB',
  '17/51820': 'WireGuard',
};

/** Protocols that carry no ports and need no evidence to be told apart. */
const plainProtocols: Readonly<Record<number, string>> = { 1: 'ICMP', 58: 'ICMPv6' };

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
  const service = services[`${row.protocol}/${row.serverPort}`] ?? plainProtocols[row.protocol];
  const named = service ? { name: service, isAttributed: true } : { name: row.name, isAttributed: false };
  return told.evidence === 'none' ? named : { ...named, evidence: 'none' };
}

/** A transport and port as people write them: `tcp/443`, `icmp`, `IP 47`. */
export function describeService(protocol: number, serverPort: number | null): string {
  const transport =
    protocol === tcp ? 'tcp' : protocol === udp ? 'udp' : protocol === 132 ? 'sctp' : `IP ${protocol}`;
  return serverPort === null ? transport : `${transport}/${serverPort}`;
}
