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
import type { IncidentsRequest } from '#contracts/admin-api/incidents.ts';
import { type Actor, requireStaff } from '#operations/accounts/index.ts';
import type { Sender } from '#operations/feeds/index.ts';
import {
  type AttackQuery,
  type AttackRow,
  countOpenAttacks,
  listAttacks,
  type OpenAttackCounts,
} from '#operations/views/attack-list-store.ts';
import type { FeatureWork } from '#service-kit/jobs/index.ts';
import { createExpiryLoop, type LeasedLoop, type LoopDeps } from '#service-kit/leases/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import { createAlertMailer } from '../alert-mails/index.ts';
import { reached, type Subject } from '../subject.ts';
import { attackMails } from './alert-customer.ts';
import type { IncidentFilter, IncidentQuery, IncidentRow, Refusal } from './incident.ts';
import { type ReceiveIncidentsDeps, receiveIncidents } from './receive-incidents.ts';
import * as store from './store.ts';

/** Incidents that were not applied: those that a page shows. */
const refusalsShown = 20;

export function createProtectIncidents(
  deps: Omit<ReceiveIncidentsDeps, 'canMail'> & { post: Post; clock: Clock; reporter: Reporter },
) {
  return {
    /** What it does beside the calls. */
    work: {
      parts: [createAlertMailer(attackMails, deps), createIncidentRetention(deps)],
    } satisfies FeatureWork,
    /** Stores what belongs to a server; throws `protect_incidents.invalid`. One outcome for each incident, in their order. */
    receive: (sender: Sender, request: IncidentsRequest) =>
      receiveIncidents({ ...deps, canMail: deps.post.canSend }, sender, request),
    /** Newest first. Throws `accounts.forbidden`. */
    async list(actor: Actor, subject: Subject, query: IncidentQuery): Promise<IncidentRow[]> {
      return store.listIncidents(deps.db(), reached(actor, subject), query);
    },
    /** How many incidents a list has on all its pages. Throws `accounts.forbidden`. */
    async count(actor: Actor, subject: Subject, query: IncidentFilter): Promise<number> {
      return store.countIncidents(deps.db(), reached(actor, subject), query);
    },
    /** Null when the server has no such incident. Throws `accounts.forbidden`. */
    async find(actor: Actor, subject: Subject, id: string): Promise<IncidentRow | null> {
      return store.findIncident(deps.db(), reached(actor, subject), id);
    },
    /** How the delivery of a server's attacks stands (NET-4.10). Throws `accounts.forbidden`. */
    async readStatus(actor: Actor, subject: Subject): Promise<store.IncidentStatus> {
      return store.readStatus(deps.db(), reached(actor, subject));
    },
    /** By server id: open attacks of those of these servers that the actor reaches. */
    async readOpen(actor: Actor, serverIds: readonly number[]): Promise<Map<number, store.OpenAttack>> {
      if (actor.kind === 'project' || serverIds.length === 0) return new Map();
      const tenantIds = actor.kind === 'customer' ? actor.tenantIds : 'all';
      const open = await store.listOpen(deps.db(), serverIds, tenantIds);
      return new Map(open.map((each) => [each.serverId, each]));
    },
    /** Of all customers, newest first. Staff only. */
    async listAll(actor: Actor, query: AttackQuery): Promise<AttackRow[]> {
      requireStaff(actor);
      return listAttacks(deps.db(), query);
    },
    /** Attacks that go on, without drills. Staff only. */
    async countOpen(actor: Actor): Promise<OpenAttackCounts> {
      requireStaff(actor);
      return countOpenAttacks(deps.db());
    },
    /** What became of a project's incidents within a week. Staff only. */
    async readOutcomes(actor: Actor, projectId: number): Promise<ProjectOutcomes> {
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

/** Deletes incidents that were last observed too long ago. */
export function createIncidentRetention(deps: LoopDeps): LeasedLoop {
  return createExpiryLoop({
    name: 'operations-incident-retention',
    ...deps,
    deleteExpired: store.deleteExpired,
  });
}

export type ProtectIncidents = ReturnType<typeof createProtectIncidents>;

export interface ProjectOutcomes {
  counts: Readonly<Record<'applied' | Refusal, number>>;
  /** The newest that were not applied. */
  refusals: store.RefusalRow[];
}
