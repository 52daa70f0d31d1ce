/** A request of one address: its row, the limits of requests, and its states with all that moves it (NET-3.1). */
import { type ScanKind, type ScanState, scanStates } from '#contracts/port-scan/index.ts';
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
export const requestLimits = { cooldownSeconds: 600, addressesOfServer: 32, pendingOfAccount: 100 } as const;

/** A running scan without a heartbeat for so long is shown as overdue. */
export const overdueMs = 5 * 60_000;

/** Missing contact is shown, never turned into a failure (NET-2.7.2). */
export function isOverdue({ state, heartbeatAt, startedAt }: RequestRow, nowMs: number): boolean {
  const heardMs = (heartbeatAt ?? startedAt)?.getTime() ?? nowMs;
  return state === 'running' && nowMs - heardMs > overdueMs;
}

export type RequestedAddress = Pick<Allocation, 'id' | 'clusterId' | 'tenantId' | 'serverId' | 'address'>;

/** The states of a scan request, and the one table of what moves it (NET-3.1). */
const requestCauses = [
  /** A monitor has taken it. It is not running yet. */
  'claimed',
  /** A sensor has started it, or says that it goes on. */
  'started',
  /** The monitor took it out of the sensor's plan. */
  'withdrawn',
  /** A result of all phases. */
  'completed',
  /** A result of an interrupted scan. */
  'interrupted',
  /** 24 hours without a start. */
  'window_passed',
  /** The customer switched the protection views off; manual requests only. */
  'views_off',
  /** A customer's request for the same address takes its place; automatic requests only. */
  'superseded',
  /** The server has lost the address. */
  'released',
] as const;
export type RequestCause = (typeof requestCauses)[number];

/**
 * The next state. An absent cause leaves the state as it is. A withdrawn queued request may be claimed again; one that ran ends
 * as partial, and so does one whose address is released. A running request never expires.
 */
const transitions: Readonly<Record<ScanState, Partial<Record<RequestCause, ScanState>>>> = {
  queued: {
    claimed: 'queued',
    started: 'running',
    withdrawn: 'queued',
    completed: 'complete',
    interrupted: 'partial',
    window_passed: 'expired',
    views_off: 'cancelled',
    superseded: 'cancelled',
    released: 'cancelled',
  },
  running: {
    started: 'running',
    withdrawn: 'partial',
    completed: 'complete',
    interrupted: 'partial',
    released: 'partial',
  },
  complete: {},
  partial: {},
  expired: {},
  cancelled: {},
};

/** The state after this; null when the cause does not move a request of this state. */
export function nextState(state: ScanState, cause: RequestCause): ScanState | null {
  return transitions[state][cause] ?? null;
}

const pendingStates = scanStates.filter((state) => Object.keys(transitions[state]).length > 0);

/** True while something can still move the request. */
export function isPending(state: ScanState): boolean {
  return pendingStates.includes(state);
}
