/** A server as its owner sees it, in one row. */
import type { Attachment } from './network-store.ts';

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
  clusterId: number;
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
