/** The incident feed (NET-4.g, NET-3.2): what the monitor says of attacks, and what operations made of it. */
import { type Static, Type } from 'typebox';
import { attackClasses, attackClassRows, classesVersion } from '../attack-classes.ts';
import {
  actionKinds,
  attackDirections,
  incidentCoverages,
  incidentSeverities,
  incidentStates,
  targetKinds,
} from '../incidents.ts';
import { Count, Id, Nullable, Share, Strict, Timestamp } from '../scalars.ts';
import type { FeedContract } from './contract.ts';

const Uuid = Type.String({ pattern: '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' });
/** No site has a petabit per second, nor a quadrillion packets. */
const Rate = Type.Number({ minimum: 0, maximum: 1e15 });
const strict = { additionalProperties: false } as const;

/** Classes of before are those of older monitors: `attackClassOf` reads them. */
const IncidentClass = Type.Enum([
  ...attackClasses,
  ...attackClasses.flatMap((name) => attackClassRows[name].formerly ?? []),
]);

/** What was done about an incident. */
export const IncidentAction = Strict({
  kind: Type.Enum([...actionKinds]),
  at: Timestamp,
  ended_at: Nullable(Timestamp),
  dropped_pps: Type.Optional(
    Type.Number({
      minimum: 0,
      maximum: 1e15,
      description:
        'Of `dropped`: packets of the last second. The kind and this only with `ddos_incident_filter`.',
    }),
  ),
});
export type IncidentAction = Static<typeof IncidentAction>;

const VectorDetails = Type.Object(
  {
    source_ports: Type.Array(Type.Integer({ minimum: 0, maximum: 65_535 }), { maxItems: 8 }),
    protocols: Type.Array(Type.Integer({ minimum: 0, maximum: 255 }), { maxItems: 8 }),
    started_at: Timestamp,
    last_observed_at: Timestamp,
    peak: Strict({ bps: Rate, pps: Rate }),
  },
  {
    ...strict,
    description:
      'A vector over the whole incident; missing where the sensor is older. Only with `ddos_incident_vectors`.',
  },
);
export type VectorDetails = Static<typeof VectorDetails>;

/** One incident of the monitor. `revision` grows with every change; times are the sensor's own. No source address crosses. */
export const Incident = Strict({
  id: Uuid,
  revision: Id,
  target: Strict({ kind: Type.Enum([...targetKinds]), value: Type.String({ minLength: 1, maxLength: 64 }) }),
  direction: Type.Enum([...attackDirections]),
  class: IncidentClass,
  severity: Type.Enum([...incidentSeverities]),
  vectors: Type.Array(
    Strict({
      class: IncidentClass,
      packets_share: Share,
      bytes_share: Share,
      ports: Type.Array(Type.Integer({ minimum: 0, maximum: 65_535 }), { maxItems: 8 }),
      details: Type.Optional(VectorDetails),
    }),
    { maxItems: 3 },
  ),
  state: Type.Enum([...incidentStates]),
  started_at: Timestamp,
  last_observed_at: Timestamp,
  recovered_at: Nullable(Timestamp),
  detected_at: Timestamp,
  current: Nullable(Strict({ bps: Rate, pps: Rate })),
  peak: Strict({ bps: Rate, bps_at: Timestamp, pps: Rate, pps_at: Timestamp }),
  totals: Strict({ bytes: Count, packets: Count }),
  coverage: Type.Enum([...incidentCoverages]),
  drill: Type.Boolean(),
  drill_is_mailed: Type.Optional(
    Type.Boolean({
      description:
        'The operator of the drill wants the customer mailed, as about an attack. Only with `ddos_drill_mail`.',
    }),
  ),
  actions: Type.Array(IncidentAction, { maxItems: 8 }),
});
export type Incident = Static<typeof Incident>;

export const IncidentsRequest = Strict({
  contract_version: Type.Literal(1),
  source_site_id: Id,
  cluster_ids: Type.Array(Id, { maxItems: 100 }),
  incidents: Type.Array(Incident, { maxItems: 100 }),
});
export type IncidentsRequest = Static<typeof IncidentsRequest>;

/**
 * `unmatched`: no eligible resource had the target's address (NET-4.1). `identity_conflict` and `terminal`: an incident that
 * is bound to a resource could not be applied.
 */
export const IncidentOutcome = Type.Enum([
  'applied',
  'unchanged',
  'unmatched',
  'identity_conflict',
  'terminal',
]);
export type IncidentOutcome = Static<typeof IncidentOutcome>;

/** Outcomes in the order in which the incidents were sent. */
export const IncidentOutcomes = Type.Object({
  outcomes: Type.Array(Type.Object({ id: Uuid, outcome: IncidentOutcome, allocation_id: Nullable(Id) })),
});
export type IncidentOutcomes = Static<typeof IncidentOutcomes>;

export const incidentsContract = {
  permission: 'ddos_incident_ingest',
  required: { ddos_incident_ingest: true, ddos_incident_contract_version: 1 },
  optional: {
    ...{ ddos_drill_mail: true, ddos_drill_mail_version: 1 },
    // Details of vectors.
    ...{ ddos_incident_vectors: true, ddos_incident_vectors_version: 1 },
    ddos_incident_classes_version: classesVersion,
    // Actions of kind `dropped`.
    ...{ ddos_incident_filter: true, ddos_incident_filter_version: 1 },
  },
  path: '/protect/incidents/',
  request: IncidentsRequest,
  answer: IncidentOutcomes,
  bodyBytesMax: 8 * 1024 * 1024,
} as const satisfies FeedContract;
