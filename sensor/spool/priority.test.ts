import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import type { ProbeResult } from '#contracts/sensor-api/telemetry.ts';
import { decodeUpload, decompressUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { recordKinds } from '#sensor/records/index.ts';
import { firstMinute, sampleMinute, temporaryFolder } from '#sensor/testing/sample-minutes.ts';
import { createSpool, type PendingUpload, type RecordKind, type Spool } from './index.ts';

const at = (index: number) => firstMinute + index * 60;
/** As if results of probes were urgent. No kind of today is. */
const urgentProbes: RecordKind[] = recordKinds.map((kind) =>
  kind.name === 'probes' ? { ...kind, priority: 'urgent' } : kind,
);

function openSpool(t: TestContext, directory: string, kinds = urgentProbes): Spool {
  const clock = createTestClock(at(20) * 1000);
  const options = { directory, bytesMax: 8 * 1024 * 1024, sensorVersion: '0.1.0', kinds };
  const spool = createSpool({ ...options, clock, reporter: silentReporter });
  spool.open();
  t.after(() => spool.close());
  return spool;
}

const probe = (index: number): ProbeResult => ({
  ...{ probe: 1, minute: at(index), firstSentMs: 0, sent: 1, lost: 0, failure: null },
  rtt: { minUs: 1, medianUs: 1, maxUs: 1 },
});
const inventory = {
  ...{ observedAtMs: at(0) * 1000, interfaces: [], neighbours: [] },
  ...{ interfacesLeftOut: 0, neighboursLeftOut: 0 },
};

/** What an upload holds: minutes as numbers, probes as `p`, an inventory as `i`. */
function show(upload: PendingUpload | null): string {
  if (!upload) return 'none';
  const { minutes, gaps, probes, inventory } = decodeUpload(decompressUpload(upload.body, 'zstd'));
  const index = (minute: number) => (minute - firstMinute) / 60;
  return [
    ...minutes.map(({ minute }) => `${index(minute)}`),
    ...gaps.map(({ fromMinute, reason }) => `${reason} ${index(fromMinute)}`),
    ...(probes ?? []).map(({ minute }) => `p${index(minute)}`),
    ...(inventory ? ['i'] : []),
  ].join(' ');
}

function drain(spool: Spool): string[] {
  const sent: string[] = [];
  for (let upload = spool.oldest(); upload; upload = spool.oldest()) {
    sent.push(`${upload.sequence}: ${show(upload)}`);
    spool.acknowledge(upload, 'accepted');
  }
  return sent;
}

/** Three commits; the second one and the third one with a result. */
function fill(spool: Spool): void {
  spool.append([sampleMinute(at(0), 1)], [], { commit: 'a' });
  spool.append([sampleMinute(at(1), 1)], [], { commit: 'b', records: { probes: [probe(0)], inventory } });
  spool.append([sampleMinute(at(2), 1)], [], { commit: 'c', records: { probes: [probe(1)] } });
}

test('urgent records leave before all that waits, in uploads of their own, the oldest first', (t) => {
  const spool = openSpool(t, temporaryFolder(t));
  fill(spool);
  assert.deepEqual(drain(spool), ['2: p0', '4: p1', '1: 0', '3: 1 i', '5: 2']);
  const bulk = openSpool(t, temporaryFolder(t), [...recordKinds]);
  fill(bulk);
  assert.deepEqual(drain(bulk), ['1: 0', '2: 1 p0 i', '3: 2 p1']);
});

test('urgent records are kept through a restart and a damaged file; a sensor to which they are bulk sends them in turn', (t) => {
  const directory = temporaryFolder(t);
  const first = openSpool(t, directory);
  fill(first);
  first.close();
  const again = openSpool(t, directory);
  assert.equal(show(again.oldest()), 'p0');
  // Both may have been sent: the first of the urgent ones and the first of the others.
  assert.equal(again.oldest()!.mayBeSent, true);
  again.acknowledge(again.oldest()!, 'accepted');
  assert.equal(again.oldest()!.mayBeSent, false);
  again.acknowledge(again.oldest()!, 'accepted');
  assert.equal(again.oldest()!.mayBeSent, true);
  again.close();

  for (const [kinds, expected] of [
    [urgentProbes, ['2: p0', '4: p1', '1: 0', '3: 1 i', '5: 2']],
    [recordKinds, ['1: 0', '2: p0', '3: 1 i', '4: p1', '5: 2']],
  ] as const) {
    const folder = temporaryFolder(t);
    const spool = openSpool(t, folder);
    fill(spool);
    spool.close();
    const file = join(folder, 'spool-1.sqlite');
    // No longer a file of SQLite: every record is salvaged from its pages.
    if (kinds === urgentProbes) writeFileSync(file, readFileSync(file).fill(0, 0, 100));
    assert.deepEqual(drain(openSpool(t, folder, [...kinds])), expected);
  }
});

test('urgent records whose loss means nothing leave no gap when they are refused or damaged', (t) => {
  const directory = temporaryFolder(t);
  const first = openSpool(t, directory);
  fill(first);
  assert.deepEqual(first.refuse(first.oldest()!), []);
  first.close();
  const db = new DatabaseSync(join(directory, 'spool-1.sqlite'));
  db.exec(`UPDATE uploads SET payload = CAST(payload || x'00' AS BLOB) WHERE kind = 'probes'`);
  db.close();
  assert.deepEqual(drain(openSpool(t, directory)), ['1: 0', '3: 1 i', '5: 2']);
});

test('an upload that overtakes others takes nothing from what is known of them', (t) => {
  const spool = openSpool(t, temporaryFolder(t));
  const clock = (offsetMs: number) => ({ bootId: 'boot', offsetMs, since: at(0) });
  const large = Array.from({ length: 65 }, (_, i) => ({ ...sampleMinute(at(1), 1), capture: `eth${i}` }));
  spool.append([sampleMinute(at(0), 1)], [], { commit: 'a', stampedBy: clock(1_000_000) });
  spool.append(large, [], { commit: 'b', stampedBy: clock(2_000_000), records: { probes: [probe(0)] } });
  spool.append([], [], { commit: 'c', stampedBy: clock(3_000_000), records: { probes: [probe(1)] } });
  for (const expected of ['p0', 'p1']) {
    assert.equal(show(spool.oldest()), expected);
    spool.acknowledge(spool.oldest()!, 'accepted');
  }
  assert.equal(spool.oldest()!.stampedBy.offsetMs, 1_000_000);
  spool.acknowledge(spool.oldest()!, 'accepted');
  // Its second part goes on with the minute of the first: no gap says that the minute was told before.
  const first = spool.oldest()!;
  assert.equal(first.stampedBy.offsetMs, 2_000_000);
  spool.acknowledge(first, 'accepted');
  assert.equal(spool.settle(spool.oldest()!), false);
});

test('urgent records go once with a commit that may have happened, and again where they go alone', (t) => {
  const spool = openSpool(t, temporaryFolder(t));
  spool.append([sampleMinute(at(0), 1)], [], { commit: 'a', records: { probes: [probe(0)] } });
  spool.append([sampleMinute(at(0), 1)], [], { commit: 'a', records: { probes: [probe(0)] } });
  spool.append([sampleMinute(at(0), 1)], [], { commit: 'a', records: { inventory } });
  assert.deepEqual(drain(spool), ['1: p0', '3: p0', '2: 0']);
});
