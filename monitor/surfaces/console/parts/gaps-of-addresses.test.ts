import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CaptureState, GapRow } from '#monitor/traffic/index.ts';
import { gapsOfAddresses } from './chart-around.ts';

const minute = (count: number) => count * 60;
const gap = (sensorId: number, from: number, to: number): GapRow => ({
  ...{ sensorId, hostName: `hv-${sensorId}`, capture: '', reason: 'sensor_down' },
  ...{ fromMinute: minute(from), toMinute: minute(to) },
});

/** Capture 10 is of sensor 1, capture 20 of sensor 2; `seen`: capture and minute of each row of the address. */
function trafficOf(seen: readonly (readonly [captureId: number, minute: number])[]) {
  const asked: { address: string; minute: number }[] = [];
  const captures = [10, 20].map((captureId) => ({ captureId, sensorId: captureId / 10 }) as CaptureState);
  const traffic = {
    listCaptures: async () => captures,
    listSpeakers: async (_siteId: number, of: readonly { address: string; minute: number }[]) => {
      asked.push(...of);
      return of.flatMap((one) =>
        seen.filter(([, at]) => minute(at) === one.minute).map(([captureId]) => ({ ...one, captureId })),
      );
    },
  };
  const sensorsOf = async (gaps: readonly GapRow[], addresses = ['192.0.2.1']) =>
    (await gapsOfAddresses({ traffic }, 1, addresses, gaps)).map(({ sensorId }) => sensorId);
  return { sensorsOf, asked };
}

test('gaps of a sensor that did not observe an address are no reason for it, those of the one that did are', async () => {
  const gaps = [gap(1, 100, 104), gap(2, 100, 104)];
  assert.deepEqual(await trafficOf([[10, 99]]).sensorsOf(gaps), [1]);
  assert.deepEqual(await trafficOf([[20, 105]]).sensorsOf(gaps), [2]);
  assert.deepEqual(
    await trafficOf([
      [10, 95],
      [20, 109],
    ]).sensorsOf(gaps),
    [1, 2],
    'it moved meanwhile',
  );
});

test('of an address that no sensor observed around a gap, or that a removed sensor did, all gaps are told', async () => {
  const gaps = [gap(1, 100, 104), gap(2, 100, 104)];
  assert.deepEqual(await trafficOf([]).sensorsOf(gaps), [1, 2]);
  assert.deepEqual(await trafficOf([[30, 99]]).sensorsOf(gaps), [1, 2]);
});

test('no more than some thousand minutes are asked for; without gaps none', async () => {
  const many = Array.from({ length: 400 }, (_, at) => gap(2, at * 1000 + 100, at * 1000 + 101));
  const { sensorsOf, asked } = trafficOf([[10, 99]]);
  assert.equal((await sensorsOf(many, ['192.0.2.1', '192.0.2.2'])).length, 400);
  await sensorsOf([]);
  assert.equal(asked.length, 0);
});
