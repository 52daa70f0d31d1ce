/** Requests of the pages of protection, hand-off and potential vulnerabilities, each of which changes something. */
import { systemActor } from '#monitor/operators/index.ts';
import { form, type Stage } from './audit-stage.ts';

/** The version that a form must name to be saved. */
async function siteRevision({ monitor, siteId }: Stage): Promise<number> {
  return (await monitor.protection.describeSite(siteId, [])).settings.site.revision;
}

async function addGroup(stage: Stage) {
  const { monitor, siteId, next } = stage;
  const n = next();
  const group = {
    name: `group ${n}`,
    prefixes: [`10.9.${n}.0/24`],
    thresholds: { inbound: {}, outbound: {} },
  };
  const id = await monitor.protection.saveGroup(systemActor, siteId, null, group, 0);
  const { settings } = await monitor.protection.describeSite(siteId, []);
  return settings.groups.find((one) => one.id === id)!;
}

/** An address that additional prefixes protect. */
async function protectOne(stage: Stage): Promise<string> {
  const { monitor, siteId, next } = stage;
  const prefix = ['192.0.2.0/24'];
  await monitor.protection.setAdditionalCidrs(systemActor, siteId, prefix, await siteRevision(stage));
  return `192.0.2.${next()}`;
}

/** One of a site is replayed at once. */
async function endReplays({ monitor }: Stage): Promise<void> {
  await monitor.protection.replays.drain();
}

/** A rule that never acts: the stage has no attacks. */
async function addRule({ monitor, siteId, next }: Stage) {
  const { id } = await monitor.handOff.addRule(systemActor, siteId, {
    name: `rule ${next()}`,
    kind: 'webhook',
    prefixes: ['192.0.2.0/24'],
    direction: 'inbound',
    minPps: '',
    minBps: '',
    holdSeconds: '300',
    url: 'https://example.com/hook',
  });
  const { rules } = await monitor.handOff.describeSite(siteId);
  return rules.find((one) => one.id === id)!;
}

/** An action of a new rule in this state; returns its id. */
async function addAction(stage: Stage, state: 'waiting' | 'active' | 'ending'): Promise<number> {
  const rule = await addRule(stage);
  const { rows } = await stage.server.database.pool.query(
    `insert into hand_off_actions (site_id, rule_id, kind, is_dry_run, address, target_key, target, hold_seconds, attack, state, attempts,
       needs_approval)
     values ($1, $2, 'webhook', false, '192.0.2.7', 'host 192.0.2.7', '{}', 300, '{}', $3, 1, $3 = 'waiting') returning id`,
    [stage.siteId, rule.id, state],
  );
  return rows[0].id as number;
}

/** A server with one finding, as an assessment leaves it. */
async function addFinding({ server, siteId, next }: Stage) {
  const { pool } = server.database;
  const serverId = 1_000 + next();
  const cve = `CVE-2024-${10_000 + serverId}`;
  const place = { address: '192.0.2.7', transport: 'tcp', port: '22', fingerprint: 'a'.repeat(64), cve };
  const finding = {
    ...{ cve, status: 'Analyzed', summary: 'A fault.', severity: null, isKnownExploited: false },
    ...{ isDisputed: false, result: 'affected', incomplete: [], matched: [] },
    ...{ publishedAt: '2024-01-01T00:00:00.000', modifiedAt: '2024-01-01T00:00:00.000' },
  };
  await pool.query(
    `insert into vulnerability_servers (cluster_id, vm_id, site_id, checked_at, services) values (7, $1, $2, svc_now(), 1)`,
    [serverId, siteId],
  );
  const { rows } = await pool.query(
    `insert into vulnerability_software (product, version) values ('openssh', $1) returning id`,
    [`audit-${serverId}`],
  );
  await pool.query(
    `insert into vulnerability_findings (software_id, cve, place, is_known_exploited, finding) values ($1, $2, 1, false, $3)`,
    [rows[0].id, cve, JSON.stringify(finding)],
  );
  await pool.query(
    `insert into vulnerability_services (cluster_id, vm_id, address, transport, port, scan_id, first_observed_at, observed_at,
       fingerprint, software_id, product_key)
     values (7, $1, $2, 'tcp', 22, gen_random_uuid(), svc_now(), svc_now(), $3, $4, 'openssh')`,
    [serverId, place.address, place.fingerprint, rows[0].id],
  );
  return { serverId, place };
}

const order = { class: 'syn_flood', direction: 'inbound', pps: '50000', seconds: '30' };
const ofRule = async (stage: Stage) => {
  const { id, revision, name } = await addRule(stage);
  return { ':ruleId': id, revision, name };
};
const ruleFields = {
  ...{ kind: 'webhook', prefixes: '192.0.2.0/25', direction: 'both', min_pps: '100k', min_bps: '' },
  ...{ hold_seconds: 600, url: 'https://example.com/other' },
};
const protection = 'POST /sites/:siteId/protection';
const findings = 'POST /sites/:siteId/vulnerabilities/servers/:clusterId/:serverId';

