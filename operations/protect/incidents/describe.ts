/** Attacks in words, as mails say them. */
import { describeClass } from '#contracts/attack-classes.ts';

/** `a SYN flood`, `an ICMP flood`. */
export function withArticle(name: string): string {
  if (name === 'high_volume') return describeClass(name);
  const words = describeClass(name);
  // By sound: an ICMP flood, an RST flood, a UDP flood, a SYN flood.
  return `${/^([aeio]|rst)/i.test(words) ? 'an' : 'a'} ${words}`;
}
