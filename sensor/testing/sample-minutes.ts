/** Minutes, spools and directories for tests of the sensor. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { recordKinds } from '#sensor/records/index.ts';
import { createSpool } from '#sensor/spool/index.ts';

/** A UTC minute, seconds. */
export const firstMinute = 1_764_000_000;

/** A minute that is identified by its `bytes`. */
export function sampleMinute(minute: number, bytes: number, observedMs = 60_000): TelemetryMinute {
  return {
    minute,
    capture: 'eth0',
    role: 'uplink',
    observedMs,
    totals: {
      packets: 10,
      ipPackets: 9,
      ipBytes: bytes,
      nonIpPackets: 1,
      parserDropped: 0,
      kernelDropped: 0,
      detailTruncated: 0,
    },
    hosts: [{ address: '192.0.2.10', isLocal: true, rxBytes: bytes, txBytes: 0, packets: 9, deviceKey: '' }],
    usage: [],
  };
}

/** Bytes of a complete minute in a proof's capture; different for each minute. */
export function bytesOfMinute(minute: number): number {
  return 1000 + ((minute / 60) % 100_000) * 7;
}

/** A directory that is removed after the test. */
export function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-sensor-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export type SpoolFixture = ReturnType<typeof openSpool>;

/** An open spool in the directory, at the second minute after `firstMinute`. */
export function openSpool(directory: string, bytesMax = 8 * 1024 * 1024) {
  const clock = createTestClock((firstMinute + 62) * 1000);
  const spool = createSpool({
    directory,
    bytesMax,
    kinds: recordKinds,
    sensorVersion: '0.1.0',
    clock,
    reporter: silentReporter,
  });
  spool.open();
  return { spool, clock, directory };
}
