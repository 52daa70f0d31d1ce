/**
 * Attacks on and from servers: what monitors deliver, and who may see it.
 *
 * An incident belongs to the allocation generation that it was matched with first, never to an address, so the next owner of
 * an address sees nothing of it. The highest revision holds; only the sensor's own recovery, which the monitor passes on,
 * ends it. The customer is told of start and
 * end once, by mail and webhook. Reading asks for server and tenant in the query.
 */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { type Actor, forbidden, reachesTenant, requireStaff } from '#operations/accounts/index.ts';
import { countOpenAttacks, listAttacks } from '#operations/views/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import { createAlertMailer } from '../alert-mails/index.ts';
import { attackMails } from './attack-mail.ts';
import { createIncidentRetention } from './jobs.ts';
import type { IncidentSubject, ProtectIncidents } from './protect-incidents.ts';
import { type ReceiveIncidentsDeps, receiveIncidents } from './receive-incidents.ts';
import * as store from './store.ts';

export type { AttackQuery, AttackRow, OpenAttackCounts } from '#operations/views/index.ts';

export type { IncidentCursor, IncidentQuery, IncidentRow, IncidentVector } from './incident.ts';
export { actionsOf } from './incident.ts';
export { createIncidentsReceiver } from './incidents-receiver.ts';
export type { IncidentSubject, ProjectOutcomes, ProtectIncidents } from './protect-incidents.ts';
export type { IncidentStatus, OpenAttack, RefusalRow } from './store.ts';

/** Incidents that were not applied: those that a page shows. */
const refusalsShown = 20;

export interface ProtectIncidentsDeps extends Omit<ReceiveIncidentsDeps, 'canMail'> {
  post: Post;
  clock: Clock;
  reporter: Reporter;
}

export function createProtectIncidents(deps: ProtectIncidentsDeps): ProtectIncidents {
  return {
    work: { parts: [createAlertMailer(attackMails, deps), createIncidentRetention(deps)] },
    receive: (sender, request) => receiveIncidents({ ...deps, canMail: deps.post.canSend }, sender, request),
    async list(actor, subject, query) {
      return store.listIncidents(deps.db(), scopeOf(actor, subject), query);
    },
    async count(actor, subject, query) {
      return store.countIncidents(deps.db(), scopeOf(actor, subject), query);
    },
    async find(actor, subject, id) {
      return store.findIncident(deps.db(), scopeOf(actor, subject), id);
    },
    async readStatus(actor, subject) {
      return store.readStatus(deps.db(), scopeOf(actor, subject));
    },
    async readOpen(actor, serverIds) {
      if (actor.kind === 'project' || serverIds.length === 0) return new Map();
      const tenantIds = actor.kind === 'customer' ? actor.tenantIds : 'all';
      const open = await store.listOpen(deps.db(), serverIds, tenantIds);
      return new Map(open.map((each) => [each.serverId, each]));
    },
    async listAll(actor, query) {
      requireStaff(actor);
      return listAttacks(deps.db(), query);
    },
    async countOpen(actor) {
      requireStaff(actor);
      return countOpenAttacks(deps.db());
    },
    async readOutcomes(actor, projectId) {
      requireStaff(actor);
      const [counted, refusals] = await Promise.all([
        store.countOutcomes(deps.db(), projectId),
        store.listRefusals(deps.db(), projectId, refusalsShown),
      ]);
      const counts = { applied: 0, unmatched: 0, identity_conflict: 0, terminal: 0 };
      for (const { outcome, count } of counted) counts[outcome] = count;
      return { counts, refusals };
    },
  };
}

function scopeOf(actor: Actor, { serverId, tenantId }: IncidentSubject): IncidentSubject {
  if (!reachesTenant(actor, tenantId)) throw forbidden('This server belongs to another account.');
  return { serverId, tenantId };
}
