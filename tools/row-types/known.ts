/** What the check of row types has to be told: arguments that decide which statement is made, and faults that are none. */
import type { Arguments } from './run-stores.ts';

const filter = {
  search: 'a',
  labels: ['present', 'absent', 'equal', 'unequal'].map((is) => ({ key: 'a', is, value: 'b' })),
  statuses: [],
  limit: 1,
};

const spans = { judged: [{ from: 0, to: 60 }], unjudged: [{ from: 60, to: 120 }] };
const coverage = { siteId: 1, hours: [3600], ...spans, pairs: spans };

const traffic = { tenantIds: [1], serverIds: [1], addresses: [{ isNot: false, values: ['192.0.2.0/24'] }] };
// A quarter past one hour to ten past another one: hours, tens and minutes.
const range = { fromMs: 900_000, toMs: 11_460_000, stepSeconds: 3600 };
const trafficQuery = {
  ...{ ...range, shownFromMs: 0, before: { fromMs: 0, toMs: 900_000 }, sides: { in: true, out: true } },
  filters: ['application', 'port', 'transport'].map((dimension) => ({
    dimension,
    is: false,
    values: ['443'],
  })),
  ...{ order: { by: 'share', direction: 'desc' }, limit: 1 },
};

export const given: Arguments = {
  'operations/protect/traffic/explorer-store.ts:listAddressSums': [
    [traffic, range, { hasPackets: false }],
    [traffic, range, { hasPackets: true }],
  ],
  'operations/protect/traffic/explorer-store.ts:sumOwnScans': [[traffic, range]],
  'operations/protect/traffic/explorer-store.ts:listLineSteps': [
    [traffic, range, 'all'],
    [traffic, { ...range, stepSeconds: 7200 }, { servers: [{ id: 1, line: 0 }] }],
    [
      traffic,
      { ...range, hasPackets: true },
      { addresses: [{ address: '192.0.2.1', serverId: 1, line: 0 }] },
    ],
  ],
  'operations/protect/traffic/explorer-store.ts:listSumsWithSteps': [
    [traffic, range],
    [traffic, { ...range, hasPackets: true }],
  ],
  'operations/protect/traffic/explorer-store.ts:listMinutePercentiles': [
    [traffic, range, 'server'],
    [traffic, { ...range, hasPackets: true }, 'all'],
  ],
  'operations/protect/traffic/application-store.ts:listApplicationSums': ['address', 'flow', 'service'].map(
    (by) => [traffic, { ...trafficQuery, by }],
  ),
  'operations/protect/traffic/application-store.ts:listApplicationSteps': ['address', 'flow', 'service'].map(
    (by) => [traffic, { ...trafficQuery, by }],
  ),
  'operations/protect/traffic/sum-store.ts:sumBuckets': [
    [1, [{ minute: new Date(0), isChanged: false }], 'tens'],
  ],
  'operations/protect/traffic/sum-store.ts:sumWritten': [
    [1, [{ minute: new Date(0), isChanged: false }]],
    [1, [{ minute: new Date(0), isChanged: true }]],
  ],
  'monitor/facts/postgres/sum-views-store.ts:sumViews': [
    [
      { ...coverage, addressesUpTo: () => ({ hours: [3600], tens: [600], spans: [] }) },
      {
        ...{ siteId: 1, fromMinute: 0, toMinute: 7200, source: 'addresses', filters: [], owners: [] },
        measure: 'packets',
      },
      ['address', 'server'].map((by) => ({
        ...{ by: [by], stepSeconds: 3600, order: 'size', rows: { limit: 1 } },
      })),
    ],
  ],
  'monitor/facts/postgres/observed-store.ts:listObserved': [
    [{ siteId: 1, fromMinute: 0, toMinute: 60, filters: [] }, 60],
    [
      {
        ...{ siteId: 1, fromMinute: 0, toMinute: 60 },
        filters: [{ dimension: 'address', is: true, values: ['192.0.2.1'] }],
      },
      60,
    ],
    [
      {
        ...{ siteId: 1, fromMinute: 0, toMinute: 60 },
        filters: [
          { dimension: 'address', is: true, values: ['192.0.2.1', '192.0.2.0/24', '10.0.0.1%br0'] },
          { dimension: 'sensor', is: true, values: ['1'] },
        ],
      },
      60,
    ],
  ],
  'monitor/facts/postgres/peer-store.ts:listPeerNetworks': [
    [coverage, { address: '192.0.2.1', segment: 'br0' }, 1],
    [coverage, { address: '192.0.2.1' }, 1],
  ],
  'monitor/facts/postgres/peer-store.ts:findPeers': [[coverage, '203.0.113.0/24', 1]],
  'operations/accounts/store.ts:findPersonByEmail': [['a@example.com']],
  'monitor/operators/store.ts:findByEmail': [['a@example.com']],
  'operations/firewall/store.ts:putFirewall': [
    [
      1,
      { isEnabled: true, inboundPolicy: 'accept', outboundPolicy: 'accept' },
      [{ id: 1, peers: [] }, { peers: [] }],
    ],
  ],
  'operations/addresses/store.ts:lockGenerationsAt': [
    [{ address: '203.0.113.1', at: new Date(0), clusterIds: [1] }],
  ],
  'operations/protect/alert-mails/store.ts:claimMail': [
    [{ table: 'attack_mails', order: ['incident_id', 'person_id'], claimSeconds: 1 }],
    [{ table: 'port_mails', claimSeconds: 1 }],
    [{ table: 'finding_mails', claimSeconds: 1 }],
  ],
  'operations/protect/alert-mails/store.ts:recordAttempt': [
    ['attack_mails', { id: 1, term: 1 }, { status: 'sent', error: null, retrySeconds: 0 }],
    ['port_mails', { id: 1, term: 1 }, { status: 'pending', error: 'a', retrySeconds: 1 }],
  ],
  'operations/protect/scans/request-store.ts:noteContact': [
    ['0193a1f0-0000-7000-8000-000000000001', { projectId: 1, siteId: 1 }, { state: 'running' }],
    ['0193a1f0-0000-7000-8000-000000000001', { projectId: 1, siteId: 1 }, { state: 'partial' }],
  ],
  'operations/views/finding-store.ts:totalFindings': [
    [{ severities: ['critical', 'high'], customer: 'a', cveId: 'CVE-2024-6387' }],
    [{ severities: ['critical', 'high'] }],
  ],
  'operations/views/finding-store.ts:listAllFindings': [
    [{ state: 'ignored', severities: ['critical'], tenantId: 1, serverId: 1, customer: 'a', limit: 1 }],
    [{ cveId: 'CVE-2024-6387', limit: 1 }],
  ],
  'operations/views/scan-store.ts:listAllScans': (
    ['running', 'queued', 'overdue', 'failed', 'complete', undefined] as const
  ).map((state) => [
    {
      ...{ state, nodeId: 1, tenantId: 1, serverId: 1, customer: 'a', limit: 1 },
      after: { place: '2026-01-01T00:00:00.000000Z', id: '0193a1f0-0000-7000-8000-000000000001' },
    },
    300,
  ]),
  'operations/views/scan-store.ts:countPendingScans': [[[1], 300]],
  'operations/views/server-list-store.ts:listServers': (['newest', 'oldest', 'name', '-name'] as const).map(
    (order) => [[1], { ...filter, order, after: { id: 1, name: 'a' } }],
  ),
  'operations/views/server-list-store.ts:countServers': [[[1], filter]],
};

