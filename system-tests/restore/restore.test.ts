// Slow: restores a whole installation.
/**
 * A whole installation is backed up as docs/operating/backup.md says, destroyed, and restored as docs/operating/restore.md
 * says: customers, money, keys, secrets, minutes, and a sensor that went on meanwhile. Operations has its embedded database,
 * the monitor one on a PostgreSQL of the operator's.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createClient } from '#clients/typescript/index.ts';
import { until } from '#service-kit/testing/until.ts';
import { type OwnPostgres, startOwnPostgres } from '../testing/own-postgres.ts';
import { signIn, type Visitor } from '../testing/people.ts';
import { type Environment, type Seeded, type Serving, seed, serve, svc } from './installation.ts';
import { bytesOf, openSensor } from './sensor.ts';

const minutesShown = 10;
const programs = ['operations', 'monitor'] as const;

/** Where the databases are, and the commands of the pages for them. */
async function createPlace(t: TestContext, dataDir: string, secrets: string) {
  const urlFile = join(secrets, 'monitor-database-url');
  const environment: Environment = {
    SVC_DATA_DIR: dataDir,
    SVC_OPERATIONS_PORT: '0',
    SVC_MONITOR_PORT: '0',
    SVC_MONITOR_DATABASE_URL_FILE: urlFile,
    SVC_PAYMENT_GATEWAY: 'test',
    SVC_ALLOW_DOCUMENTATION_ADDRESSES: '1',
    SVC_LOG_FORMAT: 'json',
    SVC_NVD_URL: '',
  };
  const runSvc = (...args: string[]) =>
    execFileSync(svc, args, { env: { PATH: process.env.PATH, ...environment }, encoding: 'utf8' });
  let server: OwnPostgres;
  const start = async () => {
    server = await startOwnPostgres();
    for (const name of programs)
      writeFileSync(
        join(secrets, `${name}-database-url`),
        `postgres://svc_${name}:secret@${server.host}/${name}\n`,
      );
    server.setPasswords(secrets);
  };
  mkdirSync(secrets);
  await start();
  t.after(() => server[Symbol.asyncDispose]());
  return {
    environment,
    backUp(folder: string) {
      runSvc('operations', 'backup', join(folder, 'operations.backup'));
      server.run('pg_dump', '--format=custom', `--file=${join(folder, 'monitor.dump')}`, 'monitor');
    },
    /** Everything of the installation is gone before it. */
    async restore(folder: string) {
      runSvc('operations', 'restore', join(folder, 'operations.backup'));
      await server[Symbol.asyncDispose]();
      await start();
      server.run('pg_restore', '--exit-on-error', '--dbname=monitor', join(folder, 'monitor.dump'));
    },
  };
}

/** Inbound bits a second of the site, as its page draws them; null where nothing is known. */
async function readMinutes(operator: Visitor, { siteId }: Seeded, first: number): Promise<(number | null)[]> {
  const time = (minute: number) => new Date(minute * 1000).toISOString().slice(0, 16);
  const range = `range=custom&from=${time(first)}&to=${time(first + minutesShown * 60)}`;
  const chart = await operator.getJson<{ series: { values: (number | null)[] }[] }>(
    `/sites/${siteId}/traffic.json?${range}`,
  );
  return chart.series[0]!.values.slice(0, minutesShown);
}

/** What people and programs see of it. */
async function look({ operationsUrl, monitorUrl }: Serving, seeded: Seeded, first: number) {
  const customer = await signIn(operationsUrl, seeded.customer);
  const billing = (await customer.get('/client/billing/')).text;
  const [, credit] = />\s*Credit[\s\S]{0,300}?\$(\d[\d.]*)/.exec(billing) ?? [];
  assert.ok(credit, 'the page shows the credit');
  const { servers } = await createClient({ url: operationsUrl, key: seeded.key }).listServers();
  const operator = await signIn(monitorUrl, seeded.operator);
  return {
    credit: Number(credit),
    servers: servers.map(({ id, name, status, public_ips }) => ({ id, name, status, public_ips })),
    connection: (await operator.get('/operations')).status,
    inbound: await readMinutes(operator, seeded, first),
  };
}

test('an installation with an embedded database and its own PostgreSQL is restored, and goes on', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-restore-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const dataDir = join(folder, 'data');
  const place = await createPlace(t, dataDir, join(folder, 'secrets'));
  const backup = join(folder, 'backup');
  mkdirSync(backup);
  const seeded = await seed(place.environment);
  const first = Math.floor(Date.now() / 60_000) * 60 - 1_800;
  const sensor = openSensor(join(folder, 'sensor'), first);
  t.after(() => sensor.close());
  let serving = await serve(place.environment);
  t.after(() => serving.kill());
  const see = () => look(serving, seeded, first);
  // A restored lease of a process that is gone ends by itself, within five minutes.
  const untilShown = async (count: number) => {
    const operator = await signIn(serving.monitorUrl, seeded.operator);
    await until(`${count} minutes are shown`, 360_000, async () => {
      return (await readMinutes(operator, seeded, first))[count - 1] != null;
    });
  };

  const api = createClient({ url: serving.operationsUrl, key: seeded.key });
  const made = await api.createServer({ plan: 'small', image: 'debian-12', name: 'kept' });
  await api.waitForServer(made.id, 'running');
  sensor.collect(4);
  await sensor.deliver(serving.monitorUrl, seeded.credential);
  await untilShown(4);
  const before = await see();
  place.backUp(backup);
  for (const name of programs) {
    copyFileSync(join(dataDir, name, 'secrets.key'), join(backup, `${name}-secrets.key`));
  }
  // Acknowledged after the backup: the sensor deletes them.
  sensor.collect(2);
  await sensor.deliver(serving.monitorUrl, seeded.credential);
  await untilShown(6);
  // Collected while the monitor is away.
  serving.kill();
  sensor.collect(1);
  rmSync(dataDir, { recursive: true });

  await place.restore(backup);
  for (const name of programs) {
    mkdirSync(join(dataDir, name), { recursive: true });
    cpSync(join(backup, `${name}-secrets.key`), join(dataDir, name, 'secrets.key'));
  }
  serving = await serve(place.environment);
  const { credit, ...rest } = await see();
  assert.deepEqual({ credit: before.credit, ...rest }, before, 'the server, the connection, the minutes');
  // Hours of the server are charged when they begin, which may be meanwhile.
  assert.ok(before.credit - credit >= 0 && before.credit - credit < 0.1, `${before.credit}, then ${credit}`);
  sensor.collect(2);
  await sensor.deliver(serving.monitorUrl, seeded.credential);
  await untilShown(9);
  const after = await see();
  const expected = [0, 1, 2, 3, null, null, 6, 7, 8, null].map((i) =>
    i === null ? null : (bytesOf(i) * 8) / 60,
  );
  assert.deepEqual(after.inbound, expected, 'what was acknowledged after the backup is a gap');
  const sequences = sensor.receipts.map(({ sequence }) => sequence);
  assert.deepEqual(
    sequences,
    sequences.map((_, i) => i + 1),
    'the sensor numbers on',
  );
  assert.ok(
    sensor.receipts.every(({ receipt, set_aside }) => receipt === 'accepted' && set_aside === undefined),
  );
  const again = createClient({ url: serving.operationsUrl, key: seeded.key });
  const next = await again.createServer({ plan: 'small', image: 'debian-12', name: 'after' });
  await again.waitForServer(next.id, 'running');
  await serving.stop();
});
