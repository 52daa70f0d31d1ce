/** The address and segment of a request. */
import { canonicalAddress, isGloballyUnique, parseAddress } from '#common/ip/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import { HttpError } from '#service-kit/http/index.ts';
import type { ConsoleDeps } from '../deps.ts';

/** The canonical spelling of an address in the path, or a 404. */
export function canonicalOf(text: string): string {
  const address = canonicalAddress(text);
  if (address) return address;
  throw new HttpError(404, {
    code: 'not_found',
    message: 'This is not an IP address. Use the search.',
  });
}

/** The segment to show: the requested one, else the one where the address was seen last; and all other segments. */
export async function segmentOf(
  deps: Pick<ConsoleDeps, 'devices'>,
  site: Site,
  address: string,
  wanted: string | undefined,
): Promise<{ segment: string; others: string[] }> {
  if (isGloballyUnique(parseAddress(address)!)) return { segment: '', others: [] };
  const segments = await deps.devices.listSegments(site.id, address);
  const segment = wanted ?? segments[0] ?? '';
  return { segment, others: segments.filter((other) => other !== segment) };
}
