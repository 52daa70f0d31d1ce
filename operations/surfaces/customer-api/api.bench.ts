/**
 * What an authenticated, metered call costs beside a bare Fastify route that reads the same server with one statement and
 * returns the same JSON: same run, one process, real PostgreSQL with every safety on, 100 connections from another thread,
 * each with a server of its own, over 25 keys of one account. Then `304`s of the catalogue, orders, and reads of a server and of a list of
 * 200 servers by 1, 16 and 64 clients, with prepared statements and with statements that are planned at each call, in turn.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import Fastify from 'fastify';
import { type RawBuilder, sql } from 'kysely';
import { systemClock } from '#common/clock/index.ts';
import { startParts } from '#common/lifecycle/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { schemas } from '#contracts/customer-api/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createDemoWorld } from '../../commands/seed-demo/index.ts';
import { compose, partsOf } from '../../composition.ts';
import { readOperationsSettings } from '../../config.ts';
import type { Features } from '../../features.ts';
import { programDir } from '../../platform.ts';
import type { LoadOrder, LoadResult } from './testing/worker.ts';
import { showServer } from './views.ts';

export const name = 'api';

const rounds = 3;
const connections = 100;
const keyCount = 25;

interface Demo {
  /** Operations' folder in the data directory. */
  dir: string;
  url: string;
  port: number;
  features: Features;
  serverId: number;
  keys: string[];
  stop(): Promise<void>;
}

