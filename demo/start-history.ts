/** Starts the loader of the simulated site behind everything else, and says how far it is. */
import { rmSync } from 'node:fs';
import { describeProgress, progressFileOf, readProgress } from './simulated-site/index.ts';
import { type Steps, say } from './steps.ts';

const lookEveryMs = 1_000;
/** Between two lines of progress. */
const stepPercent = 20;

/** Called when everything else is ready: the history has the time that is left. */
export function startHistory({ processes, settings: { dataDir }, monitorUrl, signal }: Steps): void {
  const file = progressFileOf(dataDir);
  rmSync(file, { force: true });
  const loader = processes.start({
    name: 'simulated-site',
    args: ['demo', 'simulated-site', '--monitor', monitorUrl],
    env: { SVC_DATA_DIR: dataDir },
  });
  loader.keepAlive();
  let toldPercent = -stepPercent;
  const look = setInterval(() => {
    const progress = readProgress(file);
    if (!progress || (progress.percent < 100 && progress.percent < toldPercent + stepPercent)) return;
    toldPercent = progress.percent;
    say(`  history      simulated site, seven days: ${describeProgress(progress)}\n`);
    if (progress.percent === 100) clearInterval(look);
  }, lookEveryMs);
  look.unref();
  signal.addEventListener('abort', () => clearInterval(look), { once: true });
}
