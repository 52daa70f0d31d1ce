/**
 * Limits of what a scan may take of its host (NET-8.3): one logical CPU, memory throttled above 384 MiB and at most
 * 512 MiB without swap, 64 tasks, CPU weight 10, I/O weight 10. Priority is set by `run-nmap`.
 *
 * They are control groups: of version 2 where its controllers are, otherwise of version 1. Where neither can be had,
 * nothing is scanned. CPU, memory and tasks are required; the others are named where they are missing.
 */
import { readFileSync } from 'node:fs';
import { describeError } from '#common/errors/index.ts';
import type { SystemUser } from '#common/system-users/index.ts';
import type { GroupPlace, ScanLimits } from './group-files.ts';
import { findVersion1, giveVersion1 } from './version1.ts';
import { findVersion2, giveVersion2 } from './version2.ts';

export type { Enclosure, GroupPlace, ScanLimits } from './group-files.ts';

/** The limits of this host, or a sentence that says why there are none. Makes and removes a group on trial. */
export function findScanLimits(place: GroupPlace = ownPlace()): ScanLimits | string {
  const faults: string[] = [];
  for (const find of [findVersion2, findVersion1]) {
    const found = find(place);
    if (typeof found === 'string') faults.push(found);
    else {
      try {
        found.enclose('trial').remove();
        return found;
      } catch (error) {
        faults.push(`version ${found.version}: ${describeError(error)}`);
      }
    }
  }
  return `CPU, memory and tasks of scans can not be limited by control groups: ${faults.join('; ')}.`;
}

/**
 * Makes the group that those of scans come below and gives it to the user that root goes on as, who may not make it. Where
 * that fails there is nothing to scan with, and `findScanLimits` of that user says why.
 */
export function giveScanLimits(user: SystemUser, place: GroupPlace = ownPlace()): void {
  const limits = findScanLimits(place);
  if (typeof limits === 'string') return;
  try {
    if (limits.version === 2) giveVersion2(place, user);
    else giveVersion1(place, user);
  } catch {
    // As above.
  }
}

function ownPlace(): GroupPlace {
  let membership = '';
  try {
    membership = readFileSync('/proc/self/cgroup', 'utf8');
  } catch {
    // No control groups at all.
  }
  return { root: '/sys/fs/cgroup', membership, processId: process.pid, parentOf, startOf };
}

function parentOf(processId: number): number {
  try {
    return Number(/^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${processId}/status`, 'utf8'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

function startOf(processId: number): number | null {
  try {
    const text = readFileSync(`/proc/${processId}/stat`, 'utf8');
    // The name in brackets may have spaces and brackets of its own; the start is the 20th word after it.
    return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[19]);
  } catch {
    return null;
  }
}
