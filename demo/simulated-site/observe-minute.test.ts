/** What the simulated site's sensors observe: the same for the same seed, by the hour, with a long tail, gaps and attacks. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runAtOnce } from '#contracts/sensor-api/decode-slices.ts';
import { createSetAside } from '#contracts/sensor-api/set-aside.ts';
import { decodeUpload, decodeUploadSliced, decompressUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { attackOfDay, attackSources } from './attacks.ts';
import { buildBody, gapOfDay, incidentsOf } from './build-upload.ts';
import { observeMinute } from './observe-minute.ts';
import { planSite, type SitePlan } from './plan.ts';

const day = 86_400;
/** A Monday, seconds since 1970. */
const monday = Date.UTC(2026, 0, 5) / 1000;
const identity = { spoolId: '0f0e0d0c-0b0a-4908-8706-050403020100', sequence: 3 };
const plan = planSite(7);

function* minutesOf(from: number, end: number, stepMinutes = 1): Generator<number> {
  for (let minute = from; minute < end; minute += stepMinutes * 60) yield minute;
}

function readBody(of: SitePlan, hypervisor: number, fromMinute: number, endMinute: number) {
  const order = { part: 'minutes', fromMinute, endMinute } as const;
  return buildBody(of, of.hypervisors[hypervisor]!, identity, order);
}

test('the same seed makes the same bytes of every upload, and another seed others', () => {
  for (const hypervisor of [0, 19]) {
    const body = readBody(plan, hypervisor, monday, monday + 3_600);
    assert.deepEqual(readBody(planSite(7), hypervisor, monday, monday + 3_600), body);
    assert.notDeepEqual(readBody(planSite(8), hypervisor, monday, monday + 3_600), body);
  }
});

test('a minute is the same whichever upload it comes with', () => {
  const [, hypervisor] = plan.hypervisors;
  const alone = observeMinute(plan, hypervisor!, monday + 600);
  const body = decompressUpload(readBody(plan, 1, monday, monday + 3_600), 'zstd');
  assert.deepEqual(
    decodeUpload(body).minutes.find(({ minute }) => minute === monday + 600),
    alone,
  );
});

test('20 hypervisors with 60 servers of their own addresses and MACs, and seven days stay below three million rows', () => {
  const servers = plan.hypervisors.flatMap((one) => one.servers);
  assert.equal(plan.hypervisors.length, 20);
  assert.equal(new Set(servers.map(({ address }) => address)).size, 60);
  assert.equal(new Set(servers.map(({ mac }) => mac)).size, 60);
  let rows = 0;
  // Every tenth minute of a working day, which has more than the others.
  for (const minute of minutesOf(monday, monday + day, 10))
    for (const hypervisor of plan.hypervisors) {
      const observed = observeMinute(plan, hypervisor, minute);
      rows += 1 + observed.hosts.length + observed.usage.length;
    }
  assert.ok(rows * 10 * 7 < 3_000_000, `${rows * 70} rows`);
  assert.ok(rows * 10 * 7 > 1_000_000, `${rows * 70} rows`);
});

test('traffic follows the hour: more in the afternoon than at night, and less on Sundays', () => {
  const bytesAt = (from: number) => {
    let bytes = 0;
    for (const minute of minutesOf(from, from + 3_600, 5))
      for (const hypervisor of plan.hypervisors)
        bytes += observeMinute(plan, hypervisor, minute).totals.ipBytes;
    return bytes;
  };
  // No attack at these hours.
  for (const from of [monday + day, monday + 6 * day])
    assert.ok(attackOfDay(plan.seed, from) === null, 'a day without an attack');
  const afternoon = bytesAt(monday + day + 14 * 3_600);
  assert.ok(afternoon > 1.8 * bytesAt(monday + day + 5 * 3_600));
  assert.ok(afternoon > 1.3 * bytesAt(monday + 6 * day + 14 * 3_600));
});

test('applications make a long tail: ten names have most of the rows, and many names have few', () => {
  const counts = new Map<string, number>();
  for (const minute of minutesOf(monday, monday + day, 10))
    for (const hypervisor of plan.hypervisors)
      for (const { evidence, name, protocol, serverPort } of observeMinute(plan, hypervisor, minute).usage) {
        const key = evidence === 'none' ? `${protocol}/${serverPort}` : name;
        counts.set(key, (counts.get(key) ?? 0) + 1);
      }
  const sorted = [...counts.values()].sort((a, b) => b - a);
  const sum = (some: number[]) => some.reduce((all, one) => all + one, 0);
  assert.ok(sorted.length > 80, `${sorted.length} names`);
  assert.ok(sum(sorted.slice(0, 10)) > 0.4 * sum(sorted));
  assert.ok(sum(sorted.slice(-40)) < 0.12 * sum(sorted));
});

