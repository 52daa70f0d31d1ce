/** Files of control groups: what both versions share. */
import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeError } from '#common/errors/index.ts';

/** Where a scan's processes are kept. */
export interface Enclosure {
  /** Files that take the id of a process that is to be inside; it writes its own before it becomes the scanner. */
  readonly procsFiles: readonly string[];
  /** Removes it; every process in it must have ended. */
  remove(): void;
}

export interface ScanLimits {
  readonly version: 1 | 2;
  /** Weaker limits that this host can not set, such as `io.weight`. */
  readonly missing: readonly string[];
  /** Makes the group of this scan with its limits. Throws with what the kernel refused. */
  enclose(scan: string): Enclosure;
}

/** Where control groups are looked for; tests give another place. */
export interface GroupPlace {
  root: string;
  /** This process's groups, as `/proc/self/cgroup` has them. */
  membership: string;
  processId: number;
  /** The parent of a process; 0 for the first one and those that are unknown. */
  parentOf(processId: number): number;
  /** When a process started, in ticks since boot; null when it has ended. With its id it names a process for good. */
  startOf(processId: number): number | null;
}

const groupPrefix = 'svc-scan-';

/**
 * The group of a scan. It names the process that made it: another one, such as `./svc sensor scan`, must not take it for
 * left over while it is empty between two programs of the scan.
 */
export function groupName({ processId, startOf }: GroupPlace, scan: string): string {
  return `${groupPrefix}${processId}-${startOf(processId) ?? 0}-${scan}`;
}

function isLeftOver(name: string, { startOf }: GroupPlace): boolean {
  if (!name.startsWith(groupPrefix)) return false;
  const [, processId, start] = /^(\d+)-(\d+)-/.exec(name.slice(groupPrefix.length)) ?? [];
  return processId === undefined || startOf(Number(processId)) !== Number(start);
}

/** One limit: a file of a group and its value. */
export interface GroupLimit {
  file: string;
  value: string;
  /** Without it a group is not used. */
  isRequired: boolean;
}

export const cpuPeriodUs = 100_000;
export const memoryHighBytes = 384 * 1024 * 1024;
export const memoryMaxBytes = 512 * 1024 * 1024;
export const tasksMax = 64;

/** Makes a group; one that is left over from a process that was killed is used again. */
export function makeGroup(folder: string): void {
  try {
    mkdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** Sets limits. Returns those that could not be set; throws where one of them is required. */
export function setLimits(folder: string, limits: readonly GroupLimit[]): string[] {
  return limits.flatMap(({ file, value, isRequired }) => {
    try {
      writeFileSync(join(folder, file), value);
      return [];
    } catch (error) {
      if (isRequired) throw new Error(`${file} can not be set: ${describeError(error)}`, { cause: error });
      return [file];
    }
  });
}

/** Removes a group; one that is gone, or not empty yet, is left to the next start. */
export function removeGroup(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // A group takes no memory worth mentioning.
  }
}

/** Words or lines of a file; none when it can not be read. */
export function readWords(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split(/\s+/).filter(Boolean);
  } catch {
    return [];
  }
}

/** Removes groups of scans that a killed sensor left. One with processes stays. */
export function removeLeftovers(folder: string, place: GroupPlace): void {
  try {
    for (const name of readdirSync(folder)) if (isLeftOver(name, place)) removeGroup(join(folder, name));
  } catch {
    // It can not be listed: what is left over stays.
  }
}
