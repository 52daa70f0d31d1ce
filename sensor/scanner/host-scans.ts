/** The scan service of this host: its nmap, its limits, its network and its pressure. */
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { MonitorClient } from '#sensor/monitor-client/index.ts';
import { findNmap } from './find-nmap.ts';
import { type PressureLimits, readHost } from './host-pressure.ts';
import { findScanLimits } from './limits/index.ts';
import type { OwnTraffic } from './ongoing-scans.ts';
import { createPacer } from './pacing/index.ts';
import { startScan } from './run-scan.ts';
import { ScanService } from './scan-service.ts';
import { targetFault } from './target-fault.ts';

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
