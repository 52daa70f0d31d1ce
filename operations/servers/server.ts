/** A virtual server as its owner sees it, and the rules of its states. */
import { randomInt } from 'node:crypto';
import type {
  ActionCommand,
  PowerCommand,
  PowerState,
  ProvisioningState,
  Server,
  ServerStatus,
} from '#operations/views/server-store.ts';

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

/** Unfinished actions in whose place a command comes: softer ones, and those that the destruction of the server ends anyway. */
export const supersededBy: { [command in ActionCommand]?: readonly ActionCommand[] } = {
  stop: ['shutdown', 'reboot'],
  reset: ['shutdown', 'reboot'],
  destroy: ['create', 'start', 'shutdown', 'reboot', 'stop', 'reset'],
};

/** 20 characters without look-alikes: about 115 bits. */
export function newRootPassword(): string {
  const alphabet = 'abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789';
  return Array.from({ length: 20 }, () => alphabet[randomInt(alphabet.length)]).join('');
}

/** A locally administered unicast MAC made from the server's id, so that a repeated attempt makes the same one. */
export function macOf(serverId: number): string {
  const hex = serverId.toString(16).padStart(8, '0').slice(-8);
  return `52:54:${hex.match(/../g)!.join(':')}`;
}
