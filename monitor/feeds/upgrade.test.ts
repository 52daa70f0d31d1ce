import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createEarlierDatabase } from '#service-kit/testing/earlier-database.ts';
import { createAllocations } from './allocations/index.ts';
import { listHeldBack, listSetAside, readFeedState } from './store.ts';

test('an upgrade keeps the cursors, the minutes set aside and the state of the minute feed', async () => {
  await using earlier = await createEarlierDatabase('monitor', '0260');
  const assignedAt = '2026-01-02T03:04:05.123456+02:00';
  const [delivered, swept, minute] = [1_790_000_040, 1_789_999_980, 1_789_990_020];
  await earlier.pool.query(
    `insert into allocation_targets (allocation_id, billing_account_id, virtual_machine_id, cluster_id, address, assigned_at,
       is_supported) values (5, 1, 1, 7, '203.0.113.5', $1, true)`,
    [assignedAt],
  );
  await earlier.pool.query(
    `insert into delivery_cursors (allocation_id, assigned_at, delivered_until, swept_until, last_visit_at, last_outcome)
     values (5, $1, to_timestamp($2), to_timestamp($3), now(), 'source_conflict')`,
    [assignedAt, delivered, swept],
  );
  await earlier.pool.query(
    `insert into delivery_set_aside (allocation_id, assigned_at, minute, reason, fingerprint, noted_at)
     values (5, $1, to_timestamp($2), 'rate_implausible', 'f', svc_now())`,
    [assignedAt, minute],
  );
  await earlier.pool.query(
    "insert into feed_states (feed, latest_acknowledged_minute) values ('telemetry', to_timestamp($1))",
    [minute],
  );
  await earlier.upgrade();
  const db = () => earlier.db;
  const clock = { nowMs: () => 0 } as never;
  const allocations = createAllocations({ db, clock, documentationIsGlobal: true });
  const [target] = await allocations.listDue('telemetry', [7], { limit: 10, notVisitedSince: null });
  assert.deepEqual(target?.position, { deliveredUntil: delivered, sweptUntil: swept });
  const aside = await listSetAside(earlier.db, 'telemetry', [target!.key]);
  assert.deepEqual(aside.get(target!.key), [
    { key: target!.key, part: minute, reason: 'rate_implausible', fingerprint: 'f' },
  ]);
  const held = { feed: 'telemetry', isOfAllocations: true, outcomes: ['source_conflict'] };
  const [row] = await listHeldBack(earlier.db, [held], 10);
  assert.deepEqual(
    [row?.item, row?.outcome, row?.newestSetAside],
    ['203.0.113.5', 'source_conflict', minute],
  );
  assert.equal((await readFeedState(earlier.db, 'telemetry'))?.latestAcknowledged, minute);
});
