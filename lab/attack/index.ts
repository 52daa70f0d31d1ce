/**
 * Attacks inside a lab: real packets of every class that a detector knows, from the lab's internet to one guest.
 *
 * An attack can't leave its world. It runs as a process inside the namespace of the lab's internet, through a socket
 * bound to that namespace's one link; targets are addresses of guests that are on; sources are of reserved ranges
 * (documentation and benchmarks), and what the guest answers to them ends in that namespace. Rate, duration and one attack
 * at a time on each target are bounds, and it ends when its starter, the guest or the lab does.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type Clock, systemClock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { inspectLab, refuseWithoutRoot } from '../index.ts';
import { toolPath } from '../world/run-tool.ts';
import type { AttackOrder } from './attack-order.ts';
import type { AttackMessage, AttackProcessInput } from './attack-process.ts';
import { findTarget, type ShownGuest } from './find-target.ts';
import type { FloodProgress } from './flood.ts';

export {
  type AttackOrder,
  type AttackWords,
  attackClasses,
  perSecondMax,
  readOrder,
  secondsMax,
} from './attack-order.ts';
export { describeProgress, describeResult } from './describe.ts';
export type { FloodProgress } from './flood.ts';

export interface AttackResult extends FloodProgress {
  /** Connections that the target took; null where a class has none. */
  answered: number | null;
  /** Why it ended; `lost`: the lab or the guest went away. */
  end: 'over' | 'stopped' | 'lost';
}

export interface RunAttackOptions {
  dataDir: string;
  order: AttackOrder;
  /** Aborted: the attack ends at once, and what was sent is still told. */
  signal: AbortSignal;
  /** Called when packets begin to flow, and each second. */
  told?: (progress: FloodProgress) => void;
  clock?: Clock;
}

const watchEveryMs = 1000;
const attackFile = fileURLToPath(new URL('./attack-process.ts', import.meta.url));

/** Attacks to the end. Throws `lab.root_needed`, `lab.not_up`, `lab.attack_refused`, `lab.attack_running`, `lab.attack_failed`. */
export async function runAttack(options: RunAttackOptions): Promise<AttackResult> {
  refuseWithoutRoot();
  const { order, signal } = options;
  const lab = await inspectLab(options.dataDir);
  if (!lab) throw new CodedError('lab.not_up', 'The lab is not running. Start it with: ./svc lab up');
  findTarget(lab.guests as ShownGuest[], order.target);
  const child = spawnAttack({ order, namespace: lab.facts.internet_namespace });
  const ended = new AbortController();
  let isLost = false;
  const stop = () => child.connected && child.send('stop', () => {});
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  void watchTarget(options, ended.signal).then((isGone) => {
    if (!isGone) return;
    isLost = true;
    stop();
  });
  try {
    const last = await followAttack(child, options.told);
    const isEarly = last.progress.elapsedMs < order.seconds * 1000;
    const end = signal.aborted ? 'stopped' : isLost || isEarly ? 'lost' : 'over';
    return { ...last.progress, answered: last.answered, end };
  } finally {
    ended.abort();
    signal.removeEventListener('abort', stop);
    await endChild(child);
  }
}

/** Until it has ended it holds the target: the next attack would be refused. */
async function endChild(child: ChildProcess): Promise<void> {
  const hasEnded = child.exitCode !== null || child.signalCode !== null || child.pid === undefined;
  const exit = hasEnded ? null : once(child, 'exit');
  if (child.connected) child.disconnect();
  await exit;
}

function spawnAttack(input: AttackProcessInput): ChildProcess {
  const node = [process.execPath, '--disable-warning=ExperimentalWarning', attackFile];
  return spawn('ip', ['netns', 'exec', input.namespace, ...node, JSON.stringify(input)], {
    env: { ...process.env, PATH: toolPath },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
}

/** Resolves with true when the lab or the target is gone, with false at the signal. */
async function watchTarget(
  { dataDir, order, clock = systemClock }: RunAttackOptions,
  signal: AbortSignal,
): Promise<boolean> {
  while (!signal.aborted) {
    await clock.wait(watchEveryMs, signal);
    const lab = signal.aborted ? null : await inspectLab(dataDir);
    if (signal.aborted) return false;
    try {
      findTarget((lab?.guests ?? []) as ShownGuest[], order.target);
    } catch {
      return true;
    }
  }
  return false;
}

/** Resolves with the last message of a finished attack; rejects with what the process said instead. */
function followAttack(
  child: ChildProcess,
  told: ((progress: FloodProgress) => void) | undefined,
): Promise<Extract<AttackMessage, { kind: 'over' }>> {
  return new Promise((resolve, reject) => {
    child.on('message', (message: AttackMessage) => {
      if (message.kind === 'begun') told?.({ sent: 0, elapsedMs: 0 });
      if (message.kind === 'progress') told?.(message.progress);
      if (message.kind === 'over') resolve(message);
      if (message.kind === 'failed') reject(new CodedError(message.code, message.message));
    });
    child.on('error', (error) => reject(new CodedError('lab.attack_failed', error.message, {}, error)));
    // Comes after the last message, unlike the end of the process.
    child.on('disconnect', () =>
      reject(new CodedError('lab.attack_failed', 'The sending process was ended')),
    );
  });
}
