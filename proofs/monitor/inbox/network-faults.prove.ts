/**
 * A proxy between the monitor's processes and their database delays, falls silent, and cuts connections just before a
 * COMMIT or just before its answer. Whether a commit in doubt took place is read again, never guessed: 0 lost, 0 doubled.
 */
import { seededRandom } from '#common/random/index.ts';
import { createPool } from '#service-kit/postgres/database.ts';
import { createTestDatabase } from '#service-kit/testing/index.ts';
import { proxyFaults, startFaultProxy } from './fault-proxy.ts';
import { createFleet } from './ingest-fleet.ts';

export const name = 'inbox-network-faults';

export interface NetworkOptions {
  /** Faults. */
  n: number;
  seed: number;
  report(line: string): void;
  sensors?: number;
  workers?: number;
}

/** A connection that says nothing for so long is given up; the program waits two minutes. */
const answerMs = 2_500;

export async function prove(options: NetworkOptions) {
  const { offences, counts, uploads } = await breakNetwork(options);
  for (const offence of offences) options.report(offence);
  const kinds = Object.entries(counts).map(([kind, count]) => `${count} ${kind.replaceAll('_', ' ')}`);
  return {
    claim: `${uploads} uploads, connections to the database broken (${kinds.join(', ')}): 0 lost, 0 doubled`,
    tried: options.n,
    failures: offences.length,
  };
}

/** Breaks connections `n` times while uploads come in. */
export async function breakNetwork(
  options: NetworkOptions,
): Promise<{ offences: string[]; counts: Record<string, number>; uploads: number }> {
  const { n, sensors = 40, workers = 3 } = options;
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
        const fault = proxyFaults[Math.floor(random() * proxyFaults.length)]!;
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
