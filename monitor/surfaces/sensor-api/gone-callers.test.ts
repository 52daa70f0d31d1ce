/** A sensor that gives up while the database stands still is admitted again as soon as the database answers. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#monitor/operators/index.ts';
import { underWayMax } from '#monitor/read-tokens/index.ts';
import { type MonitorServer, startMonitorServer } from '#monitor/testing/server.ts';
import { leaveWhileFrozen } from '#service-kit/testing/gone-callers.ts';

let server: MonitorServer;
let readToken: string;
before(async () => {
  server = await startMonitorServer();
  const { monitor, siteId } = server;
  readToken = (await monitor.readTokens.create(systemActor, siteId, { name: 'Grafana', days: '30' })).token;
});
after(() => server[Symbol.asyncDispose]());

let enrolled = 0;
async function enrol(): Promise<string> {
  const { monitor, siteId } = server;
  enrolled += 1;
  const { token } = await monitor.sensors.createToken(systemActor, siteId);
  const names = { host_name: `host-${enrolled}`, node: `hv-${enrolled}`, sensor_version: '0.1.24' };
  return (await monitor.sensors.enrol({ token, ...names }))!.credential;
}

/** Concurrent requests of one sensor (monitor/intake/throttle.ts). */
const slots = 8;
const held = [
  'telemetry',
  'live',
  'incidents',
  'port-scans',
  'evidence/00000000-0000-4000-8000-000000000000',
];

async function assertAsBefore(
  path: string,
  token: string,
  request: string,
  count: number,
  isPipelined: boolean,
) {
  const { url, database } = server;
  const requests = Array.from(
    { length: count },
    () => `${request} HTTP/1.1\r\nauthorization: Bearer ${token}`,
  );
  const frozen = ['sensor_credentials', 'sensors', 'read_tokens'];
  await leaveWhileFrozen({ url, pool: database.pool, frozen, requests, isPipelined });
  const [method] = request.split(' ');
  const answer = await fetch(`${url}${path}`, {
    method: method!,
    headers: { authorization: `Bearer ${token}` },
  });
  assert.notEqual(answer.status, 429, `${path}: ${await answer.text()}`);
}

for (const isPipelined of [false, true]) {
  const how = isPipelined ? 'on one connection' : 'on a connection each';
  test(`NET-4.k: requests of a sensor that has gone while the database stood still, ${how}, hold no place`, async () => {
    for (const route of held) {
      const path = `/agent/v1/${route}`;
      await assertAsBefore(path, await enrol(), `POST ${path}`, slots, isPipelined);
    }
  });
  test(`requests of a read token that has gone while the database stood still, ${how}, hold no place`, async () => {
    const path = '/api/v1/query';
    await assertAsBefore(path, readToken, `GET ${path}`, underWayMax, isPipelined);
  });
}
