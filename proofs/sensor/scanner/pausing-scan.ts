/**
 * A real scan of one address that is paused and goes on `pauses` times, as the service does it, for times that the seed
 * decides. It prints the wall times of each pause, and how the scan ended.
 *
 * usage: pausing-scan.ts JSON    (`PausingScanInput`), in the network namespace of the scanner
 */

import { setTimeout as wait } from 'node:timers/promises';
import { systemClock } from '#common/clock/index.ts';
import { seededRandom } from '#common/random/index.ts';
import { createPacer, findNmap, findScanLimits, startScan } from '#sensor/scanner/index.ts';
import type { Pacer } from '#sensor/scanner/pacing/index.ts';

export interface PausingScanInput {
  address: string;
  interfaceName: string;
  sourceAddress: string;
  pauses: number;
  seed: number;
  /** Stops and continues the processes, and counts nothing. */
  isUncounted: boolean;
  /** In place of the host's nmap. */
  program?: string;
}

/** One line of output. */
export type PausingScanLine =
  | { kind: 'pause'; fromMs: number; toMs: number }
  | { kind: 'end'; packets: number; fault: string | null };

const pauseMaxMs = 12_000;
const afterLastMs = 10_000;

async function main(input: PausingScanInput): Promise<void> {
  const { address, interfaceName, sourceAddress } = input;
  const random = seededRandom(input.seed);
  const program = input.program ?? findNmap();
  const limits = findScanLimits();
  if (program === null || typeof limits === 'string') throw new Error(`no scan is possible: ${limits}`);
  const pacer = input.isUncounted ? uncounted : createPacer();
  let left = input.pauses;
  for (let scan = 0; left > 0; scan += 1) {
    const scanId = `0193a1f0-0000-7000-8000-${String(scan).padStart(12, '0')}`;
    const task = { scanId, address, interfaceName, sourceAddress, profile: 'full' as const };
    const running = startScan({ clock: systemClock, limits, pacer, program }, task);
    let isOver = false;
    void running.findings.then(() => {
      isOver = true;
    });
    // The first packets of a process come after it has started.
    for (await wait(2000); left > 0 && !isOver; left -= 1) {
      const fromMs = Date.now();
      running.pause(random() < 0.5 ? 'plan' : 'cpu');
      // Short ones more often than long ones.
      await wait(200 + (pauseMaxMs - 200) * random() ** 2);
      const toMs = Date.now();
      running.resume();
      say({ kind: 'pause', fromMs, toMs });
      await wait(300 + 1000 * random());
    }
    if (left === 0) {
      await wait(afterLastMs);
      running.end('interrupted');
    }
    const { packets } = await running.findings;
    say({ kind: 'end', packets, fault: running.fault() });
  }
  await pacer.close();
}

function say(line: PausingScanLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** The pacing without the ceiling. */
const uncounted: Pacer = {
  async open() {
    const processIds = new Set<number>();
    const signal = (name: NodeJS.Signals) => {
      for (const processId of processIds) process.kill(processId, name);
    };
    return {
      watch: (processId) => void processIds.add(processId),
      forget: (processId) => void processIds.delete(processId),
      pause: () => signal('SIGSTOP'),
      resume: () => signal('SIGCONT'),
      ...{ packets: () => 0, holds: () => 0, close() {} },
    };
  },
  close: async () => {},
};

if (import.meta.main) await main(JSON.parse(process.argv[2]!) as PausingScanInput);
