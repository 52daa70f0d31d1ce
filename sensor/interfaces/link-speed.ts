import { existsSync, readFileSync } from 'node:fs';

/** Speed of an interface's link in bits a second; null where its driver does not know it, or makes one up as tun and tap do. */
export function readLinkBps(interfaceName: string, folder = '/sys/class/net'): number | null {
  const at = `${folder}/${interfaceName}`;
  try {
    if (existsSync(`${at}/tun_flags`)) return null;
    // -1, or an error, where it is unknown; 4,294,967,295 in older kernels.
    const megabits = Number(readFileSync(`${at}/speed`, 'utf8'));
    return megabits > 0 && megabits < 2 ** 32 - 1 ? megabits * 1e6 : null;
  } catch {
    return null;
  }
}
