// Own process: it sets by the environment how long data is kept.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Command } from 'commander';
import { createTestClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { kept } from '#contracts/retention.ts';
import type { Hypervisors } from '#operations/hypervisors/index.ts';
import { allRoles } from '#service-kit/roles/index.ts';
import { compose, partsOf } from './composition.ts';
import { type OperationsSettings, readOperationsSettings } from './config.ts';
import { addCommands } from './main.ts';
import type { Overrides } from './overrides.ts';
import { operationsRoles } from './roles.ts';

async function partNames(
  settings: Partial<OperationsSettings> = {},
  overrides: Overrides = {},
): Promise<string[]> {
  const given = { ...readOperationsSettings({ SVC_OPERATIONS_PORT: '0' }), ...settings };
  const operations = await compose(given, { reporter: silentReporter, ...overrides });
  const http = await operations.createServer();
  return partsOf(operations, http).map(({ name }) => name);
}

test('serve starts the database and its secrets first, the work of every feature next, and the server last', async () => {
  assert.deepEqual(await partNames(), [
    ...['database', 'secrets', 'disk watch', 'notifications', 'limits', 'jobs', 'jobs', 'jobs', 'jobs'],
    'loop operations.billing_maintenance',
    'loop operations.orders',
    'loop operations.root_passwords',
    'loop operations.reconcile_charges',
    'loop operations.power_observer',
    'loop operations.drift',
    'loop operations-spoofing-retention',
    'loop operations-change-retention',
    'loop operations.bandwidth_readings',
    'loop operations.bandwidth_rollup',
    'loop operations.bandwidth_thresholds',
    'loop operations.bandwidth_limits',
    'loop operations.idempotency_retention',
    'attack mails',
    'loop operations-incident-retention',
    'loop operations-traffic-retention',
    'loop operations-live-retention',
    'loop operations-scan-requests',
    'port mails',
    'loop operations-scan-retention',
    'finding mails',
    'loop operations-finding-retention',
    'loop operations-finding-counts',
    'webhooks',
    'loop webhooks.upkeep',
    'loop metering.thresholds',
    'loop operations.attention',
    'database watch',
    'loop operations-audit-retention',
    'http',
  ]);
});

test('the roles together do everything that serve does, and each thing is of one role', async () => {
  const roles = [...allRoles(operationsRoles)];
  const ofRoles = await Promise.all(roles.map((role) => partNames({}, { roles: new Set([role]) })));
  const [web, jobs] = ofRoles;
  assert.deepEqual(web, ['database', 'secrets', 'disk watch', 'notifications', 'limits', 'http']);
  assert.deepEqual(jobs, ['database', 'secrets', 'disk watch', 'jobs', 'jobs', 'jobs', 'jobs', 'http']);
  const common = ['database', 'secrets', 'disk watch', 'http'];
  const together = ofRoles.flatMap((names) => names.filter((name) => !common.includes(name)));
  assert.deepEqual([...common, ...together].sort(), (await partNames()).sort());
});

test('settings decide which work there is', async () => {
  const usual = await partNames();
  const notices = await partNames({ noticeUrl: 'https://monitor.example', noticeSecret: 'secret' });
  const telemetry = await partNames({ bandwidthSource: 'telemetry' });
  assert.equal(notices.filter((name) => name === 'jobs').length, 5);
  assert.deepEqual(
    [usual.filter((name) => !telemetry.includes(name)), telemetry.filter((name) => !usual.includes(name))],
    [['loop operations.bandwidth_readings'], []],
  );
});

test('an override takes the place of the part that the settings would make, and is asked once for all features', async () => {
  const asked: string[] = [];
  const clock = createTestClock(Date.UTC(2026, 0, 1));
  const hypervisors: Hypervisors = {
    of: () => assert.fail('no guest is needed'),
    capabilitiesOf: () => [],
    preparedGuestsOf: () => [],
  };
  const overrides: Overrides = {
    reporter: silentReporter,
    clock,
    hypervisors: () => {
      asked.push('hypervisors');
      return hypervisors;
    },
    gateway: (usual) => ({ ...usual, name: 'stripe' }),
    apiKeys: (usual) => {
      asked.push('apiKeys');
      return usual;
    },
  };
  const settings = readOperationsSettings({ SVC_PAYMENT_GATEWAY: 'test' });
  const operations = await compose(settings, overrides);
  assert.deepEqual(asked, ['hypervisors', 'apiKeys']);
  assert.equal(operations.hypervisors, hypervisors);
  assert.equal(operations.payments.gatewayName, 'stripe');
  assert.equal(operations.clock, clock);
});

test('NET-8: every command keeps traffic and attacks for as long as the environment says', (t) => {
  const former = { ...kept };
  const set = { SVC_TRAFFIC_RETENTION_MONTHS: '7', SVC_INCIDENT_RETENTION_YEARS: '2' };
  t.after(() => {
    Object.assign(kept, former);
    for (const name of Object.keys(set)) delete process.env[name];
  });
  Object.assign(process.env, set);
  addCommands(new Command());
  assert.deepEqual({ ...kept }, { ...former, traffic: '7 months', bindings: '7 months', attacks: '2 years' });
});
