import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sensorVersion } from './version.ts';

test('NET-9.3: the version of the sensor is one that has the queue of scan requests', () => {
  const [major, minor, patch] = sensorVersion.split('.').map(Number);
  assert.ok(major! > 0 || minor! > 1 || patch! >= 24, sensorVersion);
});
