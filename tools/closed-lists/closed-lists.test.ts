import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findingSeverities, mailedSeverities } from '#contracts/findings.ts';
import {
  attackDirections,
  incidentCoverages,
  incidentSeverities,
  incidentStates,
  targetKinds,
} from '#contracts/incidents.ts';
import { firewallProtocols, transports } from '#contracts/ip-protocols.ts';
import { scanKinds, scanMethods, scanProfiles, scanStates } from '#contracts/port-scan/index.ts';
import { createTestDatabase } from '#service-kit/testing/index.ts';
import { treeOf } from '../testing/tree-of.ts';
import { findCopies } from './index.ts';

test('a file that spells half of a closed list is refused by its name, as texts and as keys, and its own table is not', () => {
  const names = ['red_flood', 'green_flood', 'blue_flood', 'other'];
  const keys = names.map((name) => `  ${name}: 'a flood',`).join('\n');
  const tree = treeOf({
    'contracts/floods.ts': keys,
    'monitor/floods.ts': "const floods = ['red_flood', 'green_flood', 'blue_flood'];",
    'monitor/words.ts': keys,
    'monitor/two.ts': "const two = ['red_flood', 'green_flood'];",
    'monitor/types.ts': names.map((name) => `  ${name}: number;`).join('\n'),
    'monitor/floods.test.ts': keys,
  });
  assert.deepEqual(
    findCopies(tree, [{ names, files: ['contracts/floods.ts'] }]).map(({ file }) => file),
    ['monitor/floods.ts', 'monitor/words.ts'],
  );
});

const constrained: Readonly<Record<'monitor' | 'operations', Readonly<Record<string, readonly string[]>>>> = {
  monitor: {
    'incidents.direction': attackDirections,
    'incidents.severity': incidentSeverities,
    'incidents.state': incidentStates,
    'incidents.target_kind': targetKinds,
    'protection_drills.direction': attackDirections,
    'scan_attempts.profile': scanProfiles,
    'scan_identifications.profile': scanProfiles,
    'scan_identifications.transport': transports,
    'scan_observations.method': scanMethods,
    'scan_observations.profile': scanProfiles,
    'scan_observations.transport': transports,
    'vulnerability_findings.rating': findingSeverities,
    'vulnerability_services.transport': transports,
  },
  operations: {
    'finding_ignores.transport': transports,
    'finding_services.transport': transports,
    'findings.severity': findingSeverities,
    'firewall_rules.protocol': firewallProtocols,
    'port_observations.transport': transports,
    'port_scans.kind': scanKinds,
    'port_scans.profile': scanProfiles,
    'protect_incidents.coverage': incidentCoverages,
    'protect_incidents.direction': attackDirections,
    'protect_incidents.severity': incidentSeverities,
    'protect_incidents.state': incidentStates,
    'protect_settings.finding_mail': ['off', ...mailedSeverities],
    'scan_requests.state': scanStates,
  },
};

for (const program of ['monitor', 'operations'] as const)
  test(`the database of ${program} takes the names of the closed lists and no others`, async () => {
    await using database = await createTestDatabase(program);
    const { rows } = await database.pool.query<{ table: string; text: string }>(
      `select conrelid::regclass::text as table, pg_get_constraintdef(oid) as text from pg_constraint where contype = 'c'`,
    );
    const stored = new Map<string, string[]>();
    for (const { table, text } of rows) {
      const [, column, names] = /^CHECK \(\((\w+) = ANY \(ARRAY\[(.*)\]\)\)\)$/.exec(text) ?? [];
      if (names)
        stored.set(
          `${table}.${column}`,
          [...names.matchAll(/'([^']*)'/g)].map(([, name]) => name!),
        );
    }
    for (const [column, names] of Object.entries(constrained[program]))
      assert.deepEqual(stored.get(column)?.toSorted(), names.toSorted(), column);
  });
