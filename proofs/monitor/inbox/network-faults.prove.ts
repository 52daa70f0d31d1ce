/**
 * B4: a proxy between the monitor's processes and their database delays, falls silent, and cuts connections just before a
 * COMMIT or just before its answer. Whether a commit in doubt took place is read again, never guessed: 0 lost, 0 doubled.
 */
import { seededRandom } from '#common/random/index.ts';
import { createPool } from '#service-kit/postgres/database.ts';
import { createTestDatabase } from '#service-kit/testing/index.ts';
import { proxyFaults, startFaultProxy } from './fault-proxy.ts';
import { createFleet } from './ingest-fleet.ts';
import type { PlantedBug } from './planted-bugs.ts';

export const name = 'inbox-network-faults';

export interface NetworkOptions {
  /** Faults. */
  n: number;
  seed: number;
  report(line: string): void;
  bug?: PlantedBug | null;
  sensors?: number;
  workers?: number;
}

/** A connection that says nothing for so long is given up; the program waits two minutes. */
const answerMs = 2_500;

export async function prove(options: NetworkOptions) {
  const { offences, counts, uploads } = await breakNetwork(options);
  for (const offence of offences) options.report(offence);
  const planted = await breakNetwork({ ...options, n: 30, bug: 'blind_retry', report: () => {} });
  options.report(`planted blind_retry: ${planted.offences[0] ?? 'NOT NOTICED'}`);
  const kinds = Object.entries(counts).map(([kind, count]) => `${count} ${kind.replaceAll('_', ' ')}`);
  return {
    claim: `${uploads} uploads, connections to the database broken (${kinds.join(', ')}): 0 lost, 0 doubled`,
    tried: options.n,
    failures: offences.length,
    plantedBugsCaught: `${planted.offences.length > 0 ? 1 : 0} of 1`,
  };
}

/** Breaks connections `n` times while uploads come in. */
export async function breakNetwork(
  options: NetworkOptions,
): Promise<{ offences: string[]; counts: Record<string, number>; uploads: number }> {
  const { n, sensors = 40, workers = 3, bug = null } = options;
  const random = seededRandom(options.seed);
  await using database = await createTestDatabase('monitor');
  await using proxy = await startFaultProxy(database.url);
  // The monitor that receives goes through the proxy as well: its receipts are commits, too.
  const own = createPool(proxy.url, 6, { answerMs });
  try {
    await using fleet = await createFleet({
      database: own,
      workerUrl: proxy.url,
      sensors,
      workers,
      leaseSeconds: 2,
      answerMs,
      bug,
      random,
    });
    const counts: Record<string, number> = {};
    let isOver = false;
    let uploads = 0;
    const sending = (async () => {
      while (!isOver) {
        await fleet.send(40);
        uploads += 40;
      }
    })();
    try {
      for (let done = 0; done < n; ) {
        // With a bug planted only what it is about: answers of commits that never come.
        const fault = bug ? 'reset_after_commit' : proxyFaults[Math.floor(random() * proxyFaults.length)]!;
        if (!(await proxy.inject(fault, random))) continue;
        counts[fault] = (counts[fault] ?? 0) + 1;
        done += 1;
        if (done % 50 === 0) options.report(`${done} faults, ${uploads} uploads`);
        await new Promise((wake) => setTimeout(wake, random() * 300));
      }
    } finally {
      isOver = true;
      await sending;
    }
    const isSettled = await fleet.settle(300_000);
    const offences = [...(isSettled ? [] : ['uploads were left unapplied']), ...(await fleet.judge())];
    return { offences, counts, uploads };
  } finally {
    await own.db.destroy();
  }
}
