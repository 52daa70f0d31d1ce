/** What a person types as a network. */
import { canonicalAddress, formatPrefix, parseAddress, parsePrefix } from '#common/ip/index.ts';
import { peerLengths, peerNetworkOf } from '#monitor/facts/index.ts';

export interface AskedNetwork {
  /** Canonical text; a whole kept network or several. */
  prefix: string;
  /** An address or a part of a kept network was typed, and the answer is of the whole network. */
  isWidened: boolean;
}

/** An address, or a network in CIDR notation with or without host bits; null where the text is neither. */
export function readNetwork(text: string): AskedNetwork | null {
  const [first = '', lengthText, ...more] = text.trim().split('/');
  const bytes = parseAddress(first);
  if (!bytes || canonicalAddress(first) === null || more.length > 0) return null;
  const network = peerNetworkOf(first)!;
  if (lengthText === undefined) return { prefix: network, isWidened: true };
  if (!/^(0|[1-9]\d{0,2})$/.test(lengthText) || Number(lengthText) > bytes.length * 8) return null;
  const length = Number(lengthText);
  const kept = bytes.length === 4 ? peerLengths[4] : peerLengths[6];
  if (length > kept) return { prefix: network, isWidened: true };
  const masked = bytes.map((byte, i) => byte & (0xff00 >> Math.min(8, Math.max(0, length - i * 8))));
  const prefix = formatPrefix({ bytes: masked, length });
  return parsePrefix(prefix) === null ? null : { prefix, isWidened: false };
}
