/**
 * The simulated site of the demo: 20 hypervisors that do not exist, whose sensors upload to the monitor as real ones do.
 *
 * Each is enrolled with a token, has a credential and a spool of its own, and sends real uploads to the sensor API; what they hold is
 * made up from a seed. The monitor labels the site as simulated. It has no cluster of operations and no servers, so nothing
 * of it reaches a customer.
 */
import { constants, setPriority } from 'node:os';
import { systemClock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { type MonitorPart, readPart } from '../demo-file.ts';
import { loadSite } from './load-site.ts';
import { createMonitorCalls } from './monitor-calls.ts';
import { createPace } from './pace.ts';
import { nodes, planSite, seedOfDemo } from './plan.ts';
import { createTeller, progressFileOf, writeProgress } from './progress.ts';
import { readSiteState, stateFileOf, writeSiteState } from './site-state.ts';

export { siteCidrs } from './plan.ts';
export { describeProgress, type Progress, progressFileOf, readProgress } from './progress.ts';

/** Nodes that have no credential yet: the monitor is to make a token for each. */
export function listNodesToEnrol(dataDir: string): string[] {
  const known = readSiteState(stateFileOf(dataDir), seedOfDemo)?.sensors ?? {};
  return nodes.filter((node) => !known[node]);
}

export interface SimulatedSiteOptions {
  dataDir: string;
  monitorUrl: string;
  reporter: Reporter;
}

/** Loads the history, then each minute, at the lowest priority. */
export function createSimulatedSite({ dataDir, monitorUrl, reporter }: SimulatedSiteOptions): Part {
  const stopping = new AbortController();
  const { signal } = stopping;
  let finished: Promise<void> = Promise.resolve();
  const say = createTeller((text) => reporter.info(`history of the simulated site: ${text}`));
  const run = async () => {
    const stateFile = stateFileOf(dataDir);
    await loadSite({
      clock: systemClock,
      reporter,
      calls: createMonitorCalls(monitorUrl, signal),
      pace: createPace(systemClock),
      plan: planSite(seedOfDemo),
      tokens: readPart<MonitorPart>(dataDir, 'monitor')?.simulated_tokens ?? {},
      state: readSiteState(stateFile, seedOfDemo),
      write: (state) => writeSiteState(stateFile, state),
      tell: (progress) => {
        writeProgress(progressFileOf(dataDir), progress);
        say(progress);
      },
      signal,
    });
  };
  return {
    name: 'simulated site',
    async start() {
      setPriority(constants.priority.PRIORITY_LOW);
      finished = run().catch((error: unknown) => {
        if (signal.aborted) return;
        reporter.error('the simulated site ends', { error: describeError(error) });
        process.kill(process.pid, 'SIGTERM');
      });
    },
    async stop() {
      stopping.abort();
      await finished;
    },
  };
}
