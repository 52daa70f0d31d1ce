import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { readSensorConfig } from './config.ts';

test('captures are listed with their role, and the state is in the data directory', () => {
  const config = readSensorConfig({
    SVC_SENSOR_CAPTURES: 'uplink:eth0, bridge:br0',
    SVC_DATA_DIR: '/srv/data',
  });
  const live = { kind: 'live', ringMiB: 128, method: 'auto' };
  assert.deepEqual(config.captures, [
    { name: 'eth0', role: 'uplink', members: 1, source: { ...live, interfaceName: 'eth0' } },
    { name: 'br0', role: 'bridge', members: 1, source: { ...live, interfaceName: 'br0' } },
  ]);
  const shared = readSensorConfig({ SVC_SENSOR_CAPTURES: 'uplink:eth0', SVC_SENSOR_FANOUT: '2' });
  const source = { ...live, interfaceName: 'eth0', ringMiB: 64 };
  assert.deepEqual(shared.captures, [{ name: 'eth0', role: 'uplink', members: 2, source }]);
  assert.equal(config.stateDirectory, '/srv/data/sensor');
  assert.equal(config.spoolBytesMax, 160 * 1024 * 1024);
  assert.equal(readSensorConfig({ SVC_SENSOR_STATE_DIR: '/var/lib/s' }).stateDirectory, '/var/lib/s');
});

test('a recording is replayed as the uplink', () => {
  const config = readSensorConfig({ SVC_SENSOR_REPLAY: 'a.pcap' });
  assert.deepEqual(config.captures, [
    { name: 'replay', role: 'uplink', source: { kind: 'replay', file: resolve('a.pcap') } },
  ]);
});

test('invalid settings are refused with the way to correct them', () => {
  const wrong: Record<string, string>[] = [
    { SVC_SENSOR_CAPTURES: 'eth0' },
    { SVC_SENSOR_CAPTURES: 'wan:eth0' },
    { SVC_SENSOR_CAPTURES: 'uplink:eth0,bridge:eth0' },
    { SVC_SENSOR_CAPTURES: 'uplink:' },
    { SVC_SENSOR_CAPTURES: 'uplink:eth0', SVC_SENSOR_REPLAY: 'a.pcap' },
    { SVC_SENSOR_SPOOL_MIB: '1' },
    { SVC_MONITOR_URL: 'ftp://x' },
  ];
  for (const environment of wrong) {
    assert.throws(
      () => readSensorConfig(environment),
      (error: Error & { code?: string }) => {
        return error.code === 'config.invalid' && error.message.includes(Object.keys(environment)[0]!);
      },
      JSON.stringify(environment),
    );
  }
});

test('NET-2.2.3: the public names of encrypted hellos are a list of names; other text is refused', () => {
  const read = (text: string) =>
    readSensorConfig({ SVC_SENSOR_CAPTURES: 'uplink:eth0', SVC_SENSOR_ECH_OUTER_NAMES: text });
  assert.deepEqual(read('Outer.Example., b.example').captures[0]!.outerNames, ['outer.example', 'b.example']);
  assert.throws(() => read('not a name'), /list of names like cloudflare-ech\.com/);
});
