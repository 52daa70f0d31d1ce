import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import type { PlanProbe } from '#contracts/sensor-api/http.ts';
import type { ProbeResult } from '#contracts/sensor-api/telemetry.ts';
import { type AttemptOutcome, createAttempts } from './attempts.ts';
import { createProber } from './index.ts';

const startMs = 1_764_000_000_000;
const probe: PlanProbe = {
  id: 1,
  kind: 'tcp',
  target: '192.0.2.1',
  port: 443,
  question: null,
  interval_seconds: 10,
  timeout_ms: 2000,
};

function fixture(
  t: TestContext,
  outcome: (index: number) => AttemptOutcome | null | Promise<AttemptOutcome>,
) {
  const clock = createTestClock(startMs);
  let count = 0;
  const prober = createProber({
    clock,
    reporter: silentReporter,
    async attempt() {
      count += 1;
      return outcome(count);
    },
  });
  t.after(() => prober.stop());
  return { clock, prober };
}

test('a probe’s minute is reported when it has ended, and kept until it is in the spool', async (t) => {
  const f = fixture(t, (index) => (index === 2 ? { failure: 'timeout' } : { rttUs: index * 1000.4 }));
  f.prober.follow([probe]);
  await f.prober.start();
  await f.clock.advance(59_000);
  assert.deepEqual(f.prober.ready(), [], 'the minute has not ended');
  await f.clock.advance(2_000);
  const expected: ProbeResult[] = [
    {
      probe: 1,
      minute: startMs / 1000,
      firstSentMs: 7919,
      sent: 6,
      lost: 1,
      rtt: { minUs: 1000, medianUs: 4002, maxUs: 6002 },
      failure: 'timeout',
    },
  ];
  assert.deepEqual(f.prober.ready(), expected);
  const again = f.prober.ready();
  assert.deepEqual(again, expected, 'nothing has been committed');
  f.prober.committed(again);
  assert.deepEqual(f.prober.ready(), []);
});

test('an attempt that ends after its minute counts in the minute in which it began', async (t) => {
  const held = Promise.withResolvers<AttemptOutcome>();
  const f = fixture(t, (index) => (index === 6 ? held.promise : { rttUs: 500 }));
  f.prober.follow([probe]);
  await f.prober.start();
  await f.clock.advance(61_000);
  assert.deepEqual(f.prober.ready(), []);
  held.resolve({ failure: 'refused' });
  await held.promise;
  await new Promise((resolve) => setImmediate(resolve));
  const [result] = f.prober.ready();
  assert.deepEqual([result?.sent, result?.lost, result?.failure], [6, 1, 'refused']);
});

test('a plan without the probe ends it, a plan with it does not disturb it, and a stop reports the open minute', async (t) => {
  const f = fixture(t, () => ({ rttUs: 1 }));
  f.prober.follow([probe, { ...probe, id: 2 }]);
  await f.prober.start();
  await f.clock.advance(30_000);
  f.prober.follow([{ ...probe }]);
  await f.clock.advance(20_000);
  await f.prober.stop();
  assert.deepEqual(
    f.prober.ready().map((one) => [one.probe, one.sent]),
    [
      [1, 5],
      [2, 3],
    ],
  );
});

const attempts = createAttempts(silentReporter);
const attempt = (change: Partial<PlanProbe>) =>
  attempts.attempt({ ...probe, timeout_ms: 60_000, ...change }, new AbortController().signal);

const targets = `
  import { createServer } from 'node:http';
  import { createSocket } from 'node:dgram';
  const web = createServer((request, response) => {
    if (request.url === '/slow') return;
    response.writeHead(Number(request.url.slice(1))).end('x'.repeat(100000));
  });
  const names = createSocket('udp4');
  names.on('message', (query, from) => {
    const answer = Buffer.from(query);
    answer[2] |= 0x80;
    if (query.includes('missing')) answer[3] |= 3;
    if (query.includes('forged')) answer[1] ^= 1;
    names.send(answer, from.port, from.address);
  });
  // Of both families: "localhost" is the one or the other.
  web.listen(0, () => names.bind(0, '127.0.0.1', () =>
    process.stdout.write(JSON.stringify([web.address().port, names.address().port]))));
  process.stdin.on('end', () => process.exit()).resume();`;

test('each kind of probe measures a real target in another process, and says why an attempt was lost', async (t) => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', targets], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.after(async () => {
    child.stdin.end();
    await attempts.close();
  });
  const [text] = (await once(child.stdout, 'data')) as [Buffer];
  const [web, names] = JSON.parse(text.toString()) as [number, number];
  const localhost = { target: '127.0.0.1' };
  const url = (path: string) => ({
    kind: 'http' as const,
    target: `http://127.0.0.1:${web}${path}`,
    port: null,
  });
  const ask = (question: string) => ({ ...localhost, kind: 'dns' as const, port: names, question });
  const answered: [string, Partial<PlanProbe>][] = [
    ['echo over IPv4', { ...localhost, kind: 'icmp', port: null }],
    ['echo over IPv6', { kind: 'icmp', target: '::1', port: null }],
    ['connection', { ...localhost, port: web }],
    ['connection by name', { target: 'localhost', port: web }],
    ['page', url('/204')],
    ['redirect', url('/302')],
    ['name', ask('example.net')],
  ];
  const lost: [string, Partial<PlanProbe>, string][] = [
    ['page with an error', url('/500'), 'bad_answer'],
    ['page that does not come', { ...url('/slow'), timeout_ms: 100 }, 'timeout'],
    ['closed port', { ...localhost, port: 1 }, 'refused'],
    ['speaks no TLS', { ...url('/200'), target: `https://127.0.0.1:${web}/` }, 'tls'],
    ['name that does not exist', ask('missing.example'), 'bad_answer'],
    ['answer to another question', { ...ask('forged.example'), timeout_ms: 100 }, 'timeout'],
    ['no resolver', { ...ask('example.net'), port: 1 }, 'refused'],
    ['no such name', { target: 'no-such-name.invalid' }, 'name_not_found'],
  ];
  await Promise.all([
    ...answered.map(async ([name, change]) => {
      const outcome = await attempt(change);
      assert.ok(outcome && 'rttUs' in outcome, `${name}: ${JSON.stringify(outcome)}`);
      assert.ok(outcome.rttUs > 0 && outcome.rttUs < 60_000_000, `${name}: ${outcome.rttUs}`);
    }),
    ...lost.map(async ([name, change, failure]) =>
      assert.deepEqual(await attempt(change), { failure }, name),
    ),
  ]);
  const stopped = new AbortController();
  const cut = attempts.attempt({ ...probe, ...url('/slow') }, stopped.signal);
  stopped.abort();
  assert.equal(await cut, null, 'a cancelled attempt does not count');
});
