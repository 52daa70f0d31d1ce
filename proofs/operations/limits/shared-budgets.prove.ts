/**
 * Requests of many keys at random over several real processes (`./svc operations serve --only web`) with one PostgreSQL and
 * one Redis: no key is allowed one request too many within any window, and none is refused too early.
 *
 * Keys are asked for unequally, so that some use a part of their budget and others many times of it, and often several
 * times at once, at different processes. Short runs have a window of seconds instead of a minute.
 */
import { Agent, request } from 'node:http';
import { fileURLToPath } from 'node:url';
import { startRedis } from '#service-kit/redis/testing/redis-server.ts';
import { createRandom, type Random } from '../customer-api/random.ts';
import { createInstallation, type Installation } from './installation.ts';
import { type Asked, type BudgetRules, judgeBudget } from './judge-budgets.ts';
import type { PlantedFault } from './planted-faults.ts';

export const name = 'shared-budgets';

export interface SharedBudgetsOptions {
  /** Requests. */
  n: number;
  seed: number;
  report(line: string): void;
}

const processes = 4;
/** From so many requests on a run takes minutes, and the window is that of the program. */
const longRun = 50_000;
const plantedRequests = 6_000;
const connections = 32;
const plants = fileURLToPath(new URL('./planted-faults.ts', import.meta.url));

export const faults: readonly PlantedFault[] = [
  'processes alone',
  'read then write',
  'fixed windows',
  'refused ones count',
  'half a window',
  'clocks of processes',
];

export async function prove(options: SharedBudgetsOptions) {
  await using installation = await createInstallation();
  const result = await runBudgets(installation, options, null);
  for (const offence of result.offences) options.report(offence);
  options.report(`${result.allowed} allowed, ${result.refused} refused, ${result.keys} keys`);
  let caught = 0;
  for (const fault of faults) {
    const planted = { ...options, n: plantedRequests, report: () => {} };
    const { offences } = await runBudgets(installation, planted, fault);
    options.report(`planted ${fault}: ${offences[0] ?? 'NOT NOTICED'}`);
    if (offences.length > 0) caught += 1;
  }
  return {
    claim: `${result.keys} keys over ${processes} processes: none is allowed one request too many within any window (${result.allowed} allowed), none is refused too early (${result.refused} refused), and the headers say so`,
    tried: options.n,
    failures: result.offences.length,
    plantedBugsCaught: `${caught} of ${faults.length}`,
  };
}

export interface BudgetsResult {
  offences: string[];
  allowed: number;
  refused: number;
  keys: number;
}

/** One run on an installation, with processes and a Redis of its own. */
export async function runBudgets(
  installation: Installation,
  { n, seed, report }: SharedBudgetsOptions,
  fault: PlantedFault | null,
): Promise<BudgetsResult> {
  const isLong = n >= longRun;
  const rules: BudgetRules = { capacity: isLong ? 120 : 20, windowMs: isLong ? 60_000 : 2_000 };
  await using redis = await startRedis();
  const random = createRandom(seed);
  const tokens = await installation.addKeys(isLong ? 150 : 10);
  const orders = { fault, windowMs: isLong ? null : rules.windowMs };
  const environment = {
    SVC_LIMITS_URL: redis.url,
    SVC_API_KEY_REQUESTS_PER_MINUTE: String(rules.capacity),
    ...(fault === null && isLong ? {} : { NODE_OPTIONS: `--import=${plants}` }),
    SVC_PROOF_ORDERS: JSON.stringify(orders),
  };
  const serving = await Promise.all(
    Array.from({ length: processes }, () => installation.start('web', environment)),
  );
  const urls = serving.map(({ url }) => url);
  const { asked, faults: broken } = await askAtRandom({ n, random, urls, tokens, report });
  const codes = await Promise.all(serving.map((one) => one.end()));
  const offences = [...broken];
  for (const [i, one] of asked.entries()) offences.push(...judgeBudget(`key ${i}`, one, rules));
  if (codes.some((code) => code !== 0)) offences.push(`processes ended with ${codes.join(', ')}`);
  for (const { log } of serving) {
    const alone = log.find((line) => line.includes('this process alone'));
    if (fault === null && alone) offences.push(`a process counted alone: ${alone}`);
  }
  const all = asked.flat();
  const count = (was: boolean | null) => all.filter(({ isAllowed }) => isAllowed === was).length;
  const [allowed, refused, lost] = [count(true), count(false), count(null)];
  // A connection that was left open for long may be closed under a request.
  if (lost > n / 1_000) offences.push(`${lost} requests had no answer`);
  if (allowed === 0 || refused === 0) offences.push('the run showed nothing: no refusal, or nothing else');
  return { offences, allowed, refused, keys: tokens.length };
}

interface Asking {
  n: number;
  random: Random;
  urls: readonly string[];
  tokens: readonly string[];
  report(line: string): void;
}

/** Sends the requests; what was asked of each key, and answers that are neither 200 nor 429. */
async function askAtRandom({ n, random, urls, tokens, report }: Asking) {
  const agent = new Agent({ keepAlive: true, maxSockets: connections, scheduling: 'fifo' });
  const asked: Asked[][] = tokens.map(() => []);
  const faults: string[] = [];
  let sent = 0;
  const send = async (key: number, url: string) => {
    const sentMs = performance.now();
    const answer = await ask(agent, url, tokens[key]!).catch(() => null);
    const receivedMs = performance.now();
    if (answer === null) {
      asked[key]!.push({ sentMs, receivedMs, isAllowed: null, remaining: 0, resetSeconds: 1 });
      return;
    }
    const { status, rateLimit } = answer;
    const [, remaining, reset] = /^"key";r=(\d+);t=(\d+)$/.exec(rateLimit) ?? [];
    if ((status !== 200 && status !== 429) || remaining === undefined) {
      faults.push(`key ${key}: ${status} ${rateLimit}`);
      return;
    }
    const [left, resetSeconds] = [Number(remaining), Number(reset)];
    asked[key]!.push({ sentMs, receivedMs, isAllowed: status === 200, remaining: left, resetSeconds });
  };
  const work = async () => {
    while (sent < n && faults.length < 5) {
      const key = Math.floor(random.next() ** 2 * tokens.length);
      // Several at once, at different processes.
      const burst = Math.min(n - sent, random.next() < 0.2 ? 1 + random.below(8) : 1);
      sent += burst;
      const urlsOfBurst = Array.from({ length: burst }, () => urls[random.below(urls.length)]!);
      await Promise.all(urlsOfBurst.map((url) => send(key, url)));
      if (sent % 20_000 < burst) report(`${sent} requests`);
    }
  };
  await Promise.all(Array.from({ length: connections }, work));
  agent.destroy();
  return { asked, faults };
}

function ask(agent: Agent, url: string, token: string): Promise<{ status: number; rateLimit: string }> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` };
    request(`${url}/api/v2/key`, { agent, headers }, (response) => {
      response.resume();
      response.once('end', () =>
        resolve({ status: response.statusCode!, rateLimit: String(response.headers.ratelimit) }),
      );
      response.once('error', reject);
    })
      .once('error', reject)
      .end();
  });
}
