/**
 * The simulated site of the demo: 20 hypervisors that do not exist, whose sensors upload to the monitor as real ones do.
 *
 * Each is enrolled with a token, has a credential and a spool of its own, and sends real uploads to the sensor API; what they hold is
 * made up from a seed. The monitor labels the site as simulated. The servers of its first hypervisor are the demo's customers'.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { type MonitorPart, type OperationsPart, readPart } from '../demo-file.ts';
import { deliverWeek } from './deliver-week.ts';
import { historySeconds, loadSite } from './load-site.ts';
import { createMonitorCalls } from './monitor-calls.ts';
import { createOperationsCalls } from './operations-calls.ts';
import { createPace } from './pace.ts';
import { nodes, ownedServers, planSite, seedOfDemo } from './plan.ts';
import { createTeller, progressFileOf, writeProgress } from './progress.ts';
import { readSiteState, stateFileOf, writeSiteState } from './site-state.ts';

export { siteCidrs } from './plan.ts';
export { describeProgress, type Progress, progressFileOf, readProgress } from './progress.ts';

/** Days that are loaded, and that the customers' servers are old. */
export const historyDays = historySeconds / 86_400;

/** What operations needs to have the customers' servers. */
export const customersServers = () => ownedServers(historyDays);

/** Nodes that have no credential yet: the monitor is to make a token for each. */
export function listNodesToEnrol(dataDir: string): string[] {
  const known = readSiteState(stateFileOf(dataDir), seedOfDemo)?.sensors ?? {};
  return nodes.filter((node) => !known[node]);
}

export interface SimulatedSiteOptions {
  dataDir: string;
  monitorUrl: string;
  operationsUrl: string;
  reporter: Reporter;
}

/** Loads the history, then each minute, at the lowest priority. */
export function createSimulatedSite(options: SimulatedSiteOptions): Part {
  const { dataDir, monitorUrl, reporter } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  let finished: Promise<void> = Promise.resolve();
  const say = createTeller((text) => reporter.info(`history of the simulated site: ${text}`));
  const run = async () => {
    const stateFile = stateFileOf(dataDir);
    const loading = loadSite({
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
    await Promise.all([loading, deliverOnce(options, signal)]);
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

/** Gives the customers their week, once for the data of a demo; what fails is tried again at the next start. */
async function deliverOnce(
  { dataDir, operationsUrl, reporter }: SimulatedSiteOptions,
  signal: AbortSignal,
): Promise<void> {
  const marker = join(dataDir, 'demo', 'week-delivered');
  const operations = readPart<OperationsPart>(dataDir, 'operations');
  const siteId = readPart<MonitorPart>(dataDir, 'monitor')?.simulated_site_id ?? null;
  if (existsSync(marker) || !operations?.simulated_cluster_id || siteId === null) return;
  const deps = {
    ...{ plan: planSite(seedOfDemo), clock: systemClock, pace: createPace(systemClock), signal },
    source: { siteId, clusterId: operations.simulated_cluster_id },
    ...createOperationsCalls(operationsUrl, operations.admin_token, signal),
  };
  try {
    await deliverWeek(deps, Math.floor(systemClock.nowMs() / 60_000) * 60 - historySeconds);
    if (!signal.aborted) writeFileSync(marker, '');
  } catch (error) {
    if (!signal.aborted)
      reporter.warn('the week of the customers’ servers is not whole', { error: describeError(error) });
  }
}
