import type { IncidentOutcomes, IncidentsRequest } from '#contracts/admin-api/incidents.ts';
import type { Actor } from '#operations/accounts/index.ts';
import type { Sender } from '#operations/feeds/index.ts';
import type { AttackQuery, AttackRow, OpenAttackCounts } from '#operations/views/index.ts';
import type { FeatureWork } from '#service-kit/jobs/index.ts';
import type { IncidentFilter, IncidentQuery, IncidentRow, Refusal } from './incident.ts';
import type { IncidentStatus, OpenAttack, RefusalRow } from './store.ts';

/** The server of a page or a call; the caller has looked it up for this actor. */
export interface IncidentSubject {
  serverId: number;
  tenantId: number;
}

export interface ProtectIncidents {
  /** What it does beside the calls. */
  readonly work: FeatureWork;
  /** Stores what belongs to a server; throws `protect_incidents.invalid`. One outcome for each incident, in their order. */
  receive(sender: Sender, request: IncidentsRequest): Promise<IncidentOutcomes>;
  /** Newest first. Throws `accounts.forbidden`. */
  list(actor: Actor, subject: IncidentSubject, query: IncidentQuery): Promise<IncidentRow[]>;
  /** How many incidents a list has on all its pages. Throws `accounts.forbidden`. */
  count(actor: Actor, subject: IncidentSubject, query: IncidentFilter): Promise<number>;
  /** Null when the server has no such incident. Throws `accounts.forbidden`. */
  find(actor: Actor, subject: IncidentSubject, id: string): Promise<IncidentRow | null>;
  /** How the delivery of a server's attacks stands (NET-4.10). Throws `accounts.forbidden`. */
  readStatus(actor: Actor, subject: IncidentSubject): Promise<IncidentStatus>;
  /** By server id: open attacks of those of these servers that the actor reaches. */
  readOpen(actor: Actor, serverIds: readonly number[]): Promise<Map<number, OpenAttack>>;
  /** Of all customers, newest first. Staff only. */
  listAll(actor: Actor, query: AttackQuery): Promise<AttackRow[]>;
  /** Attacks that go on, without drills. Staff only. */
  countOpen(actor: Actor): Promise<OpenAttackCounts>;
  /** What became of a project's incidents within a week. Staff only. */
  readOutcomes(actor: Actor, projectId: number): Promise<ProjectOutcomes>;
}

export interface ProjectOutcomes {
  counts: Readonly<Record<'applied' | Refusal, number>>;
  /** The newest that were not applied. */
  refusals: RefusalRow[];
}
