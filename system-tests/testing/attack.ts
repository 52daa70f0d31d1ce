/** Attacks of the lab, by its own command, as a reader of the manual would start them. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RunningDemo } from './run-demo.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

export interface LabAttack {
  target: string;
  class: string;
  /** Packets per second. */
  pps: number;
  seconds: number;
}

/** `./svc lab attack` in this demo's lab. Resolves when its last packet was sent; throws with its output if it fails. */
export async function attack(demo: Pick<RunningDemo, 'dataDir'>, order: LabAttack): Promise<void> {
  const options = Object.entries(order).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', join(root, 'svc.ts'), 'lab', 'attack', ...options],
    { cwd: root, env: { ...process.env, SVC_DATA_DIR: demo.dataDir }, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const said: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece: Buffer) => said.push(piece));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  if (code !== 0) throw new Error(`lab attack ended with ${code}: ${Buffer.concat(said)}`);
}
