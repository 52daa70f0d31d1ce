/** Attacks in words, as pages and mails say them. */
import type { IncidentClass } from '#contracts/admin-api/incidents.ts';

const classNames: Readonly<Record<IncidentClass, string>> = {
  fragment_flood: 'fragment flood',
  amplification: 'amplification attack',
  syn_flood: 'SYN flood',
  synack_reflection: 'SYN-ACK reflection',
  ack_flood: 'ACK flood',
  rst_flood: 'RST flood',
  udp_flood: 'UDP flood',
  icmp_flood: 'ICMP flood',
  gre_flood: 'GRE flood',
  connection_flood: 'connection flood',
  high_volume: 'high traffic volume',
  other: 'attack of another kind',
};

/** The name of a class within a sentence; one that this version does not know reads as it is. */
export function describeClass(name: string): string {
  return classNames[name as IncidentClass] ?? name.replaceAll('_', ' ');
}

/** `a SYN flood`, `an ICMP flood`. */
export function withArticle(name: string): string {
  if (name === 'high_volume') return describeClass(name);
  // By sound: an ICMP flood, a SYN flood.
  return `${/^(ICMP|RST|ACK|amplification|attack)/.test(describeClass(name)) ? 'an' : 'a'} ${describeClass(name)}`;
}
