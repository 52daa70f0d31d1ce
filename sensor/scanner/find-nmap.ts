import { accessSync, constants } from 'node:fs';

const places = ['/usr/bin/nmap', '/usr/local/bin/nmap'];

/** Path of nmap, or null. */
export function findNmap(): string | null {
  for (const place of places) {
    try {
      accessSync(place, constants.X_OK);
      return place;
    } catch {
      // Not there.
    }
  }
  return null;
}
