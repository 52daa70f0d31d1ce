/**
 * What the explorer costs over 24 hours of a site with 1,000 servers, 10 million facts of applications and as many connections: pages
 * of a real `serve` with a session, from the request to the last byte, and the size of the first paint. Processor time is that of `serve` and PostgreSQL
 * together, since a busy machine makes every answer late. Beside that, what peer networks cost when an hour is rolled up.
 *
 * `SVC_BENCH_FACTS` makes it smaller, `SVC_BENCH_ROUNDS` shorter; `SVC_BENCH_PLANS=3` shows the plans of the three slowest views, and
 * `SVC_BENCH_FOLDER` names a folder that keeps the world for the next run, `SVC_BENCH_ONLY=customer` asks only for what has this text.
 */
import { loadavg } from 'node:os';
import pg from 'pg';
import {
  type BenchDatabase,
  type BenchServer,
  signIn,
  startBenchDatabase,
  startBenchServer,
} from '#monitor/facts/testing/bench-monitor.ts';
import { benchPeers } from '#monitor/facts/testing/bench-peers.ts';
import { familySeconds, processorSeconds } from '#monitor/facts/testing/processor-time.ts';
import { freeCombinations, openingViews } from './testing/bench-queries.ts';
import { type BusySite, makeBusySite } from './testing/busy-site.ts';
import { showPlans } from './testing/show-plans.ts';

export const name = 'explorer';

const facts = Number(process.env.SVC_BENCH_FACTS ?? 10_000_000);
const rounds = Number(process.env.SVC_BENCH_ROUNDS ?? 20);
const plans = Number(process.env.SVC_BENCH_PLANS ?? 0);
const only = process.env.SVC_BENCH_ONLY ?? '';
const openingMs = 300;
const freeMs = 2000;
const firstPaintKiB = 150;

export async function run(report: (line: string) => void): Promise<void> {
  await using bench = await startBenchDatabase(process.env.SVC_BENCH_FOLDER);
  const site = await makeBusySite(bench, facts);
  await makeDay(bench, site, report);
  await benchPeers(bench, site.siteId, report);
  await using server = await startBenchServer(bench);
  const headers = await signIn(bench);
  const cpu = () => processorSeconds(server.pid) + familySeconds(bench.pid());
  const path = `/sites/${site.siteId}/explore`;
  const measured: Measured[] = [];
  for (const [what, query] of openingViews) {
    for (const [part, end] of [
      ['page', ''],
      ['chart', '.json'],
    ] as const) {
      if (!`${what}, ${part}`.includes(only)) continue;
      const url = `${path}${end}${query ? `?${query}` : ''}`;
      measured.push(
        await measure(server, headers, cpu, `${what}, ${part}`, { url, query, bar: openingMs }, report),
      );
    }
  }
  for (const query of freeCombinations.filter((one) => one.includes(only)))
    measured.push(
      await measure(server, headers, cpu, query, { url: `${path}?${query}`, query, bar: freeMs }, report),
    );
  report(await firstPaint(server, headers, path));
  const isOver = (one: Measured) => one.p95 > one.bar;
  report(
    `${measured.filter(isOver).length} of ${measured.length} over their bar; load ${loadavg()
      .map((one) => one.toFixed(1))
      .join(', ')}`,
  );
  const slowest = measured.toSorted((a, b) => b.p95 / b.bar - a.p95 / a.bar).slice(0, plans);
  for (const { query } of slowest) await showPlans(bench, site.siteId, query, report);
}

