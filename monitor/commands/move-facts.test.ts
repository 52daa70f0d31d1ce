// Slow: stops and kills a command that moves all facts, on a PostgreSQL of its own.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { nameApplication } from '#monitor/applications/index.ts';
import { createClickhouseFacts } from '#monitor/facts/clickhouse/clickhouse-facts.ts';
import { createFactClient } from '#monitor/facts/clickhouse/connect.ts';
import { type HttpEngine, startHttpEngine } from '#monitor/facts/clickhouse/testing/start-http-engine.ts';
import { type FactStore, openScope, parseFactsUrl } from '#monitor/facts/index.ts';
import { type BenchDatabase, startBenchDatabase } from '#monitor/facts/testing/bench-monitor.ts';
import { compareAnswers } from '#monitor/facts/testing/conformance.ts';
import { minutesOf } from '#monitor/facts/testing/engines.ts';
import type { MemoryFacts } from '#monitor/facts/testing/memory/memory-facts.ts';
import { randomUpload, seededBelow } from '#monitor/facts/testing/random-uploads.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { addFactCommands } from './fact-commands.ts';

const program = fileURLToPath(new URL('../../svc.ts', import.meta.url));

let bench: BenchDatabase;
before(async () => {
  bench = await startBenchDatabase();
});
after(() => bench[Symbol.asyncDispose]());

type Running = ReturnType<typeof start>;

