/** The scan service of this host: its nmap, its limits, its network and its pressure. */

import { networkInterfaces } from 'node:os';
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import { canonicalAddress } from '#common/ip/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { ScanTarget } from '#contracts/sensor-api/port-scans.ts';
import type { MonitorClient } from '#sensor/monitor-client/index.ts';
import { findNmap } from './find-nmap.ts';
import { isOwnAddress } from './find-route.ts';
import { type PressureLimits, readHost } from './host-pressure.ts';
import { findScanLimits } from './limits/index.ts';
import { destinationFault } from './nmap-arguments.ts';
import type { OwnTraffic } from './ongoing-scans.ts';
import { createPacer } from './pacing/index.ts';
import { startScan } from './run-scan.ts';
import { ScanService } from './scan-service.ts';

export interface HostScansOptions {
  client: MonitorClient;
  stateDirectory: string;
  clock: Clock;
  reporter: Reporter;
  pressure: PressureLimits;
  onOwnTraffic(pairs: readonly OwnTraffic[]): void;
}

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
export function targetFault(
  target: Pick<ScanTarget, 'address' | 'interface' | 'source_address'>,
): string | null {
  const { address, interface: interfaceName, source_address: sourceAddress } = target;
  const fault = destinationFault({ address, interfaceName, sourceAddress });
  if (fault !== null) return fault;
  if (isOwnAddress(address)) return `${address} is this host's own address`;
  const entries = networkInterfaces()[interfaceName] ?? [];
  if (!entries.some((entry) => canonicalAddress(entry.address) === sourceAddress))
    return `${sourceAddress} is not an address of ${interfaceName} on this host`;
  return null;
}
