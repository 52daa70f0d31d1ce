import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Finding } from './assess-service.ts';
import * as store from './projection-store.ts';
import { listFindings } from './read-store.ts';

/** A service as operations is told about it. */
export interface ProjectedServiceFindings extends store.ProjectedService {
  /** Without those that operators ignore; of a service that can't be assessed those of its package's original. */
  findings: readonly Finding[];
  /** How many findings of it operators ignore. */
  ignoredCount: number;
}

export interface PlaceProjection extends store.PlaceState {
  services: ProjectedServiceFindings[];
}

/** These addresses, as one moment has them: a check's time and what it found belong together. */
export async function readProjections(
  db: Queryable,
  places: readonly store.ProjectedAddress[],
): Promise<PlaceProjection[]> {
  return db
    .transaction()
    .setIsolationLevel('repeatable read')
    .execute(async (trx) => {
      const states = await store.readPlaces(trx, places);
      const services = await store.listProjected(trx, places);
      const ids = new Set(services.flatMap(({ softwareId }) => softwareId ?? []));
      const bySoftware = Map.groupBy(await listFindings(trx, [...ids]), ({ softwareId }) => softwareId);
      const byPlace = Map.groupBy(services, keyOf);
      return states.map((state) => ({
        ...state,
        services: (byPlace.get(keyOf(state)) ?? []).map((service) => {
          const all = bySoftware.get(service.softwareId ?? 0) ?? [];
          const shown = all.flatMap(({ finding }) =>
            service.reason === null && service.ignored.includes(finding.cve) ? [] : [finding],
          );
          return { ...service, findings: shown, ignoredCount: all.length - shown.length };
        }),
      }));
    });
}

const keyOf = ({ clusterId, serverId, address }: store.ProjectedAddress) =>
  `${clusterId} ${serverId} ${address}`;
