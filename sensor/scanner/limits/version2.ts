/**
 * Control groups of version 2, in the subtree that the service manager delegates (`Delegate=yes`).
 *
 * A group with controllers for its children may hold no process itself. So this process, and its ancestors that are in the
 * same group, move to a group `svc-sensor` below first. Where the group has other processes too, it was not made for the
 * sensor, and nothing is changed.
 */
import { existsSync, lchownSync, statSync, writeFileSync } from 'node:fs';
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
  readWords,
  removeGroup,
  removeLeftovers,
  type ScanLimits,
  setLimits,
  tasksMax,
} from './group-files.ts';

const required = ['cpu', 'memory', 'pids'];
const ownGroup = 'svc-sensor';
const advice = 'run it as a service with Delegate=yes, or by systemd-run --scope -p Delegate=yes';

const limits: readonly GroupLimit[] = [
  { file: 'cpu.max', value: `${cpuPeriodUs} ${cpuPeriodUs}`, isRequired: true },
  { file: 'memory.max', value: String(memoryMaxBytes), isRequired: true },
  { file: 'pids.max', value: String(tasksMax), isRequired: true },
  { file: 'memory.high', value: String(memoryHighBytes), isRequired: false },
  { file: 'memory.swap.max', value: '0', isRequired: false },
  { file: 'memory.oom.group', value: '1', isRequired: false },
  { file: 'cpu.weight', value: '10', isRequired: false },
  { file: 'io.weight', value: 'default 10', isRequired: false },
];

/** Limits by version 2, or why not. */
export function findVersion2(place: GroupPlace): ScanLimits | string {
  const base = baseOf(place);
  if (base === null || !existsSync(join(place.root, 'cgroup.controllers'))) return 'version 2 is not mounted';
  const offered = readWords(join(base, 'cgroup.controllers'));
  const lacking = required.filter((name) => !offered.includes(name));
  if (lacking.length > 0) return `version 2 has no controller ${lacking.join(', ')} here; ${advice}`;
  const fault = openSubtree(base, offered, place);
  if (fault !== null) return fault;
  const missing = new Set<string>();
  removeLeftovers(base, place);
  return {
    version: 2,
    get missing() {
      return [...missing];
    },
    enclose(scan) {
      const folder = join(base, groupName(place, scan));
      makeGroup(folder);
      for (const file of setLimits(folder, limits)) missing.add(file);
      return { procsFiles: [join(folder, 'cgroup.procs')], remove: () => removeGroup(folder) };
    },
  };
}

/**
 * Gives the user a group below, with this process and the groups of scans in it: a process may only be moved by who has
 * the group above both places. Call it after `findVersion2` has found limits. The limits of that group stay root's.
 */
export function giveVersion2(place: GroupPlace, { uid, gid }: SystemUser): void {
  const base = baseOf(place)!;
  if (statSync(base).uid === uid) return;
  const folder = join(base, ownGroup);
  const inner = join(folder, ownGroup);
  for (const one of [folder, inner]) makeGroup(one);
  const inside = new Set([...readWords(join(folder, 'cgroup.procs')), String(place.processId)]);
  for (const processId of inside) writeFileSync(join(inner, 'cgroup.procs'), processId);
  openControllers(folder, readWords(join(base, 'cgroup.subtree_control')));
  for (const one of [folder, join(folder, 'cgroup.procs')]) lchownSync(one, uid, gid);
}

/** The group that those of scans come below. */
function baseOf({ root, membership }: GroupPlace): string | null {
  const own = /^0::(\/.*)$/m.exec(membership)?.[1];
  if (own === undefined) return null;
  return join(root, own.endsWith(`/${ownGroup}`) ? own.slice(0, -ownGroup.length - 1) : own);
}

function openControllers(group: string, offered: readonly string[]): void {
  const wanted = [...required, 'io'].filter((name) => offered.includes(name));
  writeFileSync(join(group, 'cgroup.subtree_control'), wanted.map((name) => `+${name}`).join(' '));
}

/** Gives the children of the group their controllers. Returns why not, or null. */
function openSubtree(base: string, offered: readonly string[], place: GroupPlace): string | null {
  const given = readWords(join(base, 'cgroup.subtree_control'));
  if (required.every((name) => given.includes(name))) return null;
  // A session of a person has only our ancestors too, and is not ours to arrange.
  if (/\/(session-[^/]*|init)\.scope$/.test(base)) return `version 2: ${base} is not delegated; ${advice}`;
  const inside = readWords(join(base, 'cgroup.procs')).map(Number);
  const ours = new Set(ancestry(place));
  if (inside.some((processId) => !ours.has(processId)))
    return `version 2: other processes are in the group ${base}; ${advice}`;
  try {
    if (inside.length > 0) {
      makeGroup(join(base, ownGroup));
      for (const processId of inside) writeFileSync(join(base, ownGroup, 'cgroup.procs'), String(processId));
    }
    openControllers(base, offered);
    return null;
  } catch (error) {
    return `version 2: ${describeError(error)}; ${advice}`;
  }
}

/** This process and those above it. */
function ancestry({ processId, parentOf }: GroupPlace): number[] {
  const found: number[] = [];
  for (let one = processId; one > 0 && found.length < 64; one = parentOf(one)) found.push(one);
  return found;
}
