/** Attacks in words, as mails say them. */
import { describeClass } from '#contracts/attack-classes.ts';

/** `a SYN flood`, `an ICMP flood`. */
export function withArticle(name: string): string {
  if (name === 'high_volume') return describeClass(name);
  // By sound: an ICMP flood, a SYN flood.
  return `${/^(ICMP|IP|RST|ACK|amplification|attack)/.test(describeClass(name)) ? 'an' : 'a'} ${describeClass(name)}`;
}
