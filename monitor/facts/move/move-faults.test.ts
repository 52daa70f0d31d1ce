// Slow: interrupts and kills moves of facts at every step.
/** What happens to a move that is interrupted, and to uploads meanwhile. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { silentReporter } from '#common/reporter/index.ts';
import { nameApplication } from '#monitor/applications/index.ts';
import { compose } from '#monitor/composition.ts';
import { readConfig } from '#monitor/config.ts';
import { captureMinute, createSpool, host, usageRow } from '#monitor/testing/index.ts';
import { testWrapper } from '#service-kit/secrets/testing/test-secrets.ts';
import { type HttpEngine, startHttpEngine } from '../clickhouse/testing/start-http-engine.ts';
import { createFacts, parseFactsUrl } from '../index.ts';
import type { MoveStep } from './move-days.ts';
import { createMoveWorld, type MoveWorld } from './testing/move-world.ts';

let engine: HttpEngine;
before(async () => {
  engine = await startHttpEngine();
});
after(() => engine[Symbol.asyncDispose]());

const address = '192.0.2.99';

/** Ends the move before the nth of these steps. */
function endAt(step: MoveStep, nth = 1) {
  let seen = 0;
  return async (at: MoveStep) => {
    if (at !== step) return;
    seen += 1;
    if (seen === nth) throw new Error(`ended at ${step}`);
  };
}

/** A process that is set to ClickHouse, on the database of the world. */
function onClickhouse({ monitor, engine }: MoveWorld) {
  const { db, pool, reader } = monitor.database;
  return compose(readConfig({ SVC_FACTS_URL: engine.url, SVC_MAC_VENDOR_LOOKUP_URL: '' }), {
    database: { name: 'database', start: async () => {}, stop: async () => {}, db, pool, reader },
    reporter: silentReporter,
    keyWrapper: testWrapper,
    inbox: { retrySeconds: 0 },
  });
}

const ends: readonly [MoveStep, number][] = [
  ['day', 2],
  ['rows', 3],
  ['copied', 2],
  ['check', 1],
  ['hold', 1],
  ['rest', 1],
  ['switch', 1],
];

for (const to of ['clickhouse', 'postgres'] as const)
  test(`a move to ${to} that ends anywhere goes on, with what was uploaded and judged meanwhile`, async () => {
    await using world = await createMoveWorld(engine);
    const from = to === 'clickhouse' ? 'postgres' : 'clickhouse';
    const { model } = world;
    // Each day is copied by itself: the newest and an old one are as good as four.
    const [newest] = world.minutes as [number];
    const minutes = world.minutes.filter((one) => newest - one < 3600 || newest - one > 7 * 86_400);
    const add = async (count: number, into: 'postgres' | 'clickhouse' = from) => {
      const uploads = world.uploads(count, minutes);
      await world.append(into, uploads);
      await model.append(uploads);
    };
    /** Uploads at random may hold nothing that is kept: so many until so many days have changed. */
    const addUntil = async (days: number) => {
      do await add(2);
      while ((await world.monitor.rows('select distinct site_id, day from fact_move_changes')).length < days);
    };
    if (from === 'clickhouse') await world.startOnClickhouse();
    await add(12);
    await world.monitor.facts.rollUp('all');
    // The way back ends at every third of them.
    for (const [step, nth] of ends.filter((_, i) => to === 'clickhouse' || i % 3 === 0)) {
      await assert.rejects(world.move(to, { onStep: endAt(step, nth) }), new RegExp(`ended at ${step}`));
      await addUntil(2);
      await world.place();
    }
    // Uploads during the copy itself, of days that were copied and of those that were not.
    const during = new Map<MoveStep, number>();
    await world.move(to, {
      async onStep(step) {
        const times = (during.get(step) ?? 0) + 1;
        during.set(step, times);
        // Everything is copied when the switch is tried for the second time: it has to see by itself that something came.
        if (times !== (step === 'switch' ? 2 : 1)) return;
        if (step === 'switch') await addUntil(1);
        else await add(2);
        await world.place();
      },
    });
    assert.deepEqual([...during.keys()].sort(), ['check', 'copied', 'day', 'hold', 'rest', 'rows', 'switch']);
    assert.ok(during.get('switch')! > 2);
    await add(5, to);
    assert.deepEqual(await world.compare(to), []);
  });