export const protectionCases = Object.fromEntries([
  form(`${protection}/thresholds`, 'protection.set_thresholds', async (stage) => ({
    revision: await siteRevision(stage),
    'inbound.pps': 40_000 + stage.next(),
  })),
  form(`${protection}/additional-cidrs`, 'protection.set_additional_cidrs', async (stage) => ({
    revision: await siteRevision(stage),
    additional_cidrs: `198.51.${stage.next()}.0/24`,
  })),
  form(`${protection}/groups`, 'protection_group.add', ({ next }) => {
    const n = next();
    return { revision: 0, name: `new ${n}`, prefixes: `10.8.${n}.0/24` };
  }),
  form(`${protection}/groups/:groupId`, 'protection_group.change', async (stage) => {
    const { id, revision } = await addGroup(stage);
    const n = stage.next();
    return { ':groupId': id, revision, name: `changed ${n}`, prefixes: `10.7.${n}.0/24` };
  }),
  form(`${protection}/groups/:groupId/delete`, 'protection_group.remove', async (stage) => {
    const { id, revision, name } = await addGroup(stage);
    return { ':groupId': id, revision, confirm_name: name };
  }),
  form(`${protection}/addresses/:address`, 'protection.set_thresholds', ({ next }) => ({
    ...{ ':address': `203.0.113.${next()}`, revision: 0, 'inbound.pps': 50_000 },
  })),
  form(`${protection}/servers/:clusterId/:serverId`, 'protection.set_thresholds', async (stage) => {
    const { siteId, next, monitor, server } = stage;
    const serverId = next();
    await monitor.sites.mapCluster(systemActor, 77, siteId);
    await server.database.pool.query(
      `insert into inventory_vms (cluster_id, vm_id, node, name, state, updated_at)
       values (77, ${serverId}, 'node-1', 'web', 'running', '2026-01-01')`,
    );
    return { ':clusterId': 77, ':serverId': serverId, revision: 0, 'inbound.pps': 50_000 };
  }),
  form(`${protection}/addresses/:address/drills`, 'drill.start', async (stage) => ({
    ':address': await protectOne(stage),
    ...order,
  })),
  form(`${protection}/addresses/:address/drills/:drillId/stop`, 'drill.stop', async (stage) => {
    const { siteId, monitor } = stage;
    const address = await protectOne(stage);
    const id = await monitor.protection.startDrill(systemActor, siteId, address, order);
    return { ':address': address, ':drillId': id };
  }),
  form(`${protection}/groups/:groupId/what-if`, 'what_if.start', async (stage) => {
    const { id } = await addGroup(stage);
    await endReplays(stage);
    return { ':groupId': id, 'inbound.pps': 1000 };
  }),
  form(`${protection}/groups/:groupId/what-if/:replayId/cancel`, 'what_if.cancel', async (stage) => {
    const { siteId, monitor } = stage;
    const { id } = await addGroup(stage);
    await endReplays(stage);
    const texts = { inbound: {}, outbound: {} };
    const replay = await monitor.protection.startGroupReplay(systemActor, siteId, id, texts);
    return { ':groupId': id, ':replayId': replay };
  }),
  form(`${protection}/hand-off/limit`, 'hand_off.set_limit', async ({ siteId, monitor, next }) => {
    const { limit } = await monitor.handOff.describeSite(siteId);
    return { revision: limit.revision, addresses_max: 20 + next() };
  }),
  form(`${protection}/hand-off/rules`, 'hand_off_rule.add', ({ next }) => ({
    ...{ revision: 0, name: `new ${next()}`, ...ruleFields },
  })),
  form(`${protection}/hand-off/rules/:ruleId`, 'hand_off_rule.change', async (stage) => ({
    ...{ ...(await ofRule(stage)), name: `changed ${stage.next()}`, ...ruleFields },
  })),
  form(`${protection}/hand-off/rules/:ruleId/mode`, 'hand_off_rule.switch', async (stage) => ({
    ...(await ofRule(stage)),
    mode: 'dry_run',
  })),
  form(`${protection}/hand-off/rules/:ruleId/delete`, 'hand_off_rule.remove', async (stage) => {
    const { name, ...of } = await ofRule(stage);
    return { ...of, confirm_name: name };
  }),
  ...(
    [
      ['approve', 'hand_off.approve', 'waiting'],
      ['end', 'hand_off.end_now', 'active'],
      ['give-up', 'hand_off.give_up', 'ending'],
    ] as const
  ).map(([verb, operation, state]) =>
    form(`${protection}/hand-off/actions/:actionId/${verb}`, operation, async (stage) => ({
      ':actionId': await addAction(stage, state),
    })),
  ),
  form(`${protection}/hand-off/actions/:actionId/drop`, 'hand_off.drop', async (stage) => {
    const id = await addAction(stage, 'active');
    const attack = { class: 'syn_flood', vectors: [], startedAtMs: 0 };
    await stage.server.database.pool.query(
      "update hand_off_actions set kind = 'filter', attack = $2, started_at = svc_now(), target = $3 where id = $1",
      [id, attack, { maxSeconds: 60 }],
    );
    return { ':actionId': id };
  }),
  form(`${findings}/ignore`, 'finding.ignore', async (stage) => {
    const { serverId, place } = await addFinding(stage);
    return {
      ':clusterId': 7,
      ':serverId': serverId,
      ...place,
      reason: 'The module is not loaded.',
      until: '',
    };
  }),
  form(`${findings}/ignores/:ignoreId/end`, 'finding.end_ignore', async (stage) => {
    const { serverId, place } = await addFinding(stage);
    const input = { ...place, clusterId: 7, serverId, port: Number(place.port) };
    const ignore = { ...input, reason: 'a', untilMs: null };
    const id = await stage.monitor.vulnerabilities.ignore(systemActor, ignore);
    return { ':clusterId': 7, ':serverId': serverId, ':ignoreId': id };
  }),
]);
