/** The requests of the console's Hand-off pages, and what each leaves in the audit trail. */
import { systemActor } from '#monitor/operators/index.ts';
import type { Case, Stage } from './stage.ts';

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

const form = (name: string, revision: number) => ({
  revision: String(revision),
  name,
  kind: 'webhook',
  prefixes: '192.0.2.0/25',
  direction: 'both',
  min_pps: '100k',
  min_bps: '',
  hold_seconds: '600',
  url: 'https://example.com/other',
});

const path = '/sites/:siteId/protection/hand-off';

export const handOffCases: Readonly<Record<string, Case>> = {
  [`POST ${path}/limit`]: [
    'hand_off.set_limit',
    async ({ operator, siteId, monitor, next }) => {
      const { limit } = await monitor.handOff.describeSite(siteId);
      return operator.post(`/sites/${siteId}/protection/hand-off/limit`, {
        revision: String(limit.revision),
        addresses_max: String(20 + next()),
      });
    },
  ],
  [`POST ${path}/rules`]: [
    'hand_off_rule.add',
    ({ operator, siteId, next }) =>
      operator.post(`/sites/${siteId}/protection/hand-off/rules`, form(`new ${next()}`, 0)),
  ],
  [`POST ${path}/rules/:ruleId`]: [
    'hand_off_rule.change',
    async (stage) => {
      const { id, revision } = await addRule(stage);
      return stage.operator.post(
        `/sites/${stage.siteId}/protection/hand-off/rules/${id}`,
        form(`changed ${stage.next()}`, revision),
      );
    },
  ],
  [`POST ${path}/rules/:ruleId/mode`]: [
    'hand_off_rule.switch',
    async (stage) => {
      const { id, revision } = await addRule(stage);
      return stage.operator.post(`/sites/${stage.siteId}/protection/hand-off/rules/${id}/mode`, {
        revision: String(revision),
        mode: 'dry_run',
      });
    },
  ],
  [`POST ${path}/rules/:ruleId/delete`]: [
    'hand_off_rule.remove',
    async (stage) => {
      const { id, revision, name } = await addRule(stage);
      return stage.operator.post(`/sites/${stage.siteId}/protection/hand-off/rules/${id}/delete`, {
        revision: String(revision),
        confirm_name: name,
      });
    },
  ],
  [`POST ${path}/actions/:actionId/approve`]: [
    'hand_off.approve',
    async (stage) => {
      const id = await addAction(stage, 'waiting');
      return stage.operator.post(`/sites/${stage.siteId}/protection/hand-off/actions/${id}/approve`);
    },
  ],
  [`POST ${path}/actions/:actionId/end`]: [
    'hand_off.end_now',
    async (stage) => {
      const id = await addAction(stage, 'active');
      return stage.operator.post(`/sites/${stage.siteId}/protection/hand-off/actions/${id}/end`);
    },
  ],
  [`POST ${path}/actions/:actionId/give-up`]: [
    'hand_off.give_up',
    async (stage) => {
      const id = await addAction(stage, 'ending');
      return stage.operator.post(`/sites/${stage.siteId}/protection/hand-off/actions/${id}/give-up`);
    },
  ],
};
