// Slow: starts a dozen processes as containers do.
/** The processes of the compose file and of the manifests, started as they say, on a real PostgreSQL and Redis. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { until } from '#service-kit/testing/until.ts';
import { claimPort } from '../testing/free-port.ts';
import { type OwnPostgres, startOwnPostgres } from '../testing/own-postgres.ts';
import { type ComposeService, layOutImage, readCompose } from './compose.ts';
import { type Container, type Deployment, deploymentsOf, readManifests } from './manifests.ts';
import { type ProcessOrder, type StartedProcess, startProcess } from './started.ts';

const makeSecrets = fileURLToPath(new URL('../../packaging/containers/make-secrets', import.meta.url));
let folder: string;
let image: string;
let postgres: OwnPostgres;
let redis: ChildProcess;
const secret = (name: string) => readFileSync(join(folder, 'secrets', name), 'utf8').trim();

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-containers-'));
  image = join(folder, 'image');
  mkdirSync(image);
  layOutImage(image);
  postgres = await startOwnPostgres();
  const redisPort = await claimPort();
  const secrets = join(folder, 'secrets');
  const hosts = { SVC_POSTGRES_HOST: postgres.host, SVC_REDIS_HOST: `127.0.0.1:${redisPort}` };
  execFileSync('sh', [makeSecrets, secrets], { env: { ...process.env, ...hosts } });
  postgres.setPasswords(secrets);
  // As the compose file does: with the file that make-secrets wrote.
  const here = ['--port', String(redisPort), '--bind', '127.0.0.1', '--dir', folder];
  redis = spawn('redis-server', [join(secrets, 'redis.conf'), ...here], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(redis.stdout!, 'data');
});
after(async () => {
  redis?.kill('SIGKILL');
  await postgres?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

test('make-secrets keeps secrets that exist, and lets its owner and the group of the programs read them', () => {
  const read = () => ['operations-database-url', 'operations-secrets.key', 'redis.conf'].map(secret);
  const made = read();
  execFileSync('sh', [makeSecrets, join(folder, 'secrets')]);
  assert.deepEqual(read(), made);
  assert.equal(statSync(join(folder, 'secrets/monitor-secrets.key')).mode & 0o777, 0o440);
  assert.notEqual(secret('monitor-secrets.key'), secret('operations-secrets.key'));
});

type Order = ProcessOrder & { probe: () => Promise<boolean> };

/** Starts all, asks each until its probe succeeds, stops all; `probe` asks as the file says. */
async function runAll(orders: readonly Order[]) {
  const started: StartedProcess[] = orders.map((order) => startProcess(image, order));
  try {
    for (const [i, { name, probe }] of orders.entries())
      await until(`${name} is healthy`, 120_000, probe, () =>
        started[i]!.child.exitCode !== null ? started[i]!.log.join('') : false,
      );
    const codes = await Promise.all(started.map((one) => one.end()));
    const logs = started.map(({ name, log }) => `${name}: ${log.join('')}`).join('\n');
    assert.deepEqual(
      codes,
      started.map(() => 0),
      logs,
    );
    for (const { name, log } of started.filter((one) => one.name.endsWith('-web')))
      assert.match(
        log.join(''),
        /limits are counted in the limit store/,
        `${name} has the password of Redis`,
      );
    for (const name of ['redis-password', 'operations-secrets.key'])
      assert.ok(!logs.includes(secret(name)), 'no secret is logged');
  } finally {
    for (const { child } of started) child.kill('SIGKILL');
  }
}

const isAnswering = async (url: string) => (await fetch(url).catch(() => null))?.ok === true;

async function claimPorts(...ports: string[]): Promise<Record<string, number>> {
  return Object.fromEntries(await Promise.all(ports.map(async (port) => [port, await claimPort()])));
}

/** What a service of the compose file has beside its roles (`schemas.test.ts`: every role runs). */
function setUpOfService(service: ComposeService): string {
  return JSON.stringify({ ...service, command: service.command![0] });
}

