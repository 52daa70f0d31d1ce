import { randomUUID } from 'node:crypto';
import type { DeliveredScan } from '#contracts/admin-api/port-scans.ts';
import { portsAsked, type ScanProfile, type ScanService } from '#contracts/port-scan/index.ts';
import type { CustomerActor, Person, Tenant } from '#operations/accounts/index.ts';
import type { Allocation } from '#operations/addresses/index.ts';
import { secondsAgo } from './incident-of.ts';

/** The owner of a customer's account, signed in. */
export function ownerOf({ owner, tenant }: { owner: Person; tenant: Tenant }): CustomerActor {
  return {
    ...{ kind: 'customer', personId: owner.id, keyId: null, canWrite: true },
    ...{ tenantIds: [tenant.id], ownedOrganizationIds: [tenant.organizationId] },
  };
}

/** An open port, found when its scan ended; `22` or `udp/53`. */
export function serviceOf(at: string, port: number | `udp/${number}`): ScanService {
  const number = Number(String(port).replace('udp/', ''));
  return {
    transport: typeof port === 'string' ? 'udp' : 'tcp',
    port: number,
    first_observed_at: at,
    observed_at: at,
    scan_id: randomUUID(),
    service: number === 22 ? 'ssh' : null,
    product: number === 22 ? 'OpenSSH' : null,
    version: number === 22 ? '9.6p1' : null,
    extra_info: null,
    method: number === 22 ? 'probed' : 'table',
    confidence: number === 22 ? 10 : 3,
    tunnel: null,
    cpe: [],
  };
}

export interface ScanOptions extends Partial<DeliveredScan> {
  profile?: ScanProfile;
  /** When it ended; it took a minute. */
  endedSecondsAgo?: number;
  ports?: readonly (number | `udp/${number}`)[];
}

/** A complete scan of this address that ended ten seconds ago. */
export function scanOf(
  allocation: Pick<Allocation, 'id' | 'address' | 'assignedAt'>,
  options: ScanOptions = {},
): DeliveredScan {
  const { profile = 'full', endedSecondsAgo = 10, ports = [22], ...more } = options;
  const finished = secondsAgo(endedSecondsAgo);
  return {
    scan_id: more.request_id ?? randomUUID(),
    request_id: null,
    allocation_id: allocation.id,
    address: allocation.address,
    assigned_at: allocation.assignedAt,
    profile,
    state: 'complete',
    started_at: secondsAgo(endedSecondsAgo + 60),
    finished_at: finished,
    phases: (['tcp', 'udp'] as const).map((transport) => ({
      ...{ transport, ports_asked: portsAsked[profile], ports_answered: ports.length },
      ...{ filtered: 0, silent: 0, finished: true },
    })),
    services: ports.map((port) => serviceOf(finished, port)),
    notes: [],
    ...more,
  };
}
