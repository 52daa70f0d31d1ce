/** A request of one address, and the limits of requests. */
import type { ScanKind, ScanState } from '#contracts/port-scan/index.ts';
import type { Allocation } from '#operations/addresses/index.ts';

export type RequestKind = Exclude<ScanKind, 'routine'>;

export interface RequestRow {
  /** A UUID; also the id of the scan. */
  id: string;
  kind: RequestKind;
  allocationId: number;
  clusterId: number;
  tenantId: number;
  serverId: number;
  address: string;
  state: ScanState;
  requestedAt: Date;
  expiresAt: Date;
  claimedAt: Date | null;
  /** The sensor's own times. */
  startedAt: Date | null;
  heartbeatAt: Date | null;
  /** Percent. */
  progress: number | null;
  finishedAt: Date | null;
}

/** NET-8.1. */
export const requestLimits = {
  cooldownSeconds: 600,
  addressesOfServer: 32,
  pendingOfAccount: 100,
} as const;

/** A running scan without a heartbeat for so long is shown as overdue. */
export const overdueMs = 5 * 60_000;

/** Missing contact is shown, never turned into a failure (NET-2.7.2). */
export function isOverdue({ state, heartbeatAt, startedAt }: RequestRow, nowMs: number): boolean {
  const heardMs = (heartbeatAt ?? startedAt)?.getTime() ?? nowMs;
  return state === 'running' && nowMs - heardMs > overdueMs;
}

export type RequestedAddress = Pick<Allocation, 'id' | 'clusterId' | 'tenantId' | 'serverId' | 'address'>;