test('a ClickHouse that is killed in the middle of a move loses and doubles nothing; a copy that differs is named, and nothing is switched', async () => {
  await using world = await createMoveWorld(engine);
  const uploads = world.uploads(8);
  await world.append('postgres', uploads);
  await world.model.append(uploads);
  for (const [how, after] of [
    ['killed before', 2],
    ['killed after', 4],
  ] as const) {
    world.engine.tell({ kind: 'fault', how, after });
    await assert.rejects(world.move('clickhouse'), { code: 'facts.unavailable' });
    await world.engine.ended();
    await world.engine.restart();
  }
  await assert.rejects(world.move('clickhouse', { onStep: endAt('check') }), /ended/);
  // Of a day that has ended: today is copied anew by every run.
  const ended = `minute < toStartOfDay(toDateTime(${world.minutes[0]}, 'UTC'))`;
  await world.command(
    `alter table host_minutes delete where ${ended} and rx_bytes = (select max(rx_bytes) from host_minutes where ${ended}) settings mutations_sync = 1`,
  );
  await assert.rejects(world.move('clickhouse'), (error: Error & { code: string }) => {
    assert.equal(error.code, 'facts.move_differs');
    assert.match(error.message, /site \d+, \d{4}-\d\d-\d\d, host_minutes: \d+ rows and \d+ in the copy/);
    assert.match(error.message, /site \d+, \d{4}-\d\d-\d\d, host_minutes: \d+ bytes and \d+ in the copy/);
    return true;
  });
  const state = await world.monitor.factEngine.move();
  assert.match(state.problem!, /has stopped after \d+ days? of sites\. The copy differs .* --cancel\./);
  // The source is still the engine in use, and nothing waits.
  const more = world.uploads(3);
  await world.append('postgres', more);
  await world.model.append(more);
  assert.deepEqual(await world.monitor.rows('select 1 from inbox_holds'), []);
  // The next run copies it again.
  await world.move('clickhouse');
  assert.deepEqual(await world.compare('clickhouse'), []);
});

test('uploads that arrive while the last days are copied wait, and the engine that is in use then applies them once', async () => {
  await using world = await createMoveWorld(engine);
  const { monitor } = world;
  const [at] = world.minutes as [number];
  const spool = createSpool();
  const upload = (rx: number) =>
    spool.upload([
      captureMinute({
        minute: at,
        hosts: [host(address, rx, 0)],
        usage: [usageRow({ client: address, serverBytes: rx, clientBytes: 0 })],
      }),
    ]);
  const states = async () =>
    (
      await monitor.rows<{ state: string; attempts: number }>(
        'select state, attempts from inbox_uploads order by id',
      )
    ).map(({ state, attempts }) => `${state} ${attempts}`);
  const [first, before, held] = [upload(1), upload(20), upload(300)] as const;
  await monitor.apply(first);
  let isHeld = false;
  let hasWaited = false;
  await world.move('clickhouse', {
    async onStep(step) {
      // It arrives before the hold and is applied by the move.
      if (step === 'hold' && !isHeld) await monitor.send(before);
      isHeld ||= step === 'hold';
      if (step !== 'rest' || hasWaited) return;
      hasWaited = true;
      assert.equal(await monitor.send(held), 'accepted');
      await monitor.inbox.drain();
      assert.deepEqual(await states(), ['applied 0', 'applied 0', 'pending 0']);
      assert.match(
        (await monitor.factEngine.move()).text!,
        /are being copied to ClickHouse.*while uploads wait/,
      );
    },
  });
  // This process is set to PostgreSQL: it applies nothing more, and says why.
  await assert.rejects(monitor.inbox.drain(), { code: 'intake.consumer_away' });
  assert.deepEqual(await states(), ['applied 0', 'applied 0', 'pending 0']);
  assert.match(
    (await monitor.health.read()).problems.join('\n'),
    /Uploads wait: The traffic facts of this installation are in ClickHouse at .*Set SVC_FACTS_URL to it/,
  );
  await monitor.rows('update leases set expires_at = svc_now()');
  const next = onClickhouse(world);
  await next.factEngine.part.start();
  try {
    await next.inbox.drain();
    // The one attempt is that of the worker whose lease ran out.
    assert.deepEqual(await states(), ['applied 0', 'applied 0', 'applied 1']);
    for (const one of [first, before, held]) assert.equal(await monitor.send(one), 'duplicate');
    await next.inbox.drain();
    const range = { siteId: monitor.siteId, address, fromMinute: at, toMinute: at + 60 };
    assert.deepEqual(
      (await next.facts.readAddress(range)).sightings.map((one) => one.rxBytes),
      [321],
    );
    assert.deepEqual(
      (await next.facts.sumAddressApplications(range)).map((one) => one.inboundBytes),
      [321],
    );
    assert.equal((await next.factEngine.move()).problem, null);
  } finally {
    await next.factEngine.part.stop();
  }
});