function start({ folder, url }: BenchDatabase, args: readonly string[], factsUrl = '') {
  const child = spawn(process.execPath, [program, 'monitor', ...args], {
    env: {
      ...process.env,
      SVC_DATA_DIR: folder,
      SVC_MONITOR_DATABASE_URL: url,
      SVC_FACTS_URL: factsUrl,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = Promise.all([text(child.stdout!), text(child.stderr!), once(child, 'exit')]).then(
    // Beside what it says on success it logs that these databases belong to a superuser.
    ([out, err, [code]]) => ({ code: code as number | null, said: code === 0 ? out : `${out}${err}` }),
  );
  return {
    child,
    /** Its exit code and what it said, when it has ended. */
    ended,
  };
}

/** Waits for the engine, and fails with what the command said where it ends before. */
async function whileRunning(frozen: Promise<void>, { ended }: Running): Promise<void> {
  const early = ended.then(({ said }) => Promise.reject(new Error(said)));
  early.catch(() => {});
  await Promise.race([frozen, early]);
}

/** Facts of two days at random in PostgreSQL; returns where another engine answers differently. */
async function fillPostgres({ monitor, database }: BenchDatabase) {
  const siteId = (await monitor.sites.create(systemActor, 'Test site')).id;
  const { token } = await monitor.sensors.createToken(systemActor, siteId);
  const node = { host_name: 'node-1', node: 'node-1', sensor_version: '0.1.0' };
  const { credential } = (await monitor.sensors.enrol({ token, ...node }))!;
  const { id: sensorId } = (await monitor.sensors.authenticate(credential))!;
  const random = seededBelow(1);
  const hour = Math.floor(Date.now() / 3_600_000) * 3600;
  const minutes = [hour - 3600, hour - 7200, hour - 15 * 86_400];
  const origins = [{ siteId, sensorId }];
  const uploads = Array.from({ length: 10 }, () => randomUpload(random, { origins, minutes }));
  await monitor.facts.prepare(minutesOf(uploads));
  await database.db.transaction().execute((trx) => monitor.facts.append(uploads, openScope(trx)));
  await monitor.facts.rollUp('all');
  return async (facts: FactStore, other: FactStore) => {
    await facts.rollUp('settled');
    const store = { facts, origins, append: () => Promise.reject(new Error('not here')) };
    return await compareAnswers(store, {
      ...{ model: other as unknown as MemoryFacts, questions: 1, random, minutes, stage: 'moved' },
    });
  };
}

async function freezeAt(engine: HttpEngine, after: number, command: () => Running): Promise<Running> {
  engine.tell({ kind: 'fault', how: 'frozen', after });
  const frozen = engine.frozen();
  const running = command();
  await whileRunning(frozen, running);
  return running;
}

test('move-facts and delete-facts refuse what is no place, without repeating it', async (t) => {
  const { mock } = t.mock.method(process.stdout, 'write', () => true);
  const run = async (...words: string[]) => {
    const program = new Command();
    addFactCommands(program, async (command) => {
      const { folder, url } = bench;
      const settings = { SVC_DATA_DIR: folder, SVC_MONITOR_DATABASE_URL: url, SVC_LOG_LEVEL: 'error' };
      assert.equal(await command(settings), 0);
    });
    await program.parseAsync(words, { from: 'user' });
  };
  for (const [words, expected] of [
    [['move-facts'], /move-facts takes either --to or --cancel/],
    [
      ['move-facts', '--to', 'mysql://facts:secret-word@host/facts'],
      /--to must be a URL such as .*, or the word postgres/,
    ],
    [['move-facts', '--to', 'postgres'], /The traffic facts are in PostgreSQL already/],
    [['delete-facts', '--from', 'postgres'], /are in PostgreSQL, so they are not deleted/],
  ] as const)
    await assert.rejects(run(...words), ({ message }: Error) => {
      assert.match(message, expected);
      return !message.includes('secret-word');
    });
  mock.resetCalls();
  await run('move-facts', '--cancel');
  assert.deepEqual(
    mock.calls.map((call) => call.arguments[0]),
    ['No move is under way.\n'],
  );
});

test('move-facts that is stopped by Ctrl-C or killed goes on, switches, and delete-facts removes the copy that is left', async () => {
  await using engine = await startHttpEngine();
  const { monitor, database } = bench;
  const compare = await fillPostgres(bench);
  const client = createFactClient(parseFactsUrl(engine.url));
  await using _client = { [Symbol.asyncDispose]: () => client.close() };
  // A view that takes long is right all the same.
  const patient = { nameApplication, exploreMs: 600_000 };
  const clickhouse = createClickhouseFacts({ client, db: () => database.db, ...patient });
  await clickhouse.migrate();
  const run = (args: readonly string[], factsUrl?: string) => start(bench, args, factsUrl);
  const move = ['move-facts', '--to', engine.url];
  const stopped = await freezeAt(engine, 2, () => run(move));
  stopped.child.kill('SIGINT');
  // Its present insert is answered when it has said that it stops.
  await once(stopped.child.stdout!, 'data');
  engine.tell({ kind: 'thawed' });
  const first = await stopped.ended;
  assert.equal(first.code, 1, first.said);
  assert.match(
    first.said,
    /Stopping after the present piece.*Stopped\. The same command goes on from here\./s,
  );
  const killed = await freezeAt(engine, 3, () => run(move));
  killed.child.kill('SIGKILL');
  await killed.ended;
  // What it had sent is stored after it was killed.
  engine.tell({ kind: 'thawed' });
  assert.match((await monitor.factEngine.move()).text!, /^The traffic facts are being copied to ClickHouse/);
  await database.pool.query('update leases set expires_at = svc_now()');
  assert.match((await monitor.factEngine.move()).problem!, /has stopped after \d+ days? of sites\./);
  const { code, said } = await run(move).ended;
  assert.equal(code, 0, said);
  assert.match(said, /\d+ of \d+ days of sites, [\d,]+ rows, [\d,]+ rows\/s/);
  assert.match(said, /Comparing \d+ days? of sites in both engines\./);
  assert.match(said, /The traffic facts are in ClickHouse at .* now\.\nSet SVC_FACTS_URL to the URL of --to/);
  assert.ok(!said.includes(engine.password));
  await clickhouse.migrate();
  assert.deepEqual(await compare(clickhouse, monitor.facts), []);
  const deleted = await run(['delete-facts', '--from', 'postgres'], engine.url).ended;
  assert.deepEqual([deleted.code, deleted.said.trim()], [0, 'Deleted.']);
  const back = await run(['move-facts', '--to', 'postgres'], engine.url).ended;
  assert.equal(back.code, 0, back.said);
  assert.match(back.said, /The traffic facts are in PostgreSQL now\.\nRemove SVC_FACTS_URL/);
});
