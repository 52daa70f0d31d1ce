import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { promisify } from 'node:util';
import { CodedError, describeError } from '#common/errors/index.ts';
import { canonicalAddress } from '#common/ip/index.ts';
import type { ScanTarget } from '#contracts/sensor-api/port-scans.ts';
import { readHost } from './host-pressure.ts';
import { findScanLimits } from './limits/index.ts';
import { destinationFault } from './nmap-arguments.ts';
import { createPacer } from './pacing/index.ts';
import { startScan } from './run-scan.ts';
import { ScanService, type ScanServiceOptions } from './scan-service.ts';

/**
 * Port scans of this host's servers: nmap as a child process, in phases, within limits.
 *
 * Guarantees: a scan never takes more of the host than its control groups allow, never sends more than 80,000 packets in
 * ten seconds, also after pauses, and never outlives the sensor. What was found stays in the result, also
 * when the scan ends early. Nothing is scanned where the limits can not be set or packets not be counted.
 */
export { findScanLimits } from './limits/index.ts';
export { destinationFault } from './nmap-arguments.ts';
export { createPacer } from './pacing/index.ts';
export { startScan } from './run-scan.ts';
export type { RunningScan, ScanFindings, ScanTask } from './scan.ts';
export type { ScanService, ScanStatus } from './scan-service.ts';

// The scan service of this host: its nmap, its limits, its network and its pressure.

export type HostScansOptions = Omit<ScanServiceOptions, 'prepare' | 'readHost' | 'targetFault'>;

/** Creates the service; nothing runs before `start`. */
export function createHostScans(options: HostScansOptions): ScanService {
  const { clock, reporter, stateDirectory } = options;
  return new ScanService({
    ...options,
    async prepare() {
      const program = findNmap();
      if (program === null) return 'nmap is not installed: apt-get install nmap';
      try {
        await import('./run-nmap.ts');
      } catch (error) {
        return `the library that counts packets can not be loaded: ${describeError(error)}`;
      }
      const limits = findScanLimits();
      if (typeof limits === 'string') return limits;
      if (limits.missing.length > 0)
        reporter.info('some limits of scans can not be set', { missing: limits.missing.join(',') });
      const pacer = createPacer((why) => reporter.error('packets of scans can not be counted', { why }));
      return {
        start: (task) => startScan({ clock, limits, pacer, program }, task),
        close: () => pacer.close(),
      };
    },
    readHost: () => readHost(stateDirectory),
    targetFault,
  });
}

/** NET-2.7.8: the source is still this host's, at the interface that the plan names; the host itself is no target. */
export function targetFault(target: Pick<ScanTarget, 'address' | 'interface' | 'source_address'>) {
  const { address, interface: interfaceName, source_address: sourceAddress } = target;
  const fault = destinationFault({ address, interfaceName, sourceAddress });
  if (fault !== null) return fault;
  if (isOwnAddress(address)) return `${address} is this host's own address`;
  const entries = networkInterfaces()[interfaceName] ?? [];
  if (!entries.some((entry) => canonicalAddress(entry.address) === sourceAddress))
    return `${sourceAddress} is not an address of ${interfaceName} on this host`;
  return null;
}

const places = ['/usr/bin/nmap', '/usr/local/bin/nmap'];

/** Path of nmap, or null. */
export function findNmap(): string | null {
  for (const place of places) {
    try {
      accessSync(place, constants.X_OK);
      return place;
    } catch {
      // Not there.
    }
  }
  return null;
}

// By which interface, and from which of its addresses, this host reaches an address.

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
