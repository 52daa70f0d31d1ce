/** Lists as the tables by name pack them: `inet_send` is a family, three bytes of which the last is a length, the address. */
import { formatAddress } from '#common/ip/index.ts';

const headBytes = 4;
const countedBytes = 8;

const addressEnd = (packed: Buffer, at: number): number => at + headBytes + packed[at + 3]!;

/** How many different addresses these hold. */
export function countAddresses(packed: Buffer): number {
  const four = new Set<number>();
  const six = new Set<string>();
  for (let at = 0; at < packed.length; ) {
    const end = addressEnd(packed, at);
    if (end - at === 8) four.add(packed.readUInt32BE(at + headBytes));
    else six.add(packed.toString('latin1', at, end));
    at = end;
  }
  return four.size + six.size;
}

/** The pair with the most bytes, of equal ones that with the lowest addresses, and how many there are; null of none. */
export function findTopPair(packed: Buffer): { client: string; server: string; pairs: number } | null {
  const sums = new Map<string, number>();
  for (let at = 0; at < packed.length; ) {
    const end = addressEnd(packed, addressEnd(packed, at));
    const key = packed.toString('latin1', at, end);
    const bytes = packed.readDoubleBE(end);
    const sum = sums.get(key);
    if (sum === undefined || Number.isNaN(sum)) sums.set(key, bytes);
    else if (!Number.isNaN(bytes)) sums.set(key, sum + bytes);
    at = end + countedBytes;
  }
  let top: string | null = null;
  let most = Number.NaN;
  for (const [key, bytes] of sums) {
    const isMore = top === null || bytes > most || (Number.isNaN(most) && !Number.isNaN(bytes));
    const isEqual = bytes === most || (Number.isNaN(most) && Number.isNaN(bytes));
    // Packed addresses compare as addresses do: family first, then byte by byte.
    if (!isMore && !(isEqual && key < top!)) continue;
    top = key;
    most = bytes;
  }
  if (top === null) return null;
  const pair = Buffer.from(top, 'latin1');
  const middle = addressEnd(pair, 0);
  const address = (from: number, to: number) => formatAddress(pair.subarray(from + headBytes, to));
  return { client: address(0, middle), server: address(middle, pair.length), pairs: sums.size };
}
