/** What incidents need from the rest of the program. */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Events } from '#monitor/events/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Incident, Transition } from './incident.ts';

/** A change of an incident that can be seen. */
export interface IncidentChange {
  /** As it is now. */
  incident: Incident;
  /** Null: it is new. */
  before: Incident | null;
  transitions: readonly Transition[];
}

export interface IncidentsDeps {
  db: () => Queryable;
  /** Connections that only read; the same as the others when absent. */
  reader?: () => Queryable;
  events: Pick<Events, 'record'>;
  clock: Clock;
  reporter: Reporter;
  /** Counts what this process applied: `applied` revisions, those of them that are `foreign`, `repeated` ones. */
  tally?(outcome: 'applied' | 'foreign' | 'repeated', count: number): void;
  /** Called with changes in their transaction, such as for alerts. */
  onChange?(trx: Queryable, changes: readonly IncidentChange[]): Promise<void>;
}
