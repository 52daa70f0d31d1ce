/**
 * Actions follow incidents, in the transaction that changes the incident: an attack that a rule is for makes an action, and
 * the end of all attacks on its address releases it. An action on an address that no server of the reporting node has waits for
 * an operator. Nothing is done to the network here; workers do that.
 */
import { type IncidentChange, setIncidentActions } from '#monitor/incidents/index.ts';
import { findAttackedOwners } from '#monitor/views/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { attackOf } from './action.ts';
import * as store from './note-store.ts';
import { isActionable, isFor } from './rule.ts';
import { listWatching } from './rules-store.ts';

/** Call it for every change of incidents, with their site locked. An incident that is stale keeps what it has. */
export async function noteHandOff(trx: Queryable, changes: readonly IncidentChange[]): Promise<void> {
  const attacks = changes.map(({ incident }) => incident).filter(isActionable);
  const isGone = (one: (typeof attacks)[number]) => one.isWithdrawn || one.mergedInto !== null;
  const over = attacks.filter((one) => one.state === 'recovered' || isGone(one));
  if (over.length > 0)
    await store.leaveIncidents(
      trx,
      over.map(({ id }) => id),
    );
  const active = attacks.filter((one) => one.state === 'active' && !isGone(one));
  if (active.length === 0) return;
  const rules = await listWatching(trx, [...new Set(active.map(({ siteId }) => siteId))]);
  const matches = active.flatMap((incident) =>
    rules
      .filter((rule) => isFor(rule, incident))
      .map(
        (rule): Omit<store.Match, 'needsApproval'> => ({
          ruleId: rule.id,
          siteId: incident.siteId,
          incidentId: incident.id,
          kind: rule.kind,
          isDryRun: rule.mode === 'dry_run',
          address: incident.target.value,
          targetKey: incident.targetKey,
          target: rule.target,
          holdSeconds: rule.holdSeconds,
          attack: attackOf(incident),
        }),
      ),
  );
  const owners = matches.length > 0 ? await findAttackedOwners(trx, matches) : [];
  // A sensor's word alone must not cut off what no server of its node has, and never a gateway.
  const allowed = matches.flatMap((match, i) =>
    owners[i] === 'host' ? [] : [{ ...match, needsApproval: owners[i] !== 'server' }],
  );
  if (allowed.length === 0) return;
  const joined = await store.joinActions(trx, allowed);
  if (joined.length > 0) await setIncidentActions(trx, await store.listTold(trx, joined));
}
