/**
 * Names of applications on the server: the product of a known domain, then the evidence, then the service of the port,
 * then the remote address (NET-2.2.3). Labels of IP protocols precede all others (NET-2.2.4).
 */

import { canonicalAddress } from '#common/ip/index.ts';
import { serviceName } from '#common/ip/port-services.ts';
import type { TelemetryUsageRow } from '#contracts/sensor-api/telemetry.ts';

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

// Checks names from sensors again: a compromised host must not put arbitrary text on pages or into feeds. The row of an
// invalid name keeps its bytes and is named by its port or remote address.

/** Recognised IP protocols (NET-2.2.4), by number. AH has a label over IPv4 only. */
const protocolLabels: Readonly<Record<number, string>> = {
  2: 'IGMP',
  4: 'IP-in-IP',
  41: 'IPv6-in-IP',
  47: 'GRE',
  50: 'IPsec ESP',
  51: 'IPsec AH',
  89: 'OSPF',
  132: 'SCTP',
};
/** Label from a sensor that does not know the protocol labels (NET-9.2). */
const genericLabel = 'IP';

/** Lower-case labels of letters, digits, hyphens and underscores, the form in which sensors send hosts. */
const hostName = /^(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$/;

type NamedRow = Pick<TelemetryUsageRow, 'name' | 'evidence' | 'protocol' | 'serverPort'> &
  Partial<Pick<TelemetryUsageRow, 'client' | 'server' | 'direction'>>;

/** The row with only valid names and evidence. */
function checkName<T extends NamedRow>(row: T): T {
  switch (row.evidence) {
    case 'ip_protocol': {
      const label = protocolLabels[row.protocol];
      const isKnown = row.name === genericLabel || (row.name === label && !isAhOverIpv6(row));
      return isKnown ? row : { ...row, name: label && !isAhOverIpv6(row) ? label : genericLabel };
    }
    case 'none':
      return isRemoteName(row) ? row : { ...row, name: remoteOf(row) };
    default:
      return hostName.test(row.name) || canonicalAddress(row.name) === row.name
        ? row
        : { ...row, name: remoteOf(row), evidence: 'none' };
  }
}

function isAhOverIpv6({ protocol, server }: NamedRow): boolean {
  return protocol === 51 && server?.includes(':') === true;
}

function isRemoteName({ name, serverPort }: NamedRow): boolean {
  return canonicalAddress(name) === name || (name === genericLabel && serverPort === null);
}

/** The remote end. A row without ends has only its protocol. */
function remoteOf({ direction, client, server }: NamedRow): string {
  return (direction === 'inbound' ? client : server) ?? genericLabel;
}
