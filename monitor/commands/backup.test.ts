// Slow: backs up and restores a monitor, each with a PostgreSQL of its own.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentReporter } from '#common/reporter/index.ts';
import { compressUpload, encodeUpload, type TelemetryUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { compose } from '#monitor/composition.ts';
import { readConfig } from '#monitor/config.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { captureMinute, createSpool, host, testMinute } from '#monitor/testing/index.ts';
import { type BackupTarget, backUp, restore } from '#service-kit/postgres/backup.ts';

test('a restored monitor continues: nothing is applied twice, waiting uploads are applied, later ones are accepted again', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-restore-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const open = (name: string) => {
    const config = readConfig({ SVC_DATA_DIR: join(folder, name), SVC_LOG_LEVEL: 'error' });
    const target: BackupTarget = {
      program: 'monitor',
      urlSetting: 'SVC_MONITOR_DATABASE_URL',
      url: null,
      programDir: config.programDir,
      reporter: silentReporter,
    };
    return { monitor: compose(config), target };
  };
  const spool = createSpool();
  const [applied, waiting, later] = [0, 60, 120].map((offset) =>
    spool.upload([captureMinute({ minute: testMinute + offset, hosts: [host('192.0.2.10', 1000, 100)] })]),
  ) as [TelemetryUpload, TelemetryUpload, TelemetryUpload];

  const first = open('first');
  await first.monitor.database.start();
  t.after(() => first.monitor.database.stop());
  const file = join(folder, 'monitor.backup');
  await assert.rejects(backUp(first.target, file), /is empty\. Is SVC_DATA_DIR right\?/);
  const site = await first.monitor.sites.create(systemActor, 'Site');
  const { token } = await first.monitor.sensors.createToken(systemActor, site.id);
  const { credential } = (await first.monitor.sensors.enrol({
    token,
    host_name: 'node-1',
    node: 'node-1',
    sensor_version: '0.1.0',
  }))!;
  const deliver = async ({ monitor }: ReturnType<typeof open>, upload: TelemetryUpload) => {
    const sensor = await monitor.sensors.authenticate(credential);
    return (await monitor.inbox.receive(sensor!, compressUpload(encodeUpload(upload)), 'zstd')).receipt;
  };
  await deliver(first, applied);
  await first.monitor.inbox.drain();
  await deliver(first, waiting);
  await backUp(first.target, file);
  await deliver(first, later);

  const second = open('second');
  await restore(second.target, file);
  await second.monitor.database.start();
  t.after(() => second.monitor.database.stop());
  // The sensor is identified by its credential, and repeats uploads whose receipts were lost.
  assert.deepEqual(
    [await deliver(second, applied), await deliver(second, waiting), await deliver(second, later)],
    ['duplicate', 'duplicate', 'accepted'],
  );
  // The lease of the stopped worker would expire by itself; the test expires it at once.
  await second.monitor.database.pool.query("update leases set expires_at = svc_now() - interval '1 second'");
  await second.monitor.inbox.drain();
  const minutes = await second.monitor.traffic.readAddressMinutes(
    site.id,
    '192.0.2.10',
    testMinute,
    testMinute + 180,
  );
  assert.deepEqual(
    minutes.map((minute) => (minute.isGap ? 'gap' : minute.rxBytes)),
    [1000, 1000, 1000],
  );
});
