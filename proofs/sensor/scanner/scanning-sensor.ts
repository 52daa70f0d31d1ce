/**
 * The scan service over its real ledger, client and child processes, on a clock that runs faster. A stand-in writes nmap's
 * output, and no packets are sent or counted. It prints `ready`, begins with a line on its standard input, ends in order
 * with `stop`, and prints what the ledger told it is stored.
 *
 * usage: scanning-sensor.ts JSON    (`ScanningSensorInput`)
 */
import { once } from 'node:events';
import { existsSync, symlinkSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { join } from 'node:path';
import type { Clock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { createMonitorClient } from '#sensor/monitor-client/index.ts';
import type { Pacer } from '#sensor/scanner/pacing/index.ts';
import { startScan } from '#sensor/scanner/run-scan.ts';
import type { ScanTask } from '#sensor/scanner/scan.ts';
import { ScanService } from '#sensor/scanner/scan-service.ts';
import '#sensor/scanner/run-nmap.ts';
import { announceLedger, type LedgerFault, plantFault } from './ledger-faults.ts';

export interface ScanningSensorInput {
  directory: string;
  url: string;
  /** Wall time at which it begins. */
  startMs: number;
  /** Speed of its clock as a factor. */
  speed: number;
  fault: LedgerFault | null;
}

const uncounted: Pacer = {
  open: async () => ({
    ...{ watch() {}, forget() {}, pause() {}, resume() {}, close() {} },
    ...{ packets: () => 0, holds: () => 0 },
  }),
  close: async () => {},
};
const healthy = {
  ...{ cpuBusy: 0, cpuTotal: 0, memoryAvailable: 8e9, memoryTotal: 16e9, diskFree: 8e9 },
  ...{ cpuSome: 0, memoryFull: 0 },
};

async function main(input: ScanningSensorInput): Promise<void> {
  const { directory, speed } = input;
  // Otherwise compiled code would be written during the cycle.
  flushCompileCache();
  process.stdout.write('ready\n');
  await once(process.stdin, 'data');
  const began = performance.now();
  const passedMs = () => (performance.now() - began) * speed;
  const clock: Clock = {
    nowMs: () => input.startMs + Math.floor(passedMs()),
    monotonicMs: passedMs,
    wait: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        const timer = setTimeout(resolve, ms / speed);
        signal?.addEventListener('abort', () => {
          clearTimeout(timer);
          resolve();
        });
      }),
  };
  const onStart = plantFault(input.fault);
  announceLedger();
  const limits = {
    ...{ version: 2 as const, missing: [] },
    enclose: () => ({ procsFiles: [], remove() {} }),
  };
  const service = new ScanService({
    ...{ client: createMonitorClient(input.url), stateDirectory: directory, clock },
    reporter: silentReporter,
    pressure: { cpuPercent: 85, cpuWaitPercent: 10 },
    prepare: async () => ({
      start(task: ScanTask) {
        // The stand-in knows its scan by its name.
        const program = join(directory, task.scanId);
        if (!existsSync(program)) symlinkSync(join(directory, 'nmap'), program);
        onStart();
        return startScan({ clock, limits, pacer: uncounted, program }, task);
      },
      close: async () => {},
    }),
    readHost: () => healthy,
    targetFault: () => null,
    onOwnTraffic() {},
  });
  await service.start();
  await once(process.stdin, 'data');
  process.stdin.destroy();
  await service.stop();
}

if (import.meta.main) await main(JSON.parse(process.argv[2]!) as ScanningSensorInput);
