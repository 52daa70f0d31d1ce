import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PoolUse } from '#operations/addresses/index.ts';
import type { Cluster, Node } from '#operations/clusters/index.ts';
import { type AttentionFacts, findAttentionItems } from './index.ts';

const nowMs = Date.UTC(2026, 0, 1);
const cluster = { id: 1, name: 'one' } as Cluster;
const node = { id: 1, clusterId: 1, isOpen: true, lastError: null, seenAt: new Date(nowMs) } as Node;
const pool = { clusterId: 1, prefix: '203.0.113.0/24', givenCount: 1, size: 100 } as PoolUse;

const waiting = (oldestSeconds: number) => ({ pending: 1, oldestSeconds, failingEndpoints: 0, endpoints: 1 });

/** An installation in which all is well, with what is not. */
function factsWith(change: Partial<AttentionFacts>): AttentionFacts {
  return {
    servers: new Map([['running', 3]]),
    clusters: [cluster],
    nodes: [node],
    pools: [pool],
    drifts: [],
    customers: { inDebt: 0 },
    waitingCharges: 0,
    oldestChargeMs: 0,
    webhooks: waiting(60),
    attacks: { attacks: 0, servers: 0, stale: 0 },
    spoofers: [],
    limitsProblem: null,
    criticalFindings: 0,
    system: [],
    silentMonitors: [],
    ...change,
  };
}

const found = (change: Partial<AttentionFacts>) =>
  findAttentionItems(factsWith(change), nowMs).map(({ kind, urgency }) => `${kind} ${urgency}`);

test('nothing needs attention where all is well', () => {
  assert.deepEqual(found({}), []);
});

const cases: [string, Partial<AttentionFacts>, string[]][] = [
  ['a failed server', { servers: new Map([['failed', 1]]) }, ['servers_failed now']],
  ['a node with an error', { nodes: [{ ...node, lastError: 'refused' }] }, ['nodes_away now']],
  ['a node not seen for a minute', { nodes: [seenBefore(60_001)] }, ['nodes_away now']],
  ['a node seen a minute ago', { nodes: [seenBefore(60_000)] }, []],
  ['a node that was never asked', { nodes: [{ ...node, seenAt: null }] }, []],
  ['a closed cluster', { nodes: [{ ...node, isOpen: false }] }, ['no_open_node soon']],
  ['no node at all', { nodes: [] }, []],
  ['a cluster without addresses', { pools: [{ ...pool, clusterId: 2 }] }, ['no_addresses soon']],
  ['90 % of a range', { pools: [{ ...pool, givenCount: 90 }] }, ['pool_nearly_full soon']],
  ['89 % of a range', { pools: [{ ...pool, givenCount: 89 }] }, []],
  ['a guest of other sizes', { drifts: [{ nodeId: 1 }] }, ['drift soon']],
  ['a charge of an hour', { waitingCharges: 1, oldestChargeMs: 3_600_000 }, ['charges_unconfirmed soon']],
  ['an older charge', { waitingCharges: 1, oldestChargeMs: 3_600_001 }, ['charges_unconfirmed now']],
  ['limits that are not shared', { limitsProblem: 'The limit store is full.' }, ['limits_apart soon']],
  ['critical findings', { criticalFindings: 6 }, ['findings_critical soon']],
  ['spoofed traffic', { spoofers: [7] }, ['spoofing soon']],
  ['a debt', { customers: { inDebt: 1 } }, ['customers_in_debt soon']],
  ['an attack', { attacks: { attacks: 1, servers: 1, stale: 0 } }, ['attacks now']],
  ['no news of an attack', { attacks: { attacks: 0, servers: 0, stale: 1 } }, ['attacks_stale now']],
  ['late webhooks', { webhooks: waiting(61) }, ['webhooks_late now']],
];

for (const [title, change, items] of cases)
  test(`${title}: ${items.join(', ') || 'no item'}`, () => {
    assert.deepEqual(found(change), items);
  });

function seenBefore(ageMs: number): Node {
  return { ...node, seenAt: new Date(nowMs - ageMs) };
}

test('up to three nodes that are away are an item each, more are one', () => {
  const away = (count: number) =>
    found({ nodes: Array.from({ length: count }, () => ({ ...node, lastError: 'refused' })) });
  assert.equal(away(3).length, 3);
  assert.equal(away(4).length, 1);
});

test('what is urgent comes first', () => {
  assert.deepEqual(found({ customers: { inDebt: 1 }, webhooks: waiting(61) }), [
    'webhooks_late now',
    'customers_in_debt soon',
  ]);
});