const filtered = 'the condition of the statement leaves rows without it out';
const rows = 'is made only of real records';
const parts = 'takes a part of a statement as an argument';

/** Beginnings of faults of each program (`file:function what`), each with the reason why it is none. Keep it short. */
export const exceptions: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  operations: {
    'operations/ordering/store.ts:lockUnqueued "request" may be null': filtered,
    'operations/ordering/store.ts:listPaidClosed "reason" may be null': filtered,
    'operations/views/delivery-store.ts:listFailing "failingSince" may be null': filtered,
    'operations/views/protect-source-store.ts:listConflicts "siteId" may be null': filtered,
    'operations/protect/traffic/source-store.ts:claimSeries no statement':
      'takes a row whose owner is silent',
  },
  monitor: {
    'monitor/detection/store.ts:ensureDays no statement': rows,
    'monitor/devices/sightings-store.ts:refreshTimes no statement': rows,
    'monitor/facts/clickhouse/engine-store.ts:rows no statement': 'speaks to ClickHouse',
    'monitor/facts/clickhouse/engine-store.ts:version no statement': 'speaks to ClickHouse',
    'monitor/facts/control/awake-store.ts:keepAwake no statement': 'runs on a timer',
    'monitor/facts/control/capture-store.ts:ensureCaptures no statement': rows,
    'monitor/facts/control/unobserved-gap-store.ts:replaceGaps no statement': rows,
    'monitor/facts/postgres/append-store.ts:addCaptureMinutes no statement': rows,
    'monitor/facts/postgres/append-store.ts:markMinutes no statement': rows,
    'monitor/facts/postgres/detail-store.ts:readApplication PostgreSQL': parts,
    'monitor/facts/postgres/device-store.ts:sumDevices PostgreSQL': parts,
    'monitor/facts/postgres/device-store.ts:listTopAddresses PostgreSQL': parts,
    'monitor/facts/postgres/partition-store.ts:ensure no statement': rows,
    'monitor/facts/postgres/span-store.ts:findRolled no statement': rows,
    'monitor/feeds/store.ts:listHeldBack "outcome" may be null': filtered,
    'monitor/inbox/store.ts:storeUploads no statement': rows,
    'monitor/inbox/store.ts:readBodies "body" may be null': filtered,
    'monitor/live/postgres-store.ts:lockSite no statement': rows,
    'monitor/live/postgres-store.ts:insertWindow no statement': rows,
    'monitor/live/postgres-store.ts:deleteAged no statement': rows,
    'monitor/live/postgres-store.ts:deleteOverLength no statement': rows,
    'monitor/live/postgres-store.ts:listWindows no statement': rows,
    'monitor/live/postgres-store.ts:listRates no statement': rows,
    'monitor/operations-client/store.ts:writeCheck no statement': rows,
    'monitor/placements/store.ts:listNodes "node" may be null': filtered,
    'monitor/probes/availability-store.ts:readAvailability no statement': rows,
    'monitor/probes/availability-store.ts:readHistory no statement': rows,
    'monitor/probes/results-store.ts:ensureDays no statement': rows,
    'monitor/probes/store.ts:listPlanned no statement': rows,
    'monitor/retention/store.ts:dropPartition no statement': rows,
    'monitor/retention/store.ts:deleteExpired no statement': rows,
    'monitor/vendors/store.ts:listNames "manufacturer" may be null': filtered,
  },
  'service-kit': {
    'service-kit/outbox/store.ts:renewClaim no statement': 'the table is an argument',
    'service-kit/outbox/store.ts:releaseClaim no statement': 'the table is an argument',
    'service-kit/secrets/store.ts:hasSealed no statement': 'the table is an argument',
    'service-kit/secrets/store.ts:lockClear no statement': 'the table is an argument',
    'service-kit/secrets/store.ts:writeSealed no statement': 'the table is an argument',
    'service-kit/secrets/store.ts:listSealedBefore no statement': 'the table is an argument',
    'service-kit/secrets/store.ts:replaceSealed no statement': 'the table is an argument',
    'service-kit/secrets/store.ts:rewriteTable no statement': 'the table is an argument',
  },
};
