/** Processor time of processes, as Linux counts it: it says what work costs also on a machine that is busy with something else. */
import { readdirSync, readFileSync } from 'node:fs';

const ticksOfSecond = 100;

/** Fields of `/proc/{pid}/stat` after the name, which may hold spaces; null: the process is gone. */
function statOf(pid: number): string[] | null {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ');
  } catch {
    return null;
  }
}

/** Seconds that the process has used, and those of its children that have ended. */
export function processorSeconds(pid: number): number {
  const fields = statOf(pid);
  return fields === null
    ? 0
    : [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at]), 0) / ticksOfSecond;
}

/** Of a process and its children. */
export function familySeconds(parent: number): number {
  const children = readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && Number(statOf(pid)?.[1]) === parent);
  return [parent, ...children].reduce((sum, pid) => sum + processorSeconds(pid), 0);
}
