/** Conditions over columns with the bytes of an address. */
import { parsePrefix } from '#common/ip/index.ts';
import { splitPlaces } from '../contract/exploration.ts';
import { isAmong } from './select-store.ts';
import { ch, type Fragment, joined, numbers, plain, texts } from './statement.ts';
import { hexOf } from './verdict-store.ts';

/** The first and the last address of a network, as hexadecimal digits. */
function endsOf(network: string): { first: string; last: string; bytes: number } {
  const { bytes, length } = parsePrefix(network)!;
  const last = bytes.map((byte, i) => byte | (0xff >> Math.min(Math.max(length - i * 8, 0), 8)));
  return {
    first: Buffer.from(bytes).toString('hex'),
    last: Buffer.from(last).toString('hex'),
    bytes: bytes.length,
  };
}

/** Whether an address is in one of these networks. */
export function isInNetworks(column: Fragment, networks: readonly string[]): Fragment {
  const ends = networks.map(endsOf);
  return ch`arrayExists((n, f, t) -> n = length(${column}) and ${column} >= unhex(f) and ${column} <= unhex(t),
    ${numbers(ends.map((one) => one.bytes))}, ${texts(ends.map((one) => one.first))}, ${texts(ends.map((one) => one.last))})`;
}

/** Whether an address is one of these, in whichever segment where `segment` is null. */
export function placesMatch(address: Fragment, segment: Fragment | null, values: readonly string[]) {
  const { addresses, networks, segments } = splitPlaces(values);
  const known = segment === null ? [...addresses, ...segments.map((one) => one.address)] : addresses;
  const parts = [known.length === 0 ? plain('0') : isAmong(address, known)];
  if (networks.length > 0) parts.push(isInNetworks(address, networks));
  if (segments.length > 0 && segment !== null)
    parts.push(ch`(${address}, ${segment}) in (select arrayJoin(arrayZip(
      arrayMap(h -> unhex(h), ${texts(segments.map((one) => hexOf(one.address)))}), ${texts(segments.map((one) => one.segment))})))`);
  return ch`(${joined(parts, ' or ')})`;
}
