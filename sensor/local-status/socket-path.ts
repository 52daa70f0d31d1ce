import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The kernel takes no longer path of a socket. */
const pathBytesMax = 107;

/** Where a sensor with this state directory listens; a deep directory has its socket elsewhere, by a digest. */
export function socketPath(stateDirectory: string): string {
  const path = join(stateDirectory, 'sensor.sock');
  if (Buffer.byteLength(path) <= pathBytesMax) return path;
  const digest = createHash('sha256').update(path).digest('hex').slice(0, 16);
  return join(tmpdir(), `svc-sensor-${process.getuid?.() ?? 0}-${digest}.sock`);
}
