/**
 * Control groups of version 1: a group in each of the hierarchies cpu, memory and pids, and where there is one, blkio.
 * Version 1 has no `memory.high`; its soft limit stands for it. It takes root, because nothing delegates it.
 */
import { existsSync, lchownSync } from 'node:fs';
import { join } from 'node:path';
import { describeError } from '#common/errors/index.ts';
import type { SystemUser } from '#common/system-users/index.ts';
import {
  cpuPeriodUs,
  type GroupLimit,
  type GroupPlace,
  groupName,
  makeGroup,
  memoryHighBytes,
  memoryMaxBytes,
  removeGroup,
  removeLeftovers,
  type ScanLimits,
  setLimits,
  tasksMax,
} from './group-files.ts';

/** CPU weight 10 of 100, in shares of 1,024. */
const cpuShares = '102';
const required = ['cpu', 'memory', 'pids'] as const;
/** Made by root, and given to the user that it goes on as. */
const ownGroup = 'svc-sensor';

/** In the order in which they must be set: the sum with swap is never below the memory. */
const limits: Readonly<Record<string, readonly GroupLimit[]>> = {
  cpu: [
    { file: 'cpu.cfs_period_us', value: String(cpuPeriodUs), isRequired: true },
    { file: 'cpu.cfs_quota_us', value: String(cpuPeriodUs), isRequired: true },
    { file: 'cpu.shares', value: cpuShares, isRequired: false },
  ],
  memory: [
    { file: 'memory.limit_in_bytes', value: String(memoryMaxBytes), isRequired: true },
    { file: 'memory.soft_limit_in_bytes', value: String(memoryHighBytes), isRequired: false },
    { file: 'memory.memsw.limit_in_bytes', value: String(memoryMaxBytes), isRequired: false },
    { file: 'memory.swappiness', value: '0', isRequired: false },
  ],
  pids: [{ file: 'pids.max', value: String(tasksMax), isRequired: true }],
  blkio: [{ file: 'blkio.bfq.weight', value: '10', isRequired: false }],
};

/** Limits by version 1, or why not. */
export function findVersion1(place: GroupPlace): ScanLimits | string {
  const folders = ownGroups(place);
  const lacking = required.filter((name) => !folders.has(name));
  if (lacking.length > 0) return `version 1 has no hierarchy ${lacking.join(', ')} that can be used`;
  const missing = new Set<string>(folders.has('blkio') ? [] : ['blkio.bfq.weight']);
  for (const folder of folders.values()) removeLeftovers(folder, place);
  return {
    version: 1,
    get missing() {
      return [...missing];
    },
    enclose(scan) {
      const made: string[] = [];
      const remove = () => {
        for (const folder of made) removeGroup(folder);
      };
      try {
        for (const [controller, parent] of folders) {
          const folder = join(parent, groupName(place, scan));
          makeGroup(folder);
          made.push(folder);
          for (const file of setLimits(folder, limits[controller]!)) missing.add(file);
        }
      } catch (error) {
        remove();
        throw new Error(describeError(error), { cause: error });
      }
      return { procsFiles: made.map((folder) => join(folder, 'cgroup.procs')), remove };
    },
  };
}

/** Gives the user the groups that those of scans come below; their limits stay root's. */
export function giveVersion1(place: GroupPlace, { uid, gid }: SystemUser): void {
  for (const folder of ownGroups(place).values()) lchownSync(folder, uid, gid);
}

/** A group below each of this process's, by controller. */
function ownGroups({ root, membership }: GroupPlace): Map<string, string> {
  const found = new Map<string, string>();
  for (const line of membership.split('\n')) {
    const [, controllers = '', path] = /^\d+:([^:]+):(\/.*)$/.exec(line) ?? [];
    if (path === undefined) continue;
    for (const controller of controllers.split(',')) {
      // One mount may have several controllers; each has a link with its own name.
      const folder = join(root, controller, path);
      if (!(controller in limits) || !existsSync(folder)) continue;
      try {
        makeGroup(join(folder, ownGroup));
        found.set(controller, join(folder, ownGroup));
      } catch {
        // Not root, or without its rights: this hierarchy can not be used.
      }
    }
  }
  return found;
}