test('a target that does not answer or holds facts, and a move to where the facts are, are refused with what to do; so is a process that is set to another engine than the one in use', async () => {
  await using world = await createMoveWorld(engine);
  const { monitor } = world;
  const db = () => monitor.database.db;
  const start = async (url: string | null) => {
    const { part } = createFacts({ db, nameApplication }, url === null ? null : parseFactsUrl(url));
    await part.start();
    await part.stop();
  };
  await start(null);
  await assert.rejects(start(engine.url), {
    code: 'facts.moved',
    message:
      /are in PostgreSQL, and this process is set to ClickHouse at .*Remove SVC_FACTS_URL from the settings/,
  });
  await world.append('postgres', world.uploads(5));
  const away = engine.url.replace(/:\d+\/facts$/, ':1/facts');
  await assert.rejects(world.move('clickhouse', { url: away }), (error: Error) => {
    assert.match(error.message, /127\.0\.0\.1:1 does not answer: ECONNREFUSED\. Check --to\./);
    assert.ok(!error.message.includes(engine.password));
    return true;
  });
  await world.command("insert into host_minutes (site_id, minute, address) values (1, now(), '')");
  await assert.rejects(
    world.move('clickhouse'),
    /database facts holds traffic facts already.*Delete them first \(\.\/svc monitor delete-facts --help\), or name an empty database/,
  );
  assert.deepEqual(await world.monitor.rows('select 1 from fact_moves'), []);
  await world.command('create database other');
  const other = engine.url.replace(/facts$/, 'other');
  await assert.rejects(world.move('clickhouse', { url: other, onStep: endAt('copied') }), /ended/);
  await world.command('truncate table host_minutes');
  await assert.rejects(world.move('clickhouse'), /A move to ClickHouse at .*, database other is under way/);
  await world.command('drop database other');
  await world.command('create database other');
  await assert.rejects(world.move('clickhouse', { url: other }), /it was made anew.*--cancel/);
  assert.equal(await world.cancel(), true);
  await world.move('clickhouse');
  await assert.rejects(world.move('clickhouse'), /The traffic facts are in ClickHouse at .* already/);
  await start(engine.url);
  await assert.rejects(start(null), (error: Error) => {
    assert.match(
      error.message,
      /are in ClickHouse at http.*, database facts, and this process is set to PostgreSQL/,
    );
    assert.match(error.message, /Set SVC_FACTS_URL to it, with its user and password, and start it again/);
    assert.ok(!error.message.includes(engine.password));
    return true;
  });
  await assert.rejects(start(other), /are in ClickHouse at .*, database facts,/);
  await assert.rejects(world.delete('clickhouse'), /so they are not deleted. Move them first/);
});
