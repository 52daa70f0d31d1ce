/**
 * Two workers refresh the copy of the vulnerability database. The one that holds the lease is frozen while an answer is under way,
 * for longer than its lease; the other takes over, finds a newer state of the database, and the first goes on, in the
 * middle of the other's pass or behind it. What is stored is the newer state, and no two requests are within six seconds.
 */

import type { RefreshResult } from '#monitor/vulnerabilities/refresh.ts';
import { listProducts, readAdvisories } from '#monitor/vulnerabilities/store.ts';
import { type NvdRecord, records } from '#monitor/vulnerabilities/testing/records/index.ts';
import { createRefreshWorld, type RefreshWorld } from '#monitor/vulnerabilities/testing/refresh-world.ts';
import { plantSql } from '#operations/testing/planted-sql.ts';

export const name = 'vulnerability-takeovers';

const pauseMsMin = 6_000;
const leaseMs = 301_000;
/** Due in each round; together they take six requests. */
const due = ['openssh', 'nginx', 'mariadb'];
const requests = 6;

export async function prove(options: { n: number; seed: number; report: (line: string) => void }) {
  const failures = await run(options);
  const caught = [
    await isCaught(options.seed, (text) =>
      text.includes('idle_in_transaction_session_timeout')
        ? text.replace('term = $2 and expires_at > svc_now()', '$2::bigint is not null')
        : text,
    ),
    await isCaught(options.seed, (text) =>
      text.replace('where not_before <= svc_now() returning', 'where true returning'),
    ),
  ];
  return {
    claim:
      'a worker that is frozen past its lease stores nothing over its follower, and requests stay six seconds apart',
    tried: options.n,
    failures,
    plantedBugsCaught: `${caught.filter(Boolean).length} of ${caught.length}`,
  };
}

async function isCaught(seed: number, rewrite: (text: string) => string): Promise<boolean> {
  using _ = plantSql(rewrite);
  return (await run({ n: 8, seed, report: () => {} })) > 0;
}

async function run({
  n,
  seed,
  report,
}: {
  n: number;
  seed: number;
  report: (line: string) => void;
}): Promise<number> {
  await using world = await createRefreshWorld();
  const random = seeded(seed);
  let failures = 0;
  for (let round = 0; round < n; round += 1) {
    const fault = await takeOver(world, round, random);
    if (fault === null) continue;
    failures += 1;
    report(`round ${round}: ${fault}`);
  }
  return failures;
}

async function takeOver(world: RefreshWorld, round: number, random: () => number): Promise<string | null> {
  await prepare(world, `old ${round}`);
  const frozenAt = 1 + Math.floor(random() * requests);
  const resumedAt = 1 + Math.floor(random() * (requests + 1));
  const frozen = Promise.withResolvers<void>();
  const resume = Promise.withResolvers<void>();
  let sent = 0;
  const first = world
    .createRefresher({
      around: async (fetch) => {
        const page = await fetch();
        sent += 1;
        if (sent === frozenAt) {
          frozen.resolve();
          await resume.promise;
        }
        return page;
      },
    })
    .runOnce(() => {});
  await frozen.promise;
  await world.pass(leaseMs);
  await world.nvd.setRecords(revisionOf(`new ${round}`));
  let answered = 0;
  const resumeFirst = async () => {
    resume.resolve();
    await first;
  };
  const second = await world
    .createRefresher({
      around: async (fetch) => {
        answered += 1;
        if (answered === resumedAt) await resumeFirst();
        return fetch();
      },
    })
    .runOnce(() => {});
  await resumeFirst();
  return judge(world, round, (await first) as RefreshResult, second);
}

async function prepare(world: RefreshWorld, revision: string): Promise<void> {
  await world.nvd.setRecords(revisionOf(revision));
  await world.nvd.asked();
  // Some time in which nothing is asked, and no lease of the round before.
  await world.pass(leaseMs);
  const { pool } = world.database;
  await pool.query('truncate vulnerability_products, vulnerability_advisories');
  await pool.query(
    `insert into vulnerability_products (product, refreshed_at)
     select product, svc_now() from unnest($1::text[]) as p(product)`,
    [['httpd', 'mysql', 'postgresql', 'redis', 'mongodb', 'memcached', 'vsftpd', 'proftpd']],
  );
}

const revisionOf = (summary: string): NvdRecord[] =>
  records.map((record) => ({
    cve: { ...record.cve, descriptions: [{ lang: 'en', value: summary }] },
  }));

async function judge(
  world: RefreshWorld,
  round: number,
  first: RefreshResult,
  second: RefreshResult | 'held',
): Promise<string | null> {
  const { db } = world.database;
  if (second === 'held') return 'the second worker did not get the lease';
  if (second.error !== null) return `the second worker failed: ${second.error}`;
  if (first.error === null) return 'the frozen worker noticed nothing';
  const times = (await world.nvd.asked()).map(({ atMs }) => atMs);
  const gap = Math.min(...times.slice(1).map((at, i) => at - times[i]!));
  if (gap < pauseMsMin) return `two requests were ${gap} ms apart`;
  const stored = await listProducts(db);
  for (const product of due) {
    const isOld = first.refreshed.includes(product);
    const expected = isOld ? `old ${round}` : `new ${round}`;
    const found = (await readAdvisories(db, product)) ?? [];
    const other = found.find(({ summary }) => summary !== expected);
    if (found.length === 0 || other)
      return `${product} is not as the ${isOld ? 'first' : 'second'} worker read it`;
    if (stored.find((one) => one.product === product)?.error)
      return `${product} has an error of the frozen worker`;
  }
  return null;
}

function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