test('each kind of process of the compose file starts as it says, and its health check succeeds', async () => {
  const { services } = readCompose({ SVC_PAYMENT_GATEWAY: 'test' });
  const all = Object.entries(services).filter(([, { image }]) => image.startsWith('svc:'));
  const ours = [...new Map(all.toReversed().map((one) => [setUpOfService(one[1]), one])).values()];
  assert.equal(ours.length, 4, 'with pages and without, of both programs');
  const orders = ours.map(async ([name, service]) => {
    const program = service.command![0]!;
    const web = program === 'operations' ? '8080' : '8090';
    const ports = await claimPorts(service.command!.includes('web') ? web : '8081');
    const data = join(folder, `${program}-data`);
    mkdirSync(data, { recursive: true });
    const [kind, command, ...args] = service.healthcheck!.test;
    assert.deepEqual([kind, command], ['CMD', 'node'], name);
    const here = args.map((arg) =>
      arg.replace(/127\.0\.0\.1:(\d+)/, (_, port) => `127.0.0.1:${ports[port]}`),
    );
    const url = /http:[^'"]+/.exec(here.join(' '))![0];
    // The command starts a Node.js, which would be dear while nothing answers.
    const probe = async () => (await isAnswering(url)) && spawnSync(process.execPath, here).status === 0;
    const replaced = { '/run/secrets': join(folder, 'secrets'), '/data': data };
    return { name, args: service.command!, environment: service.environment!, replaced, ports, probe };
  });
  const ready = await Promise.all(orders);
  // One of each program first: it compiles what the others of it use.
  const isFirst = ({ args }: Order, i: number) => ready.findIndex((one) => one.args[0] === args[0]) === i;
  await runAll(ready.filter(isFirst));
  await runAll(ready.filter((order, i) => !isFirst(order, i)));
  assert.ok(!existsSync(join(folder, 'operations-data/operations/secrets.key')), 'the mounted key is used');
});

/** The environment that a container gets from config maps and secrets, with the values of this test. */
function environmentOf(container: Container): Record<string, string> {
  const given: Record<string, string> = {};
  for (const source of container.envFrom) {
    const name = 'secretRef' in source ? source.secretRef.name : source.configMapRef.name;
    const kind = 'secretRef' in source ? 'Secret' : 'ConfigMap';
    const found = readManifests().find((one) => one.kind === kind && one.metadata.name === name)!;
    Object.assign(given, found[kind === 'Secret' ? 'stringData' : 'data']);
  }
  const filledIn: Record<string, string> = {
    SVC_OPERATIONS_DATABASE_URL: secret('operations-database-url'),
    SVC_MONITOR_DATABASE_URL: secret('monitor-database-url'),
    SVC_LIMITS_URL: secret('limits-url'),
    SVC_LIVE_STORE_URL: secret('live-store-url'),
  };
  for (const key of Object.keys(given)) given[key] = filledIn[key] ?? given[key]!;
  return given;
}

/** What a Deployment has beside its roles, which it has as in the compose file (`schemas.test.ts`). */
function setUpOf({ spec }: Deployment): string {
  const [{ args, envFrom, ports, volumeMounts, startupProbe, livenessProbe, readinessProbe }] =
    spec.template.spec.containers;
  return JSON.stringify([args[0], envFrom, ports, volumeMounts, startupProbe, livenessProbe, readinessProbe]);
}

test('each kind of Deployment starts as its manifest says, and its probes succeed', async () => {
  const kinds = new Map(deploymentsOf(readManifests()).map((one) => [setUpOf(one), one]));
  assert.equal(kinds.size, 4, 'with pages and without, of both programs');
  const orders = [...kinds.values()].map(async ({ metadata, spec }) => {
    const [container] = spec.template.spec.containers;
    const containerPort = Object.fromEntries(container.ports.map((port) => [port.name, port.containerPort]));
    const ports = await claimPorts(...container.ports.map((port) => String(port.containerPort)));
    const data = join(folder, metadata.name);
    mkdirSync(data, { recursive: true });
    const program = container.args[0]!;
    const key = join(folder, `${program}-key`);
    mkdirSync(key, { recursive: true });
    const keyFile = join(key, 'secrets.key');
    if (!existsSync(keyFile)) writeFileSync(keyFile, secret(`${program}-secrets.key`), { mode: 0o440 });
    const probe = async () => {
      const { startupProbe, livenessProbe, readinessProbe } = container;
      for (const { httpGet } of [startupProbe, livenessProbe, readinessProbe]) {
        const url = `http://127.0.0.1:${ports[containerPort[httpGet.port]!]}${httpGet.path}`;
        if (!(await isAnswering(url))) return false;
      }
      return true;
    };
    const replaced = { '/run/secrets/key': key, '/data': data };
    return {
      name: metadata.name,
      args: container.args,
      environment: environmentOf(container),
      replaced,
      ports,
      probe,
    };
  });
  await runAll(await Promise.all(orders));
});
