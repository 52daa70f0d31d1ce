import { CodedError } from '#common/errors/index.ts';
import type { GuardReason } from '#contracts/guard-reasons.ts';
import { type Actor, requireOperator, requireStaff } from '#operations/accounts/index.ts';
import { findNodeOfServer } from '#operations/clusters/index.ts';
import {
  guestName,
  type HypervisorDriver,
  type Hypervisors,
  type ObservedGuest,
  serverIdOfGuest,
} from '#operations/hypervisors/index.ts';
import type { Scope } from '#operations/views/scope.ts';
import { findOwnedServer } from '#operations/views/server-store.ts';
import { record } from '#service-kit/audit/index.ts';
import { enqueueJob, type FeatureWork, type Job } from '#service-kit/jobs/index.ts';
import { createExpiryLoop, type LoopDeps } from '#service-kit/leases/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

export interface GuardSetting {
  isOn: boolean;
  version: number;
  status: 'applied' | 'pending' | 'failed';
  changedAt: Date | null;
}

/** Packets of one reason that a guard dropped, from the first until ten minutes without any. */
export interface SpoofingAttempt {
  id: number;
  device: string;
  /** The private network; null: the public interface. */
  networkId: number | null;
  reason: GuardReason;
  packets: number;
  /** MACs and addresses that the packets claimed, at most 16; empty where the reason is no source. */
  sources: string[];
  beganAt: Date;
  lastAt: Date;
}

export interface SpoofingSum {
  packets: number;
  lastAt: Date | null;
}

export interface Guard extends GuardSetting {
  /** Whether the server's hypervisor has guards, and counts what they drop. */
  support: HypervisorDriver['guard'];
  /** Dropped in attempts of the last 30 days. */
  spoofed: SpoofingSum;
}

export type Guards = ReturnType<typeof createGuards>;

export interface GuardsDeps extends LoopDeps {
  hypervisors: Hypervisors;
  /** Tells the job runner that there is work. */
  wake: () => void;
}

const sumDays = 30;
const attemptsMax = 20;
const jobAttemptsMax = 8;
/** Less comes from a wrong setting inside a server, such as an address that it had before. */
const activePacketsMin = 1_000;
const untouched: GuardSetting = { isOn: true, version: 0, status: 'applied', changedAt: null };

export function createGuards(deps: GuardsDeps) {
  const retention = createExpiryLoop({
    name: 'operations-spoofing-retention',
    ...deps,
    deleteExpired: store.deleteExpired,
  });
  return {
    /** What it does beside the calls. */
    work: {
      jobHandlers: {
        'guard.apply': {
          run: (job) => apply(deps, serverIdOf(job)),
          attemptsMax: jobAttemptsMax,
          giveUp: (job, error) => giveUp(deps, serverIdOf(job), error),
        },
      },
      parts: [retention],
    } satisfies FeatureWork,
    /** Null for a server that is not there or another's. */
    async readGuard(actor: Actor, serverId: number): Promise<Guard | null> {
      if ((await findOwnedServer(deps.db(), scopeOf(actor), serverId)) === null) return null;
      const [setting, spoofed, driver] = await Promise.all([
        store.findGuard(deps.db(), serverId),
        store.sumAttempts(deps.db(), serverId, sumDays),
        driverOf(deps, serverId),
      ]);
      return { ...(setting ?? untouched), spoofed, support: driver?.guard ?? 'none' };
    },
    /** The newest first. Staff only. */
    async listAttempts(actor: Actor, serverId: number): Promise<SpoofingAttempt[]> {
      requireStaff(actor);
      return store.listAttempts(deps.db(), serverId, attemptsMax);
    },
    /** Servers that send much spoofed traffic now. Staff only. */
    async listActiveServers(actor: Actor): Promise<number[]> {
      requireStaff(actor);
      return store.listActiveServers(deps.db(), activePacketsMin);
    },
    /** Switches the guard and queues its application. Throws `guards.not_found`, `guards.unsupported`. Operators only. */
    async switchGuard(actor: Actor, serverId: number, isOn: boolean): Promise<void> {
      requireOperator(actor);
      const server = await findOwnedServer(deps.db(), 'all', serverId);
      if (server === null) throw new CodedError('guards.not_found', 'There is no such server.');
      if (((await driverOf(deps, serverId))?.guard ?? 'none') === 'none')
        throw new CodedError('guards.unsupported', 'The hypervisor of this server has no guard.');
      await inTransaction(deps.db(), async (tx) => {
        await store.putGuard(tx, serverId, isOn);
        await enqueueJob(tx, 'guard.apply', { server_id: serverId });
        await record(tx, actor, {
          operation: 'guard.switch',
          subject: { kind: 'server', id: serverId, name: server.name },
          tenantId: server.tenantId,
          after: { isOn },
        });
      });
      deps.wake();
    },
  };
}

/** Stores what the guards of these servers have dropped since the last look. */
export async function recordGuards(db: Queryable, guests: readonly ObservedGuest[]): Promise<void> {
  const readings = guests.flatMap(({ name, guards }) => {
    const serverId = serverIdOfGuest(name);
    if (serverId === null) return [];
    return guards.flatMap(({ device, networkId, dropped, claimed }) =>
      Object.entries(dropped).map(([reason, packets]) => ({
        ...{ serverId, device, networkId, packets },
        reason: reason as GuardReason,
        sources: claimed.flatMap((claim) => (claim.reason === reason ? [claim.source] : [])),
      })),
    );
  });
  if (readings.length > 0) await store.putReadings(db, readings);
}

/** Brings the hypervisor in line with what is stored: always the newest version, however many were queued. */
async function apply(deps: GuardsDeps, serverId: number): Promise<void> {
  for (;;) {
    const setting = await store.findGuard(deps.db(), serverId);
    const isThere = (await findOwnedServer(deps.db(), 'all', serverId)) !== null;
    const driver = await driverOf(deps, serverId);
    if (setting === null || !isThere || driver === null) return;
    await driver.applyGuard(guestName(serverId), setting.isOn);
    if (await store.noteApplied(deps.db(), serverId, setting.version, 'applied')) return;
  }
}

async function giveUp(deps: GuardsDeps, serverId: number, error: string): Promise<void> {
  deps.reporter.error('a guard could not be switched', { server: serverId, error });
  const setting = await store.findGuard(deps.db(), serverId);
  if (setting !== null) await store.noteApplied(deps.db(), serverId, setting.version, 'failed');
}

const serverIdOf = (job: Job) => (job.payload as { server_id: number }).server_id;

/** The hypervisor of a server; null for one without room on any node. */
async function driverOf(deps: GuardsDeps, serverId: number): Promise<HypervisorDriver | null> {
  const node = await findNodeOfServer(deps.db(), serverId);
  return node === null ? null : deps.hypervisors.of(node);
}

function scopeOf(actor: Actor): Scope {
  if (actor.kind === 'customer') return actor.tenantIds;
  return actor.kind === 'staff' || actor.kind === 'system' ? 'all' : [];
}
