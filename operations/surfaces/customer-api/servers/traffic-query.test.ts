/** What can be asked of a server's traffic: ranges, steps, addresses, and answers to what can't be answered. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { schemas } from '#contracts/customer-api/index.ts';
import {
  at,
  createTrafficApi,
  hourMs,
  iso,
  minuteMs,
  type TrafficApi,
  wholeHour,
} from '../testing/traffic-api.ts';

let api: TrafficApi;
before(async () => {
  api = await createTrafficApi();
});
after(() => api.world[Symbol.asyncDispose]());

test('the range: whole steps that hold it, the last 60 steps where none is named, never beyond now', async () => {
  const { read } = await api.createReader('Range');
  const ends = async (query: string) => {
    const { body, status, text } = await read(query);
    assert.equal(status, 200, text);
    assert.equal(
      body.points.length,
      (Date.parse(body.to) - Date.parse(body.from)) / (body.step_seconds * 1_000),
    );
    return [body.from, body.to];
  };
  assert.deepEqual(await ends(`from=${iso(at(1) + 1)}&to=${iso(at(2) + 1)}`), [iso(at(1)), iso(at(3))]);
  assert.deepEqual(await ends(`from=${iso(at(7))}&to=${iso(at(8))}&step=hour`), [iso(hourMs), iso(at(60))]);
  assert.deepEqual(await ends(`to=${iso(hourMs)}`), [iso(at(-60)), iso(hourMs)]);
  assert.deepEqual(await ends(`to=${iso(hourMs)}&step=15m`), [iso(at(-900)), iso(hourMs)]);
  const offset = `${iso(at(120)).slice(0, 19)}%2B02:00`;
  assert.deepEqual(await ends(`to=${offset}`), [iso(at(-60)), iso(hourMs)], 'an offset');
  for (const [query, stepMs] of [
    ['', minuteMs],
    ['to=2099-01-01T00:00:00Z', minuteMs],
    ['step=day', 86_400_000],
  ] as const) {
    const before = api.world.clock.nowMs();
    const [from, to] = await ends(query);
    const now = [before, api.world.clock.nowMs()].map((ms) => Math.ceil(ms / stepMs) * stepMs);
    assert.ok(now.includes(Date.parse(to!)), `${query} ends at ${to}`);
    assert.equal(Date.parse(to!) - Date.parse(from!), 60 * stepMs, query);
  }
  const day = await read(`from=${iso(hourMs - 86_400_000 + 1)}&to=${iso(hourMs + 1)}`);
  assert.equal(day.body.points.length, 1_441, 'a day that begins within a minute');
});

test('a query that can’t be answered is a 422 that names the parameter and says what to do', async () => {
  const { read, first, path, key } = await api.createReader('Strange');
  const other = await api.createReader('Strange other');
  const far = iso(hourMs - schemas.trafficPointsMax * minuteMs - 1);
  const cases: [query: string, path: string, message: RegExp][] = [
    ['from=yesterday', 'from', /RFC 3339/],
    ['from=2026-11-22', 'from', /RFC 3339/],
    ['from=2026-11-22T10:00:00', 'from', /RFC 3339 with Z or an offset/],
    ['from=2026-11-22T10:00:00+02:00', 'from', /%2B/],
    ['to=2026-02-30T10:00:00Z', 'to', /calendar/],
    ['to=2026-11-22T24:00:00Z', 'to', /RFC 3339/],
    ['to=1999-11-22T10:00:00Z', 'to', /RFC 3339/],
    ['to=-1', 'to', /RFC 3339/],
    ['from=', 'from', /RFC 3339/],
    [`from=${iso(hourMs)}&from=${iso(hourMs)}`, 'from', /string/],
    [`from=${'1'.repeat(5_000)}`, 'from', /characters/],
    [`from=${iso(at(2))}&to=${iso(at(1))}`, 'from', /before `to`/],
    [`from=${iso(at(2))}&to=${iso(at(2))}`, 'from', /before `to`/],
    ['from=2099-01-01T00:00:00Z', 'from', /in the past/],
    ['from=2099-01-01T00:00:00Z&to=2099-02-01T00:00:00Z', 'from', /in the past/],
    [`from=${far}&to=${iso(hourMs)}`, 'from', /1501 steps.*at most 1500.*longer `step`/],
    ['step=2m', 'step', /./],
    ['step=60', 'step', /./],
    ['stpe=hour', 'stpe', /did you mean `step`/],
    ['address=here', 'address', /no such public address/],
    ['address=', 'address', /no such public address/],
    ['address=%00', 'address', /./],
    [`address=${'f'.repeat(65)}`, 'address', /./],
    [`address=${other.first.address}`, 'address', /no such public address/],
  ];
  for (const [query, where, message] of cases) {
    const answer = await read(query);
    assert.equal(answer.status, 422, `${query}: ${answer.text.slice(0, 300)}`);
    const { reason, fields } = answer.body.error;
    assert.deepEqual([reason, fields[0].path], ['invalid_fields', where], query);
    assert.match(fields[0].message, message, query);
  }
  const { allowed } = (await read('address=192.0.2.255')).body.error.fields[0];
  assert.deepEqual(allowed.includes(first.address) && !allowed.includes(other.first.address), true);
  const exact = await read(`from=${iso(hourMs - schemas.trafficPointsMax * minuteMs)}&to=${iso(hourMs)}`);
  assert.equal(exact.body.points.length, schemas.trafficPointsMax);
  assert.equal((await api.call('POST', path, { key, body: {} })).status, 405);
});

test('an address is found however it is written', async () => {
  const { read, first, second } = await api.createReader('Written');
  const six = [first, second].find(({ address }) => address.includes(':'))!;
  await api.deliver(six, { 1: { in: 75, out: 75 } });
  const [head, tail] = six.address.split('::');
  const long = `${head!.toUpperCase()}:${'0:'.repeat(8 - head!.split(':').length - tail!.split(':').length)}${tail}`;
  assert.notEqual(long, six.address);
  const { body } = await read(`${wholeHour}&address=${encodeURIComponent(long)}`);
  assert.equal(body.address, six.address);
  assert.equal(body.points[1].inbound_bps, 10);
});
