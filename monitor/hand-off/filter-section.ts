/** The plan's section `filter`: what the filters at the uplinks of a site's hypervisors drop, or count. */
import { sql } from 'kysely';
import { filterRulesMax, matchesOf, type PlanFilterRule } from '#contracts/sensor-api/filter.ts';
import { listSection, type PlanSection } from '#monitor/sensors/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Action } from './action.ts';

export function createFilterSection({
  db,
  reader,
}: {
  db: () => Queryable;
  /** Connections that only read, for what plans ask (NET-5.3). */
  reader: () => Queryable;
}): PlanSection {
  return listSection<PlanFilterRule>({
    name: 'filter',
    label: 'rules of filters',
    entriesMax: filterRulesMax,
    advice: 'Lower the number of addresses that may have actions at once. Left out are the newest rules.',
    versions: { filter_version: 1 },
    list: ({ siteId }) => listRules(reader(), siteId),
    toFields: (filter_rules) => ({ filter_rules }),
    async countEntries(subjects) {
      const counts = new Map<number, number>();
      for (const siteId of new Set(subjects.map((subject) => subject.siteId)))
        counts.set(siteId, (await listRules(db(), siteId)).length);
      return new Map(subjects.map(({ sensorId, siteId }) => [sensorId, counts.get(siteId)!]));
    },
  });
}

type ActiveFilter = Pick<Action, 'address' | 'target' | 'attack' | 'dropAtMs' | 'isDryRun'> & {
  startedAtMs: number;
};

/** Of every active filter of the site, dry runs too: they count. */
async function listRules(db: Queryable, siteId: number): Promise<PlanFilterRule[]> {
  const { rows } = await sql<ActiveFilter>`
    select a.address, a.target, a.attack, (extract(epoch from a.drop_at) * 1000)::float8 as "dropAtMs",
      a.is_dry_run as "isDryRun", (extract(epoch from a.started_at) * 1000)::float8 as "startedAtMs"
    from hand_off_actions a where a.site_id = ${siteId} and a.kind = 'filter' and a.state = 'active'
    order by a.is_dry_run, a.id`.execute(db);
  return rows.flatMap(rulesOf);
}

function rulesOf({
  address,
  target,
  attack,
  dropAtMs,
  isDryRun,
  startedAtMs,
}: ActiveFilter): PlanFilterRule[] {
  const time = (ms: number) => new Date(ms).toISOString();
  const { lengthMin, lengthMax, maxSeconds } = target;
  return matchesOf(attack, address).map(({ class: name, match }) => ({
    ...{ target: address, class: name },
    match: {
      ...match,
      ...(lengthMin !== undefined && { length_min: lengthMin }),
      ...(lengthMax !== undefined && { length_max: lengthMax }),
    },
    began_at: time(attack.startedAtMs),
    drops_at: dropAtMs === null || isDryRun ? null : time(dropAtMs),
    ends_at: time(startedAtMs + maxSeconds! * 1000),
  }));
}
