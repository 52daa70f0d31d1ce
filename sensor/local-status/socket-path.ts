import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Limit of the kernel for socket paths. */
const pathBytesMax = 107;

/** Socket path for this state directory. A deep directory has its socket elsewhere, named by a digest. */
export function socketPath(stateDirectory: string): string {
  const path = join(stateDirectory, 'sensor.sock');
  if (Buffer.byteLength(path) <= pathBytesMax) return path;
  const digest = createHash('sha256').update(path).digest('hex').slice(0, 16);
  return join(tmpdir(), `svc-sensor-${process.getuid?.() ?? 0}-${digest}.sock`);
}
