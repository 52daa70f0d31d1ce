/** What the steps of the demo's start share: where things are, and waiting for a process or the sentence that it died with. */
import { CodedError } from '#common/errors/index.ts';
import type { DemoSettings } from './config.ts';
import type { Processes, Supervised } from './processes.ts';

export interface Steps {
  settings: DemoSettings;
  processes: Processes;
  signal: AbortSignal;
  operationsUrl: string;
  monitorUrl: string;
}

export const say = (text: string) => process.stderr.write(text);

/** Waits until `find` finds something, or the process has died with a sentence. */
export async function waitFor<T>(
  steps: Steps,
  supervised: Supervised,
  title: string,
  what: string,
  find: () => Promise<T | null>,
): Promise<T> {
  say(`  ${title.padEnd(12)} `);
  const startedMs = performance.now();
  const deadlineMs = startedMs + 120_000;
  while (performance.now() < deadlineMs) {
    if (steps.signal.aborted) throw new CodedError('demo.interrupted', 'Interrupted.');
    const failure = supervised.failure();
    if (failure !== null) {
      say('failed\n');
      throw new CodedError('demo.start_failed', `${supervised.name} did not start: ${failure}`);
    }
    const found = await find();
    if (found !== null) {
      supervised.keepAlive();
      say(`${what} (${((performance.now() - startedMs) / 1000).toFixed(1)} s)\n`);
      return found;
    }
    await new Promise((wake) => setTimeout(wake, 50));
  }
  say('failed\n');
  throw new CodedError('demo.start_failed', `${supervised.name} was not ready within two minutes.`);
}

/** Whether a program says that it is ready. */
export async function isReady(url: string): Promise<boolean> {
  return (await statusOf(`${url}/readyz`)) === 200;
}

/** The status of an answer; null: there is none. */
export async function statusOf(url: string): Promise<number | null> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(2_000) });
    await answer.arrayBuffer();
    return answer.status;
  } catch {
    return null;
  }
}
