/** Texts for the protocols and the evidence of rows. */
import { Protocol } from '../decode/packet.ts';
import type { NameEvidence } from './minute-report.ts';

const labels = new Map<number, string>([
  [Protocol.gre, 'GRE'],
  [Protocol.esp, 'IPsec ESP'],
  [Protocol.ipip, 'IP-in-IP'],
  [Protocol.ipv6, 'IPv6-in-IP'],
  [Protocol.igmp, 'IGMP'],
  [Protocol.ospf, 'OSPF'],
  [Protocol.sctp, 'SCTP'],
]);

/** Label of an IP protocol (NET-2.2.4), or null. AH has one over IPv4 only. */
export function protocolLabel(protocol: number, version: number): string | null {
  if (protocol === Protocol.ah) return version === 4 ? 'IPsec AH' : null;
  return labels.get(protocol) ?? null;
}

/** Names of the kinds of evidence, by their number in a flow record. */
export const evidenceText: readonly NameEvidence[] = [
  'none',
  'dns',
  'tls_outer',
  'http_connect',
  'http_host',
  'tls_sni',
];
