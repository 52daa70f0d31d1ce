/**
 * What an authenticated, metered call costs beside a bare Fastify route that reads the same server with one named statement
 * and returns the same JSON: same run, one process, real PostgreSQL with every safety on, 100 connections from another
 * thread, over 25 keys of one account.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import Fastify from 'fastify';
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

const rounds = 5;
const connections = 100;
const keyCount = 25;

export async function run(report: (line: string) => void): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const settings = readOperationsSettings({
    SVC_DATA_DIR: folder,
    SVC_OPERATIONS_PORT: '0',
    SVC_API_KEY_REQUESTS_PER_MINUTE: '1000000',
    API_INCLUDED_REQUESTS_PER_MONTH: '1000000',
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
  const id = server!.id;
  const keys = await issueKeys(features, demo.tenant_id);

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
  const worker = new Worker(new URL('./testing/worker.ts', import.meta.url));
  const measure = (port: number, path: string, headers: Record<string, string>[]) =>
    ask(worker, { port, path, headers, connections, warmUpMs: 500, durationMs: 3_000 });
  const barePort = (bare.server.address() as AddressInfo).port;
  const apiPort = Number(new URL(http.url).port);
  const headers = keys.map((key) => ({ authorization: `Bearer ${key}` }));
  await requireSameJson(
    `http://127.0.0.1:${barePort}/servers/${id}`,
    `${http.url}/api/v2/servers/${id}`,
    keys[0]!,
  );

  const rates = { bare: [] as number[], api: [] as number[] };
  for (let round = 0; round < rounds; round += 1) {
    rates.bare.push(await measure(barePort, `/servers/${id}`, [{}]));
    rates.api.push(await measure(apiPort, `/api/v2/servers/${id}`, headers));
  }
  await worker.terminate();
  await bare.close();
  await stop();
  await rm(folder, { recursive: true, force: true });

  const ratios = rates.api.map((rate, round) => rate / rates.bare[round]!);
  report(`bare route, one named statement:     ${Math.round(median(rates.bare))} requests/s`);
  report(`authenticated and metered GET:       ${Math.round(median(rates.api))} requests/s`);
  report(`ratio (median of ${rounds} rounds):         ${median(ratios).toFixed(2)}`);
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
      scope: 'read',
      tenantIds: [tenantId],
    }),
  );
  return (await Promise.all(issued)).map(({ token }) => token);
}

async function ask(worker: Worker, order: LoadOrder): Promise<number> {
  const answered = new Promise<LoadResult>((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });
  worker.postMessage(order);
  const result = await answered;
  if (result.failures > 0) throw new Error(`${result.failures} of ${result.answers} answers were not 200`);
  return result.answers / result.seconds;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
