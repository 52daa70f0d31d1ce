import { readFileSync } from 'node:fs';

/** The interface's MTU. If it can not be read, a value so high that no frame counts as merged. */
export function readMtu(interfaceName: string): number {
  try {
    return Number(readFileSync(`/sys/class/net/${interfaceName}/mtu`, 'utf8')) || 65_536;
  } catch {
    return 65_536;
  }
}
