/** The requests of the console's Protection pages, and what each leaves in the audit trail. */
import { systemActor } from '#monitor/operators/index.ts';
import type { Case, Stage } from './stage.ts';

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

const order = { class: 'syn_flood', direction: 'inbound', pps: '50000', seconds: '30' };

export const protectionCases: Readonly<Record<string, Case>> = {
  'POST /sites/:siteId/protection/thresholds': [
    'protection.set_thresholds',
    async (stage) =>
      stage.operator.post(`/sites/${stage.siteId}/protection/thresholds`, {
        revision: String(await siteRevision(stage)),
        'inbound.pps': String(40_000 + stage.next()),
      }),
  ],
  'POST /sites/:siteId/protection/additional-cidrs': [
    'protection.set_additional_cidrs',
    async (stage) =>
      stage.operator.post(`/sites/${stage.siteId}/protection/additional-cidrs`, {
        revision: String(await siteRevision(stage)),
        additional_cidrs: `198.51.${stage.next()}.0/24`,
      }),
  ],
  'POST /sites/:siteId/protection/groups': [
    'protection_group.add',
    ({ operator, siteId, next }) => {
      const n = next();
      const group = { revision: '0', name: `new ${n}`, prefixes: `10.8.${n}.0/24` };
      return operator.post(`/sites/${siteId}/protection/groups`, group);
    },
  ],
  'POST /sites/:siteId/protection/groups/:groupId': [
    'protection_group.change',
    async (stage) => {
      const { operator, siteId, next } = stage;
      const { id, revision } = await addGroup(stage);
      const n = next();
      const group = { revision: String(revision), name: `changed ${n}`, prefixes: `10.7.${n}.0/24` };
      return operator.post(`/sites/${siteId}/protection/groups/${id}`, group);
    },
  ],
  'POST /sites/:siteId/protection/groups/:groupId/delete': [
    'protection_group.remove',
    async (stage) => {
      const { operator, siteId } = stage;
      const { id, revision, name } = await addGroup(stage);
      const form = { revision: String(revision), confirm_name: name };
      return operator.post(`/sites/${siteId}/protection/groups/${id}/delete`, form);
    },
  ],
  'POST /sites/:siteId/protection/addresses/:address': [
    'protection.set_thresholds',
    ({ operator, siteId, next }) =>
      operator.post(`/sites/${siteId}/protection/addresses/203.0.113.${next()}`, {
        revision: '0',
        'inbound.pps': '50000',
      }),
  ],
  'POST /sites/:siteId/protection/servers/:clusterId/:vmId': [
    'protection.set_thresholds',
    async ({ operator, siteId, next, monitor, server }) => {
      const vmId = next();
      await monitor.sites.mapCluster(systemActor, 77, siteId);
      await server.database.pool.query(
        `insert into inventory_vms (cluster_id, vm_id, node, name, state, updated_at)
         values (77, ${vmId}, 'node-1', 'web', 'running', '2026-01-01')`,
      );
      const form = { revision: '0', 'inbound.pps': '50000' };
      return operator.post(`/sites/${siteId}/protection/servers/77/${vmId}`, form);
    },
  ],
  'POST /sites/:siteId/protection/addresses/:address/drills': [
    'drill.start',
    async (stage) => {
      const address = await protectOne(stage);
      return stage.operator.post(`/sites/${stage.siteId}/protection/addresses/${address}/drills`, order);
    },
  ],
  'POST /sites/:siteId/protection/addresses/:address/drills/:drillId/stop': [
    'drill.stop',
    async (stage) => {
      const { operator, siteId, monitor } = stage;
      const address = await protectOne(stage);
      const id = await monitor.protection.startDrill(systemActor, siteId, address, order);
      return operator.post(`/sites/${siteId}/protection/addresses/${address}/drills/${id}/stop`);
    },
  ],
  'POST /sites/:siteId/protection/groups/:groupId/what-if': [
    'what_if.start',
    async (stage) => {
      const { operator, siteId } = stage;
      const { id } = await addGroup(stage);
      await endReplays(stage);
      return operator.post(`/sites/${siteId}/protection/groups/${id}/what-if`, { 'inbound.pps': '1000' });
    },
  ],
  'POST /sites/:siteId/protection/groups/:groupId/what-if/:replayId/cancel': [
    'what_if.cancel',
    async (stage) => {
      const { operator, siteId, monitor } = stage;
      const { id } = await addGroup(stage);
      await endReplays(stage);
      const texts = { inbound: {}, outbound: {} };
      const replay = await monitor.protection.startGroupReplay(systemActor, siteId, id, texts);
      return operator.post(`/sites/${siteId}/protection/groups/${id}/what-if/${replay}/cancel`);
    },
  ],
};
