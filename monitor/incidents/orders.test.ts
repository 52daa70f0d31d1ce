// Slow: goes through many orders of the same uploads.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { IncidentObservation } from '#contracts/sensor-api/detection.ts';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { type Random, seededBelow } from '#monitor/facts/testing/random-uploads.ts';
import { createMonitorWorld } from '#monitor/testing/index.ts';
import { requireIncidentsAlone } from './index.ts';
import { createIncidentSpool, observation } from './testing/observations.ts';

const startMs = Date.UTC(2026, 5, 1, 12, 0, 0);

/** Of one sensor. */
interface Sent {
  sensor: number;
  sent: IncidentObservation;
}

/** Revisions of what captures of three sensors saw of attacks on two targets. */
function makeHistory(random: Random): Sent[] {
  return Array.from({ length: 3 + random(5) }, (_, i): Sent[] => {
    const sensor = random(3);
    const startedAtMs = startMs + random(900) * 1000;
    const digits = Array.from({ length: 12 }, () => random(16).toString(16)).join('');
    const of = {
      id: `0000000${i}-0000-4000-8000-${digits}`,
      capture: ['eth0', 'br0'][random(2)]!,
      target: `198.51.100.${1 + random(2)}`,
      class: (['syn_flood', 'udp_flood', 'other'] as const)[random(3)]!,
      severity: random(5) === 0 ? ('info' as const) : ('attack' as const),
      ...{ startedAtMs, detectedAtMs: startedAtMs + 2000 },
    };
    let lastObservedAtMs = startedAtMs + 3000;
    return Array.from({ length: 1 + random(4) }, (_, before) => {
      const isOver = before > 0 && random(3) === 0;
      const [bps, pps] = [1000 * (1 + random(5)), 1 + random(5)];
      const sent = observation({
        ...{ ...of, revision: before + 1, bps, pps, lastObservedAtMs },
        recoveredAtMs: isOver ? lastObservedAtMs + 60_000 : null,
        seconds: [{ atMs: lastObservedAtMs - 1000, bps, pps }],
        totals: { bytes: 1000 * (before + 1) * (1 + random(3)), packets: 10 * (before + 1) },
      });
      lastObservedAtMs += isOver ? 60_000 + random(200) * 1000 : 10_000;
      return { sensor, sent };
    });
  }).flat();
}

/** The history in another order, some of it twice. */
function shuffle(random: Random, history: readonly Sent[]): Sent[] {
  const left = history.flatMap((one) => (random(6) === 0 ? [one, one] : [one]));
  return Array.from({ length: left.length }, () => left.splice(random(left.length), 1)[0]!);
}

/** All that is shown, without ids of this database. */
const shown = `
  select i.target, i.direction, i.severity, i.class, i.state, i.started_at, i.detected_at, i.last_observed_at,
    i.recovered_at, i.measured, i.is_withdrawn,
    (select json_agg(o.observation_id || ' ' || o.revision order by o.observation_id) from incident_observations o
      where o.incident_id = i.id) as members,
    (select json_agg(s.text order by s.text) from (
      select o.observation_id || ' ' || c.revision || ' ' || c.at::text || c.bps::text || c.pps::text as text
      from incident_observations o join incident_seconds c on c.observation = o.id where o.incident_id = i.id) s) as curve,
    (select json_agg(p.target || p.started_at order by p.target, p.started_at) from incidents p
      where p.correlation_id = i.correlation_id) as correlated
  from incidents i where i.merged_into is null
  order by i.target, i.severity, i.started_at, i.class`;

test('what several captures saw makes the same incidents in every order', async () => {
  await using world = await createMonitorWorld({ standsAtMs: startMs + 3_600_000 });
  const sensors = [world.sensor, await world.enrol('node-2'), await world.enrol('node-3')];
  const random = seededBelow(5);
  let merged = 0;
  for (let round = 0; round < 3; round += 1) {
    const history = makeHistory(random);
    let expected: unknown[] | null = null;
    for (let order = 0; order < 10; order += 1) {
      await world.database.pool.query(
        'delete from incidents; delete from incident_observations; delete from site_correlations',
      );
      for (const { sensor, sent } of order === 0 ? history : shuffle(random, history)) {
        const body = compressUpload(encodeUpload(createIncidentSpool()(sent)));
        await world.inbox.receiveUrgent(sensors[sensor]!, body, 'zstd', requireIncidentsAlone);
      }
      merged += (await world.rows('select 1 from incidents where merged_into is not null')).length;
      const found = await world.rows(shown);
      expected ??= found;
      assert.deepEqual(found, expected, `history ${round}, order ${order}`);
    }
  }
  assert.ok(merged > 0, 'some orders made two incidents of one before they knew better');
});