/** The demo world, whose customer has keys that no limit holds up. */
async function startDemo(prepares: boolean): Promise<Demo> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const settings = readOperationsSettings({
    SVC_DATA_DIR: folder,
    SVC_OPERATIONS_PORT: '0',
    SVC_API_KEY_REQUESTS_PER_MINUTE: '1000000',
    SVC_API_DEPLOYS_PER_HOUR: '1000000',
    API_INCLUDED_REQUESTS_PER_MONTH: '1000000',
    SVC_PREPARED_STATEMENTS: prepares ? '1' : '0',
  });
  const features = await compose(settings, { reporter: silentReporter });
  const http = await features.createServer();
  const dir = programDir(settings);
  const demoWorld = createDemoWorld({ features, reporter: silentReporter, clock: systemClock, dir });
  const stop = await startParts(partsOf(features, http, [demoWorld]), silentReporter);
  const demo = JSON.parse(await readFile(join(dir, 'demo.json'), 'utf8')) as { tenant_id: number };
  const [server] = await features.servers.listServers(systemActor, demo.tenant_id, {
    order: 'oldest',
    limit: 1,
  });
  return {
    dir,
    url: http.url,
    port: Number(new URL(http.url).port),
    features,
    serverId: server!.id,
    keys: await issueKeys(features, demo.tenant_id),
    async stop() {
      await stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export async function run(report: (line: string) => void): Promise<void> {
  const [prepared, planned] = [await startDemo(true), await startDemo(false)];
  const worker = new Worker(new URL('./testing/worker.ts', import.meta.url));
  worker.setMaxListeners(0);
  const measure: Measure = (port, paths, keys, clients, known) => {
    const headers = keys.map((key) => ({
      authorization: `Bearer ${key}`,
      ...(known !== undefined && { 'if-none-match': known }),
    }));
    const order = { port, paths, headers, connections: clients, status: known === undefined ? 200 : 304 };
    return ask(worker, { ...order, warmUpMs: 500, durationMs: 2_000 });
  };
  for (const demo of [prepared, planned]) await copyServer(demo);
  await compareWithBare(prepared, measure, report);
  for (const path of ['/api/v2/plans', '/api/v2/locations', '/api/v2/prices'])
    await timeUnchanged(prepared, path, measure, report);
  await timeOrders(prepared, report);
  for (const path of [`/api/v2/servers/${prepared.serverId}`, '/api/v2/servers?limit=200'])
    for (const clients of [1, 16, 64]) {
      const runs = { planned: [] as Cost[], prepared: [] as Cost[] };
      for (let round = 0; round < rounds; round += 1) {
        runs.planned.push(await costOf(planned, () => measure(planned.port, [path], planned.keys, clients)));
        runs.prepared.push(
          await costOf(prepared, () => measure(prepared.port, [path], prepared.keys, clients)),
        );
      }
      for (const [how, costs] of Object.entries(runs)) {
        report(`GET ${path}, ${clients} clients, ${how.padEnd(8)} ${wordsOf(costs)}`);
      }
    }
  await worker.terminate();
  for (const demo of [prepared, planned]) await demo.stop();
}

const copies = 200;
/** The first of them. */
const copiedId = 1_000_001;

/** So many servers of one account that a page of the list is full; they are copies of one, without addresses. */
async function copyServer({ features, serverId }: Demo): Promise<void> {
  const copy = (table: string, of: RawBuilder<unknown>, changes: RawBuilder<unknown>) =>
    sql`insert into ${sql.table(table)} overriding system value
      select (jsonb_populate_record(null::${sql.table(table)}, to_jsonb(t) || ${changes})).*
      from ${sql.table(table)} t, generate_series(0, ${copies - 1}) i where t.id = ${of}`.execute(
      features.db(),
    );
  const order = sql`(select order_id from servers where id = ${serverId})`;
  await copy('server_orders', order, sql`jsonb_build_object('id', ${copiedId}::bigint + i)`);
  await copy(
    'servers',
    sql`${serverId}`,
    sql`jsonb_build_object('id', ${copiedId}::bigint + i, 'order_id', ${copiedId}::bigint + i)`,
  );
}

/** What one caller waits for the `304` of a read that it has had before. */
async function timeUnchanged(
  demo: Demo,
  path: string,
  measure: Measure,
  report: (line: string) => void,
): Promise<void> {
  const { url, port, keys } = demo;
  const first = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${keys[0]}` } });
  await first.text();
  const costs: Cost[] = [];
  for (let round = 0; round < rounds; round += 1)
    costs.push(await costOf(demo, () => measure(port, [path], [keys[0]!], 1, first.headers.get('etag')!)));
  report(
    `304 of GET ${path}: ${(1_000 / median(costs.map(([rate]) => rate))).toFixed(2)} ms, ${wordsOf(costs)}`,
  );
}

const orders = 40;

/** What one caller waits for the answer to an order, while the servers ordered before are being made. */
async function timeOrders({ url, keys }: Demo, report: (line: string) => void): Promise<void> {
  const headers = { authorization: `Bearer ${keys[0]}`, 'content-type': 'application/json' };
  const times: number[] = [];
  for (let number = 1; number <= orders; number += 1) {
    const body = JSON.stringify({ plan: 'kvm-1', image: 'debian-13', name: `order-${number}` });
    const begun = performance.now();
    const answer = await fetch(`${url}/api/v1/servers`, { method: 'POST', headers, body });
    const text = await answer.text();
    times.push(performance.now() - begun);
    if (answer.status !== 201) throw new Error(text);
  }
  report(`POST /api/v1/servers: ${median(times).toFixed(1)} ms, median of ${orders} orders`);
}

/** Requests a second; milliseconds of processor time of PostgreSQL and of this process for each, the warm-up's included. */
type Cost = readonly [rate: number, database: number, own: number];

async function costOf(demo: Demo, measure: () => Promise<LoadResult>): Promise<Cost> {
  const before = [await databaseMs(demo), process.cpuUsage()] as const;
  const { answers, all, seconds } = await measure();
  const { user, system } = process.cpuUsage(before[1]);
  return [answers / seconds, ((await databaseMs(demo)) - before[0]) / all, (user + system) / 1_000 / all];
}

/** Processor time of the demo's PostgreSQL so far: of the server and of its connections, those that are closed included. */
async function databaseMs({ dir }: Demo): Promise<number> {
  const server = (await readFile(join(dir, 'postgres/data/postmaster.pid'), 'utf8')).split('\n')[0]!;
  const children = (await readFile(`/proc/${server}/task/${server}/children`, 'utf8')).trim().split(' ');
  const ticksOf = async (pid: string, places: readonly number[]) => {
    const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return places.reduce((sum, place) => sum + Number(fields[place] ?? 0), 0);
  };
  // User and system time, and those of children that have ended.
  const all = [ticksOf(server, [11, 12, 13, 14]), ...children.map((pid) => ticksOf(pid, [11, 12]))];
  return (await Promise.all(all)).reduce((sum, ticks) => sum + ticks, 0) * 10;
}

/** As a reader compares them: medians. */
function wordsOf(costs: readonly Cost[]): string {
  const [rate, database, own] = [0, 1, 2].map((place) => median(costs.map((cost) => cost[place]!)));
  return `${Math.round(rate!)} requests/s, ${database!.toFixed(2)} ms of processor time of PostgreSQL and ${own!.toFixed(2)} ms of ours`;
}

type Measure = (
  port: number,
  paths: readonly string[],
  keys: readonly string[],
  clients: number,
  /** The tag of an answer that the caller has: each answer is a `304` then. */
  known?: string,
) => Promise<LoadResult>;

async function compareWithBare(demo: Demo, measure: Measure, report: (line: string) => void): Promise<void> {
  const { features } = demo;
  const bare = Fastify();
  bare.get<{ Params: { id: string } }>(
    '/servers/:id',
    { schema: { response: { 200: schemas.Server } } },
    async (request) => {
      const found = await features.servers.findServer(systemActor, null, Number(request.params.id));
      return showServer(found!, 'USD');
    },
  );
  await bare.listen({ host: '127.0.0.1', port: 0 });
  const { port } = bare.server.address() as AddressInfo;
  const own = Array.from({ length: connections }, (_, index) => `/servers/${copiedId + index}`);
  const full = own.map((path) => `/api/v2${path}`);
  await requireSameJson(`http://127.0.0.1:${port}${own[0]}`, `${demo.url}${full[0]}`, demo.keys[0]!);
  const costs = { bare: [] as Cost[], api: [] as Cost[] };
  for (let round = 0; round < rounds; round += 1) {
    costs.bare.push(await costOf(demo, () => measure(port, own, demo.keys, connections)));
    costs.api.push(await costOf(demo, () => measure(demo.port, full, demo.keys, connections)));
  }
  await bare.close();
  const ratios = costs.api.map(([rate], round) => rate / costs.bare[round]![0]);
  report(`bare route, one statement:     ${wordsOf(costs.bare)}`);
  report(`authenticated and metered GET: ${wordsOf(costs.api)}`);
  report(`ratio (median of ${rounds} rounds):   ${median(ratios).toFixed(2)}`);
}

/** The two routes must be doing the same work, or their ratio says nothing. */
async function requireSameJson(bareUrl: string, apiUrl: string, key: string): Promise<void> {
  const [bare, api] = await Promise.all([
    fetch(bareUrl),
    fetch(apiUrl, { headers: { authorization: `Bearer ${key}` } }),
  ]);
  const texts = [await bare.text(), await api.text()];
  if (texts[0] !== texts[1]) throw new Error(`the routes answer differently:\n${texts.join('\n')}`);
}

async function issueKeys(features: Features, tenantId: number): Promise<string[]> {
  const { accounts, apiKeys } = features;
  const tenant = (await accounts.findTenant(tenantId))!;
  const person = await accounts.createPerson(systemActor, {
    email: 'bench@example.test',
    name: 'Bench',
    password: 'a person who measures',
  });
  await accounts.addMember(systemActor, tenant.organizationId, person.id);
  const issued = Array.from({ length: keyCount }, (_, index) =>
    apiKeys.issueKey(systemActor, {
      organizationId: tenant.organizationId,
      personId: person.id,
      name: `bench ${index}`,
      scope: 'full',
      tenantIds: [tenantId],
    }),
  );
  return (await Promise.all(issued)).map(({ token }) => token);
}

async function ask(worker: Worker, order: LoadOrder): Promise<LoadResult> {
  const answered = new Promise<LoadResult>((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });
  worker.postMessage(order);
  const result = await answered;
  if (result.failures > 0)
    throw new Error(`${result.failures} of ${result.answers} answers were not ${order.status}`);
  return result;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