test('a gap of a sensor has no minute and one reason, and every other minute is observed whole', () => {
  let gaps = 0;
  for (const { index } of plan.hypervisors)
    for (let at = monday; at < monday + 7 * day; at += day) {
      const gap = gapOfDay(plan.seed, index, at);
      if (!gap) continue;
      gaps += 1;
      assert.ok(gap.fromMinute >= at && gap.endMinute <= at + day);
      const hour = Math.floor(gap.fromMinute / 3_600) * 3_600;
      const upload = decodeUpload(decompressUpload(readBody(plan, index, hour, hour + 3_600), 'zstd'));
      const end = Math.min(gap.endMinute, hour + 3_600);
      assert.deepEqual(upload.gaps, [
        { fromMinute: gap.fromMinute, toMinute: end - 60, capture: '', reason: gap.reason },
      ]);
      assert.equal(upload.minutes.length, 60 - (end - gap.fromMinute) / 60);
    }
  assert.ok(gaps >= 5 && gaps < 40, `${gaps} gaps in seven days`);
});

test('every seven days have at least two attacks, each in the counters and reported as one, up to its end', () => {
  const attacks = new Map<number, NonNullable<ReturnType<typeof attackOfDay>>>();
  for (let at = monday; at < monday + 7 * day; at += day) {
    const attack = attackOfDay(plan.seed, at);
    if (attack) attacks.set(attack.fromMinute, attack);
  }
  assert.ok(attacks.size >= 2);
  for (const attack of attacks.values()) {
    const hypervisor = plan.hypervisors[attack.hypervisor]!;
    const flood = Math.floor((attack.pps * 60) / 6) * 6 * attack.packetBytes;
    const attackBytesAt = (minute: number) => {
      const { hosts, usage } = observeMinute(plan, hypervisor, minute);
      const sent = usage.filter(({ client }) => attackSources.includes(client));
      const bytes = sent.reduce((sum, row) => sum + row.clientBytes, 0);
      assert.ok(hosts[attack.server]!.rxBytes >= bytes);
      return bytes;
    };
    assert.equal(attackBytesAt(attack.fromMinute - 60), 0);
    assert.equal(attackBytesAt(attack.fromMinute), flood);
    assert.equal(attackBytesAt(attack.endMinute), 0);
    const hour = Math.floor((attack.endMinute - 60) / 3_600) * 3_600;
    const reports = [hour - 3_600, hour, hour + 3_600].flatMap((from) =>
      incidentsOf(plan, hypervisor, { fromMinute: from, endMinute: from + 3_600 }),
    );
    assert.equal(new Set(reports.map(({ id }) => id)).size, 1);
    assert.deepEqual(
      reports.map(({ revision, recoveredAtMs }) => [revision, recoveredAtMs]),
      reports.map((_, i) => [i + 1, i === reports.length - 1 ? attack.endMinute * 1000 : null]),
    );
  }
});

test('reports of an attack have each of its seconds once, and are an upload that the monitor can read', () => {
  const attackDay = [0, 1, 2].map((n) => monday + n * day).find((at) => attackOfDay(plan.seed, at))!;
  const attack = attackOfDay(plan.seed, attackDay)!;
  const order = {
    part: 'incidents',
    fromMinute: attack.endMinute - 60,
    endMinute: attack.endMinute,
  } as const;
  const body = buildBody(plan, plan.hypervisors[attack.hypervisor]!, identity, order);
  const { incidents = [] } = decodeUpload(decompressUpload(body, 'zstd'));
  const length = attack.endMinute - attack.fromMinute;
  assert.deepEqual(
    incidents.flatMap(({ seconds }) => seconds.map(({ atMs }) => atMs)),
    Array.from({ length }, (_, second) => (attack.fromMinute + second) * 1000),
  );
  assert.equal(incidents[0]!.lastObservedAtMs, incidents[0]!.detectedAtMs, 'the first when it is detected');
  assert.equal(incidents.at(-1)!.totals.packets, attack.pps * length);
  for (const { seconds, lastObservedAtMs } of incidents) {
    assert.ok(seconds.length <= 10);
    assert.equal(seconds.at(-1)!.atMs, lastObservedAtMs - 1000);
  }
});

test('the monitor finds every counter of a day plausible, those of an attack too', () => {
  const attackDay = [0, 1, 2].map((n) => monday + n * day).find((at) => attackOfDay(plan.seed, at))!;
  const { hypervisor } = attackOfDay(plan.seed, attackDay)!;
  const setAside = createSetAside();
  for (let from = attackDay; from < attackDay + day; from += 3_600) {
    const bytes = decompressUpload(readBody(plan, hypervisor, from, from + 3_600), 'zstd');
    runAtOnce((slice) => decodeUploadSliced(bytes, slice, setAside));
  }
  assert.deepEqual(setAside, createSetAside());
});
