// Slow: kills a ClickHouse while uploads are applied.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createReporter } from '#common/reporter/index.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { captureMinute, createSpool, host, testMinute, usageRow } from '#monitor/testing/index.ts';
import { postUpload } from '#monitor/testing/post-upload.ts';
import { type MonitorServer, startMonitorServer } from '#monitor/testing/server.ts';
import { startHttpEngine } from './testing/start-http-engine.ts';

const address = '192.0.2.10';
const uploadsSent = 6;

async function createWorld() {
  const engine = await startHttpEngine();
  const lines: string[] = [];
  const reporter = createReporter({
    program: 'monitor',
    format: 'json',
    level: 'debug',
    write: (line) => void lines.push(line),
  });
  const server = await startMonitorServer({ SVC_FACTS_URL: engine.url }, { reporter });
  await server.monitor.factEngine.part.start();
  const { monitor, siteId } = server;
  const { token } = await monitor.sensors.createToken(systemActor, siteId);
  const node = { host_name: 'node-1', node: 'node-1', sensor_version: '0.1.0' };
  const { credential } = (await monitor.sensors.enrol({ token, ...node }))!;
  const spool = createSpool();
  return {
    engine,
    server,
    log: () => lines.join('\n'),
    /** Sends uploads of one minute each, like a sensor, of the same minutes at each call; returns what it is answered. */
    async send(): Promise<(string | undefined)[]> {
      const receipts: (string | undefined)[] = [];
      for (let i = 0; i < uploadsSent; i += 1) {
        const usage = [usageRow({ name: 'example.net', client: address, serverBytes: 100, clientBytes: 10 })];
        const minute = captureMinute({ minute: testMinute + 60 * i, hosts: [host(address, 100, 10)], usage });
        receipts.push(await postUpload(server.url, credential, spool.upload([minute])));
      }
      return receipts;
    },
    /** Total bytes to the address by the facts, and by its applications. */
    async read(): Promise<{ hosts: number; applications: number; minutes: number }> {
      const range = { siteId, address, fromMinute: testMinute, toMinute: testMinute + 60 * uploadsSent };
      const { sightings } = await monitor.facts.readAddress(range);
      const used = await monitor.facts.sumAddressApplications(range);
      const sum = (all: readonly (number | null)[]) => all.reduce<number>((total, one) => total + one!, 0);
      return {
        hosts: sum(sightings.map((one) => one.rxBytes)),
        applications: sum(used.map((one) => one.inboundBytes)),
        minutes: sightings.length,
      };
    },
    async [Symbol.asyncDispose]() {
      await monitor.factEngine.part.stop();
      await server[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
    },
  };
}

const states = (server: MonitorServer) =>
  server.database.pool
    .query<{ state: string; attempts: number }>('select state, attempts from inbox_uploads order by id')
    .then(({ rows }) => rows);
const pending = Array.from({ length: uploadsSent }, () => ({ state: 'pending', attempts: 0 }));
/** After so many calls of `send`. */
const applied = (times: number) =>
  Array.from({ length: uploadsSent * times }, () => ({ state: 'applied', attempts: 0 }));
const accepted = pending.map(() => 'accepted');
const everything = (times: number) => ({
  hosts: 100 * uploadsSent * times,
  applications: 100 * uploadsSent * times,
  minutes: uploadsSent,
});

test('NET-7.1: ClickHouse is killed before or after it stores an insert: sensors are answered, uploads wait, and nothing is lost or doubled', async () => {
  await using world = await createWorld();
  const { engine, server } = world;
  for (const [turn, fault] of [
    { how: 'killed before', after: 1 } as const,
    { how: 'killed after', after: 2 } as const,
  ].entries()) {
    engine.tell({ kind: 'fault', ...fault });
    assert.deepEqual(await world.send(), accepted);
    await assert.rejects(server.monitor.inbox.drain(), { code: 'intake.consumer_away' });
    await engine.ended();
    const waiting = [...applied(turn), ...pending];
    assert.deepEqual(await states(server), waiting, 'nothing was applied, and no attempt was counted');
    const shown = await server.monitor.health.read();
    assert.match(shown.facts!.problem!, /^Traffic facts can't be read: ClickHouse, .* does not answer/);
    assert.ok(shown.problems.includes(shown.facts!.problem!));
    // It is still away: so again.
    await assert.rejects(server.monitor.inbox.drain(), { code: 'intake.consumer_away' });
    await engine.restart();
    await server.monitor.inbox.drain();
    assert.deepEqual(await states(server), applied(turn + 1), fault.how);
    assert.deepEqual(await world.read(), everything(turn + 1), fault.how);
    const { facts } = await server.monitor.health.read();
    assert.equal(facts!.problem, null);
  }
  const page = await (await server.signIn('viewer')).get('/system');
  assert.match(page.text, /Traffic facts[\s\S]*They are kept on ClickHouse[\s\S]*Answers in[\s\S]* ms/);
  assert.ok(!world.log().includes(engine.password), 'the password is in no log');
});

test('an insert that ClickHouse refuses counts no attempt and is repeated', async () => {
  await using world = await createWorld();
  const { engine, server } = world;
  for (const [turn, error] of [
    { code: 243, name: 'NOT_ENOUGH_SPACE' },
    { code: 164, name: 'READONLY' },
    { code: 252, name: 'TOO_MANY_PARTS' },
    { code: 241, name: 'MEMORY_LIMIT_EXCEEDED' },
  ].entries()) {
    engine.tell({ kind: 'fault', how: 'refused', after: 3, error });
    assert.deepEqual(await world.send(), accepted);
    // A batch that failed is applied again one by one.
    await server.monitor.inbox.drain();
    assert.deepEqual(await states(server), applied(turn + 1), error.name);
    assert.deepEqual(await world.read(), everything(turn + 1), error.name);
  }
});