/** Facts by COPY, then rolled up until nothing is left but the minutes that came meanwhile. */
async function makeDay(bench: BenchDatabase, site: BusySite, report: (line: string) => void): Promise<void> {
  const { pool } = bench.database;
  for (const round of ['the day', 'what came meanwhile']) {
    const begun = performance.now();
    await site.fillUpToNow();
    const filled = performance.now();
    await bench.monitor.facts.rollUp('none');
    // As if the facts had come in their time: what has just been marked would wait.
    for (const table of ['unjudged_minutes', 'rolled_tens', 'rolled_hours', 'rolled_days'])
      await pool.query(
        `update ${table} set marked_at = svc_now() - interval '1 hour' where marked_at > svc_now() - interval '1 hour'`,
      );
    await bench.monitor.facts.rollUp('settled');
    const seconds = (from: number, to: number) => ((to - from) / 1000).toFixed(0);
    report(
      `${round}: made in ${seconds(begun, filled)} s, rolled up in ${seconds(filled, performance.now())} s`,
    );
  }
  await tidy(bench);
  const { rows } = await pool.query<{ text: string }>(
    `select (select count(*) from application_facts) || ' facts, ' || (select count(*) from endpoint_pairs) || ' connections, ' ||
       (select count(*) from host_minutes) || ' minutes of addresses; ' || pg_size_pretty(pg_database_size(current_database())) as text`,
  );
  report(rows[0]!.text);
}

/**
 * What the autovacuum and the checkpointer do in their time: they would write the new rows to disk under the first views. Of a
 * whole database it may take longer than the pool waits for an answer.
 */
async function tidy({ adminUrl }: BenchDatabase): Promise<void> {
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  const { rows } = await client.query<{ name: string }>(
    `select relid::regclass::text as name from pg_stat_user_tables where n_mod_since_analyze > 0 or n_ins_since_vacuum > 0`,
  );
  for (const { name } of rows) await client.query(`vacuum analyze ${name}`);
  await client.query('checkpoint');
  await client.end();
}

interface Measured {
  query: string;
  p95: number;
  bar: number;
}

async function measure(
  server: BenchServer,
  headers: Readonly<Record<string, string>>,
  cpu: () => number,
  what: string,
  { url, query, bar }: { url: string; query: string; bar: number },
  report: (line: string) => void,
): Promise<Measured> {
  const took: number[] = [];
  let bytes = 0;
  let cpuBefore = 0;
  for (let round = -2; round < rounds; round += 1) {
    if (round === 0) cpuBefore = cpu();
    const answer = await server.get(url, headers);
    // Stopped after its time, which is over any bar.
    if (answer.status !== 200 && answer.status !== 422)
      throw new Error(`${url} was a ${answer.status}: ${answer.text.slice(0, 300)}`);
    bytes = answer.bytes;
    if (round >= 0) took.push(answer.ms);
    // One that takes this long needs no 20 rounds.
    if (round >= 2 && took[0]! > 3 * freeMs) break;
  }
  const cpuMs = ((cpu() - cpuBefore) * 1000) / took.length;
  took.sort((a, b) => a - b);
  const [p50, p95] = [0.5, 0.95].map((part) => took[Math.ceil(took.length * part) - 1]!) as [number, number];
  const verdict = p95 <= bar ? 'within' : 'OVER';
  const figures = `p50 ${p50.toFixed(0).padStart(5)} ms, p95 ${p95.toFixed(0).padStart(5)} ms, processor ${cpuMs.toFixed(0).padStart(5)} ms`;
  report(`${what.padEnd(56)} ${figures}, ${verdict} ${bar} ms, ${(bytes / 1024).toFixed(0)} KiB`);
  return { query, p95, bar };
}

/** The page with the styles and scripts that it names, as they are sent. */
async function firstPaint(
  server: BenchServer,
  headers: Readonly<Record<string, string>>,
  path: string,
): Promise<string> {
  const page = await server.get(path, headers);
  const named = [...page.text.matchAll(/<(?:script|link)\b[^>]*\b(?:src|href)="(\/[^"]+)"/g)];
  const urls = [...new Set(named.map((one) => one[1]!.replaceAll('&amp;', '&')))];
  const parts = await Promise.all(urls.map((url) => server.get(url, headers)));
  const kib = (page.bytes + parts.reduce((sum, part) => sum + part.bytes, 0)) / 1024;
  const verdict = kib <= firstPaintKiB ? 'within' : 'OVER';
  return `first paint: ${kib.toFixed(0)} KiB in ${1 + urls.length} files, ${verdict} ${firstPaintKiB} KiB`;
}
