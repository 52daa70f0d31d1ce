/**
 * A random one of four ingest workers is killed every half to two seconds while 200 sensors send. Nothing may be
 * lost, nothing doubled, and no upload may be given up for it.
 */
import { seededRandom } from '#common/random/index.ts';
import { createTestDatabase } from '#service-kit/testing/index.ts';
import { createFleet } from './ingest-fleet.ts';

export const name = 'inbox-worker-kills';

export interface KillOptions {
  /** Kills. */
  n: number;
  seed: number;
  report(line: string): void;
  sensors?: number;
  workers?: number;
  /** Uploads for each kill. */
  uploads?: number;
  pauseMs?: readonly [number, number];
}

export async function prove(options: KillOptions) {
  const { offences, uploads } = await killWorkers(options);
  for (const offence of offences) options.report(offence);
  return {
    claim: `${uploads} uploads of 200 sensors to 4 workers, one of which is killed again and again: 0 lost, 0 doubled`,
    tried: options.n,
    failures: offences.length,
  };
}

/** Kills workers `n` times while uploads come in, lets the last ones finish, and returns what is wrong. */
export async function killWorkers(options: KillOptions): Promise<{ offences: string[]; uploads: number }> {
  const { n, sensors = 200, workers = 4, uploads = 667, pauseMs = [500, 2000] } = options;
  const random = seededRandom(options.seed);
  await using database = await createTestDatabase('monitor');
  await using fleet = await createFleet({
    database,
    workerUrl: database.url,
    sensors,
    workers,
    leaseSeconds: 2,
    random,
  });
  // Sensors never stop while there are kills to come: what is sent follows them, and they follow the clock.
  for (let kill = 1; kill <= n; kill += 1) {
    const sending = fleet.send(uploads);
    await new Promise((wake) => setTimeout(wake, pauseMs[0] + random() * (pauseMs[1] - pauseMs[0])));
    fleet.replace(fleet.workers[Math.floor(random() * workers)]!);
    await sending;
    if (kill % 25 === 0) options.report(`${kill} kills, ${kill * uploads} uploads`);
  }
  const isSettled = await fleet.settle(300_000);
  return {
    offences: [...(isSettled ? [] : ['uploads were left unapplied']), ...(await fleet.judge())],
    uploads: n * uploads,
  };
}
