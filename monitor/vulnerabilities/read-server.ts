import type { Queryable } from '#service-kit/postgres/index.ts';
import type { ApartFinding, Finding } from './assess-service.ts';
import { type Ignore, type IgnoredFinding, listOfServer } from './ignores/store.ts';
import * as store from './read-store.ts';

/** An open port with its evidence, its findings, and which of them are ignored. */
export interface ServiceWithFindings extends store.AssessedService {
  /** The most severe first; of a service that can't be assessed those of the original of its package, which are never active. */
  findings: { finding: Finding; ignore: Ignore | null }[];
  /** Never active. */
  apart: readonly ApartFinding[];
}

export interface ServerWithServices {
  server: store.AssessedServer;
  services: ServiceWithFindings[];
  /** Of the server, those in force first, also those of software that is not there any more. */
  ignores: Ignore[];
}

const ignoresMax = 2_000;

/** One server with all that is known of it; null where no scan saw it. */
export async function readServer(
  db: Queryable,
  clusterId: number,
  serverId: number,
): Promise<ServerWithServices | null> {
  const server = await store.findServer(db, clusterId, serverId);
  if (!server) return null;
  const services = await store.listServices(db, clusterId, serverId);
  const ids = services.flatMap(({ softwareId }) => softwareId ?? []);
  const bySoftware = Map.groupBy(
    await store.listFindings(db, [...new Set(ids)]),
    ({ softwareId }) => softwareId,
  );
  const apart = await store.listApart(db, ids);
  const ignores = await listOfServer(db, clusterId, serverId, ignoresMax);
  const open = new Map(ignores.flatMap((one) => (isOpen(one) ? [[keyOf(one), one]] : [])));
  return {
    server,
    ignores,
    services: services.map((service) => ({
      ...service,
      apart: service.reason === null ? (apart.get(service.softwareId ?? 0) ?? []) : [],
      findings: (bySoftware.get(service.softwareId ?? 0) ?? []).map(({ finding }) => ({
        finding,
        ignore: service.reason === null ? (open.get(keyOf({ ...service, cve: finding.cve })) ?? null) : null,
      })),
    })),
  };
}

/** One past its end is ended with the next check. */
const isOpen = ({ endedAtMs, isOver }: Ignore) => endedAtMs === null && !isOver;

const keyOf = ({
  address,
  transport,
  port,
  fingerprint,
  cve,
}: Omit<IgnoredFinding, 'clusterId' | 'serverId'>) => `${address} ${transport} ${port} ${fingerprint} ${cve}`;
