/** By which interface, and from which of its addresses, this host reaches an address. */
import { execFile } from 'node:child_process';
import { networkInterfaces } from 'node:os';
import { promisify } from 'node:util';
import { CodedError, describeError } from '#common/errors/index.ts';
import { canonicalAddress } from '#common/ip/index.ts';

const run = promisify(execFile);
const timeoutMs = 5000;

export interface Route {
  interfaceName: string;
  sourceAddress: string;
}

/** True for an address that this host has itself: the hypervisor is not scanned (NET-2.7.8). */
export function isOwnAddress(address: string): boolean {
  return Object.values(networkInterfaces()).some((entries) =>
    entries?.some((entry) => canonicalAddress(entry.address) === address),
  );
}

/** Asks the kernel's routing table. Throws `scan.no_route`. */
export async function findRoute(address: string): Promise<Route> {
  const noRoute = (why: string) =>
    new CodedError('scan.no_route', `This host has no route to ${address}: ${why}.`);
  let text: string;
  try {
    const { stdout } = await run('ip', ['-json', 'route', 'get', address], {
      timeout: timeoutMs,
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' },
    });
    text = stdout;
  } catch (error) {
    const said = (error as { stderr?: string }).stderr?.trim().split('\n')[0];
    throw noRoute(said || describeError(error));
  }
  const [route] = JSON.parse(text) as { dev?: string; prefsrc?: string; type?: string }[];
  if (route?.type === 'local')
    throw new CodedError('scan.own_address', `${address} is this host's own address.`);
  const sourceAddress = canonicalAddress(route?.prefsrc ?? '');
  if (!route?.dev || sourceAddress === null) throw noRoute('it has no source address for it');
  return { interfaceName: route.dev, sourceAddress };
}
