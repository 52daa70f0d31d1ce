import { readFileSync } from 'node:fs';

/** The interface's MTU; where it can't be read, so much that no frame counts as merged. */
export function readMtu(interfaceName: string): number {
  try {
    return Number(readFileSync(`/sys/class/net/${interfaceName}/mtu`, 'utf8')) || 65_536;
  } catch {
    return 65_536;
  }
}
