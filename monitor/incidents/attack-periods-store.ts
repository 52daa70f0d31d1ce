/**
 * When which address was attacked, for the attack columns of minute traffic (NET-2.4.5): exact-host incidents of severity
 * attack, and apart from them attacks that can't be assigned to an address.
 */
import { sql } from 'kysely';
import type { AttackDirection, TargetKind } from '#contracts/incidents.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { staleMs } from './correlate.ts';

/** One attack on, or by, one address. */
export interface AttackPeriod {
  incidentId: string;
  address: string;
  direction: AttackDirection;
  startedAtMs: number;
  /** The recovery; without one the moment at which the incident is stale unless it is observed again. */
  endedAtMs: number;
  /** Captures that observed it. */
  captures: { sensorId: number; capture: string }[];
}

/** An attack on a prefix, on a capture, or of the class `other`: nothing tells how much of it was whose. */
export interface UnassignablePeriod {
  incidentId: string;
  kind: TargetKind;
  /** The address, the prefix, or the capture's name. */
  target: string;
  startedAtMs: number;
  endedAtMs: number;
  captures: { sensorId: number; capture: string }[];
}

export interface AttackPeriods {
  attacks: AttackPeriod[];
  /** Of the whole site. `other` concerns its host; a prefix and a capture concern what the sensors that reported them count. */
  unassignable: UnassignablePeriod[];
}

interface PeriodRow extends UnassignablePeriod {
  direction: AttackDirection;
  class: string;
}

/** One statement answers which incidents a minute overlaps, so the answer doesn't depend on the other minutes that are asked for. */
const endedAt = sql`case when i.state = 'recovered' then greatest(i.recovered_at, i.last_observed_at)
  else i.last_observed_at + make_interval(secs => ${staleMs / 1000}) end`;

/** Without drills. Incidents that overlap [fromMs, toMs), the earliest first. */
export async function readAttackPeriods(
  db: Queryable,
  siteId: number,
  addresses: readonly string[],
  fromMs: number,
  toMs: number,
): Promise<AttackPeriods> {
  const { rows } = await sql<PeriodRow>`
    select i.id as incident_id, i.target_kind as kind, i.target, i.direction, i.class,
      (extract(epoch from i.started_at) * 1000)::float8 as started_at_ms,
      (extract(epoch from ${endedAt}) * 1000)::float8 as ended_at_ms,
      coalesce((select jsonb_agg(distinct jsonb_build_object('sensorId', o.sensor_id, 'capture', o.said ->> 'capture'))
        from incident_observations o where o.incident_id = i.id), '[]') as captures
    from incidents i
    where i.site_id = ${siteId} and i.severity = 'attack' and not i.is_drill and not i.is_withdrawn
      and i.merged_into is null and i.started_at < to_timestamp(${toMs} / 1000.0::float8)
      and ${endedAt} >= to_timestamp(${fromMs} / 1000.0::float8)
      and (i.target_kind <> 'host' or i.target = any(${[...addresses]}::text[]))
    order by i.started_at, i.id`.execute(db);
  const isAssigned = (row: PeriodRow) => row.kind === 'host' && row.class !== 'other';
  return {
    attacks: rows
      .filter(isAssigned)
      .map(({ kind: _, class: __, target, ...row }) => ({ ...row, address: target })),
    unassignable: rows.filter((row) => !isAssigned(row)).map(({ direction: _, class: __, ...row }) => row),
  };
}
