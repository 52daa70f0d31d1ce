/** A virtual server as its owner sees it, and the rules of its states. */
import type { Attachment } from '#operations/networks/index.ts';

export type ProvisioningState = 'queued' | 'provisioning' | 'ready' | 'failed' | 'deleting' | 'deleted';
export type PowerState = 'unknown' | 'starting' | 'running' | 'stopping' | 'stopped' | 'rebooting';
/** The one state to poll; `deleted` servers are not there any more. */
export type ServerStatus = 'queued' | 'provisioning' | 'failed' | 'deleting' | PowerState;
export type PowerCommand = 'start' | 'shutdown' | 'stop' | 'reboot' | 'reset';
export type ActionCommand = 'create' | 'destroy' | PowerCommand;

export interface ServerAddress {
  address: string;
  family: 4 | 6;
  prefixLength: number;
  gateway: string;
  isPrimary: boolean;
  reverseDns: string | null;
}

export interface ServerFailure {
  code: string;
  message: string;
  at: string;
}

export interface Server {
  id: number;
  tenantId: number;
  orderId: number;
  name: string;
  hostname: string;
  provisioningState: ProvisioningState;
  powerState: PowerState;
  failure: ServerFailure | null;
  labels: Record<string, string>;
  hourlyQuanta: number;
  monthlyCapQuanta: number;
  createdAt: Date;
  provisionedAt: Date | null;
  statusChangedAt: Date;
  updatedAt: Date;
  planId: number;
  planSlug: string;
  planName: string;
  vcpus: number;
  memoryMb: number;
  diskGb: number;
  imageId: number;
  imageSlug: string;
  imageName: string;
  imageFamily: string;
  locationId: number;
  locationSlug: string;
  locationName: string;
  country: string;
  clusterName: string;
  /** Where its guest was made; null before that. For staff. */
  node: string | null;
  addresses: ServerAddress[];
  /** False for a server that is reached through private networks only. */
  hasPublicIp: boolean;
  privateNetworks: Attachment[];
  /** Null until the first change: all traffic passes. */
  firewall: { isEnabled: boolean; status: 'applied' | 'pending' | 'failed'; ruleCount: number } | null;
  /** The unfinished action, while which the server is locked. */
  currentAction: ServerAction | null;
}

export interface ServerAction {
  id: number;
  serverId: number;
  command: ActionCommand;
  status: 'queued' | 'running' | 'success' | 'error';
  /** Percent. */
  progress: number;
  /** False when the server was in the wanted state already. */
  changed: boolean;
  outcome: string | null;
  error: { code: string; message: string } | null;
  requestedByKey: string | null;
  /** RFC 3339 text. */
  createdAt: string;
  startedAt: string | null;
  finishedAt: string | null;
}

/** One state out of two: provisioning until the guest is ready, its power from then on. */
export function statusOf(server: Pick<Server, 'provisioningState' | 'powerState'>): ServerStatus {
  return server.provisioningState === 'ready'
    ? server.powerState
    : (server.provisioningState as Exclude<ProvisioningState, 'ready' | 'deleted'>);
}

/** The result of a shutdown: halted, signalled without waiting, or not halted within the timeout. */
export type ShutdownOutcome = 'stopped' | 'signal_sent' | 'timeout';

/** The power state that a command leads to, and the one shown on the way. */
export const powerCourse: Record<PowerCommand, { via: PowerState; to: PowerState }> = {
  start: { via: 'starting', to: 'running' },
  shutdown: { via: 'stopping', to: 'stopped' },
  stop: { via: 'stopping', to: 'stopped' },
  reboot: { via: 'rebooting', to: 'running' },
  reset: { via: 'rebooting', to: 'running' },
};

/** A locally administered unicast MAC made from the server's id, so that a repeated attempt makes the same one. */
export function macOf(serverId: number): string {
  const hex = serverId.toString(16).padStart(8, '0').slice(-8);
  return `52:54:${hex.match(/../g)!.join(':')}`;
}
