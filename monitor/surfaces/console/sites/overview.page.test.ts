import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemActor } from '#monitor/operators/index.ts';
import { startMonitorServer } from '#monitor/testing/server.ts';

test('a sensor that was enrolled moments ago is waited for; it is silent from three minutes on', async () => {
  await using server = await startMonitorServer();
  const { monitor, siteId } = server;
  const { token } = await monitor.sensors.createToken(systemActor, siteId);
  await monitor.sensors.enrol({ token, host_name: 'node-1', node: 'node-1', sensor_version: '0.1.0' });
  const visitor = await server.signIn('viewer');
  const waiting = await visitor.get('/');
  assert.match(waiting.text, /no contact yet/);
  assert.doesNotMatch(waiting.text, />silent</);
  await server.database.pool.query("update sensors set enrolled_at = enrolled_at - interval '181 seconds'");
  const silent = await visitor.get('/');
  assert.match(silent.text, />silent</);
  assert.doesNotMatch(silent.text, /no contact yet/);
});
