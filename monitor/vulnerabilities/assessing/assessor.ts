/**
 * Assesses services again when their evidence or the records have changed (NET-2.6.4), by one process at a time.
 *
 * What is to be done is stored in the rows that it is about, so a process that was killed is followed by one that goes on where
 * it was. Pages are bounded; servers that wait longest come first, and one that fails waits while the others go on.
 */

import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Scans } from '#monitor/scans/index.ts';
import { createLeasedLoop, LeaseLost, underLease } from '#service-kit/leases/index.ts';
import { isConnectionFailure, type Queryable } from '#service-kit/postgres/index.ts';
import { assessmentRules } from './bind-services.ts';
import { checkSoftware } from './check-software.ts';
import type { NewFindings, SevereCount } from './noted-store.ts';
import { type DueServer, listDue, postpone } from './server-store.ts';
import { areUsesOutdated, countUses, deleteUnused } from './software-store.ts';
import { type Turn, visitServers } from './visit-servers.ts';

const intervalMs = 5_000;
const leaseSeconds = 60;
const pageSize = 500;
/** A server that can't be assessed is tried again after this time. */
const retrySeconds = 600;

export function createAssessor(deps: AssessorDeps) {
  let last: { servers: number } | null = null;
  const loop = createLeasedLoop({
    ...{ name: 'assess_vulnerabilities', intervalMs, ttlSeconds: leaseSeconds },
    ...{ db: deps.db, clock: deps.clock, reporter: deps.reporter },
    async run(lease, renewLease, signal) {
      const renew = async () => {
        if (!(await renewLease())) throw new LeaseLost();
      };
      try {
        last = await assessDue(deps, { lease, renew, signal });
      } catch (error) {
        if (!(error instanceof LeaseLost)) throw error;
      }
    },
  });
  return {
    loop,
    /** Assesses what is due; null while another process does. */
    async runOnce(): Promise<{ servers: number } | null> {
      last = null;
      await loop.runOnce();
      return last;
    },
  };
}

async function assessDue(deps: AssessorDeps, turn: Turn): Promise<{ servers: number }> {
  let servers = 0;
  while (!turn.signal.aborted) {
    await turn.renew();
    await checkSoftware(deps, turn);
    const page = await listDue(deps.db(), assessmentRules, pageSize);
    if (page.length === 0) break;
    await visitOrPostpone(deps, turn, page);
    servers += page.length;
  }
  if (await areUsesOutdated(deps.db()))
    await underLease(deps.db(), turn.lease, async (trx) => {
      await deleteUnused(trx);
      await countUses(trx);
    });
  return { servers };
}

/** A page that fails is tried server by server. */
async function visitOrPostpone(deps: AssessorDeps, turn: Turn, page: readonly DueServer[]): Promise<void> {
  try {
    await visitServers(deps, turn, page);
  } catch (error) {
    if (error instanceof LeaseLost || isConnectionFailure(error)) throw error;
    const [first, ...others] = page;
    if (others.length > 0) {
      for (const one of page) await visitOrPostpone(deps, turn, [one]);
      return;
    }
    const { clusterId, serverId } = first!;
    deps.reporter.error('server can not be assessed', {
      cluster: clusterId,
      vm: serverId,
      error: describeError(error),
    });
    await underLease(deps.db(), turn.lease, (trx) => postpone(trx, first!, assessmentRules, retrySeconds));
  }
}

/** A server after its check: how many severe findings are active, and those that are new. */
export interface FoundOfServer extends SevereCount {
  /** The evidence of severe findings has expired, or says too little now: they are missing, and nothing has mended them. */
  hasLostSight: boolean;
  /** By service, the most severe first. */
  found: readonly NewFindings[];
}

export interface AssessorDeps {
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
  scans: Pick<Scans, 'listEvidence'>;
  /** Severities that operators are alerted of. */
  severe: readonly ('high' | 'critical')[];
  /** Called in the transaction that stores a check of servers. */
  onChecked: (trx: Queryable, checked: readonly FoundOfServer[]) => Promise<void>;
}
