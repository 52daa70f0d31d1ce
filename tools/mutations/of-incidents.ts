/** Ways to break the rules of incidents (NET-1.6, 2.9, 3.2, 4.1, 4.2, 4.6, 6, 8.R2), and who may speak for whom. */
import type { Mutation } from './mutation.ts';

const correlate = 'monitor/incidents/correlate.ts';
const ownership = 'monitor/incidents/judge-ownership.ts';
const feed = 'monitor/feeds/incidents/index.ts';
const rules = ['monitor/incidents/correlate.test.ts'];
const intake = ['monitor/incidents/intake.test.ts'];
const owners = ['monitor/incidents/ownership.test.ts'];
const delivery = ['monitor/feeds/incidents/incident-feed.test.ts'];
const pages = ['monitor/surfaces/console/incidents/incidents.page.test.ts'];

export const mutationsOfIncidents: readonly Mutation[] = [
  {
    rule: 'NET-1.6',
    what: 'a mail about an attack that was queued is sent while the views are off',
    file: 'operations/views/alert-mail-store.ts',
    find: 'coalesce(c.views_on and c.attack_mail, true)',
    replace: 'coalesce(c.attack_mail, true)',
    tests: ['operations/protect/incidents/alerts.test.ts'],
  },
  {
    rule: 'NET-2.9',
    what: 'a lower revision of an observation stands for a higher one',
    file: 'monitor/incidents/store.ts',
    find: 'where excluded.revision > held.revision',
    replace: 'where excluded.revision <> held.revision',
    tests: intake,
  },
  {
    rule: 'NET-3.2',
    what: 'one recovery ends an incident that others still observe',
    file: correlate,
    find: 'else if (!isReleased(one)) return null;',
    replace: 'else if (false && !isReleased(one)) return null;',
    tests: rules,
  },
  {
    rule: 'NET-3.2',
    what: 'an observation is stale after two minutes',
    file: correlate,
    find: 'export const staleMs = 90_000;',
    replace: 'export const staleMs = 120_000;',
    tests: rules,
  },
  {
    rule: 'NET-3.2',
    what: 'an incident without news stays active',
    file: 'monitor/incidents/watch-stale.ts',
    find: 'if (found > 0) await regroup',
    replace: 'if (found > 256) await regroup',
    tests: intake,
  },
  {
    rule: 'NET-3.2',
    what: 'the judging loop resolves alerts of attacks',
    file: 'monitor/alerts/judge-subjects.ts',
    find: 'if (fedKinds.has(episode.kind)) continue;',
    replace: '',
    tests: pages,
  },
  {
    rule: 'NET-4.1',
    what: 'attacks on prefixes and captures are sent to operations',
    file: 'monitor/incidents/delivery-store.ts',
    find: "i.target_kind = 'host' and (",
    replace: '(',
    tests: delivery,
  },
  {
    rule: 'NET-4.1',
    what: "a sensor makes incidents of other nodes' servers",
    file: ownership,
    find: "said.target.kind === 'host' &&\n    [said.startedAtMs",
    replace: "said.target.kind === 'prefix' &&\n    [said.startedAtMs",
    tests: owners,
  },
  {
    rule: 'NET-4.1',
    what: 'an outbound attack is blamed on the address that its packets name',
    file: ownership,
    find: 'return (statement) => !all.has(statement) || certain.has(statement);',
    replace: 'return (statement) => !all.has(statement) || certain.size >= 0;',
    tests: owners,
  },
  {
    rule: 'NET-4.2',
    what: 'what is unchanged is sent again by every tick',
    file: feed,
    find: 'delivered.get(id) !== revision',
    replace: 'delivered.get(id) !== -revision',
    tests: delivery,
  },
  {
    rule: 'NET-4.2',
    what: 'active incidents are not sent again after a restart',
    file: feed,
    find: 'isPending || delivered.get(id) !== revision',
    replace: 'isPending',
    tests: delivery,
  },
  {
    rule: 'NET-4.2',
    what: 'a tick takes 1,000 incidents',
    file: feed,
    find: 'batch: { itemsPerTick: incidentsMax,',
    replace: 'batch: { itemsPerTick: 1000,',
    tests: delivery,
  },
  {
    rule: 'NET-4.6',
    what: 'SVC_OPS_DDOS_SYNC=0 leaves the incident loop running',
    file: 'monitor/composition.ts',
    find: '    cadence.isOn && roles.has(',
    replace: "    (cadence.isOn || feed.name === 'incidents') && roles.has(",
    tests: delivery,
  },
  {
    rule: 'NET-6',
    what: 'what is no attack leaves an event too',
    file: 'monitor/incidents/regroup.ts',
    find: "if (before !== null || incident.severity !== 'attack') continue;",
    replace: 'if (before !== null) continue;',
    tests: intake,
  },
  {
    rule: 'NET-8.R2',
    what: 'incidents are kept three months',
    file: 'monitor/incidents/kept.ts',
    find: "{ table: 'incidents', column: 'last_observed_at', keptFor: '1 year', isPartitioned: false }",
    replace: "{ table: 'incidents', column: 'last_observed_at', keptFor: '3 months', isPartitioned: false }",
    tests: pages,
  },
];
