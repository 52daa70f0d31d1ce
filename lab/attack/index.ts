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
import type { FloodProgress } from './flood.ts';

export {
  type AttackOrder,
  type AttackWords,
  attackClasses,
  perSecondMax,
  readOrder,
  secondsMax,
} from './attack-order.ts';
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

/** A guest as the control socket shows it. */
export interface ShownGuest {
  name: string;
  power: string;
  addresses: { address: string }[];
  private_interfaces: { address: string }[];
}

const listedMax = 20;

/** Throws `lab.attack_refused`, which names the allowed addresses, unless `target` belongs to a guest that is on. */
export function findTarget(guests: readonly ShownGuest[], target: string): ShownGuest {
  const found = guests.find((guest) => guest.addresses.some((entry) => entry.address === target));
  if (found?.power === 'on') return found;
  const isPrivate = guests.some((guest) => guest.private_interfaces.some((nic) => nic.address === target));
  let reason = `${target} is not an address of a guest of this lab`;
  if (found) reason = `The guest "${found.name}" with ${target} is off`;
  else if (isPrivate) reason = `${target} is on a private network, which nothing outside reaches`;
  throw new CodedError('lab.attack_refused', `${reason}. ${listAllowed(guests)}`);
}

function listAllowed(guests: readonly ShownGuest[]): string {
  const allowed = guests
    .filter((guest) => guest.power === 'on')
    .flatMap((guest) => guest.addresses.map((entry) => entry.address));
  if (allowed.length === 0) return 'No guest of this lab is on.';
  const rest = allowed.length > listedMax ? ` and ${allowed.length - listedMax} more` : '';
  return `Allowed targets: ${allowed.slice(0, listedMax).join(', ')}${rest}.`;
}

const grouped = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** `12 s: 300,000 packets, 25,000/s`. */
export function describeProgress(order: AttackOrder, progress: FloodProgress): string {
  const seconds = Math.round(progress.elapsedMs / 1000);
  return `${seconds} s: ${grouped.format(progress.sent)} ${unitOf(order)}, ${perSecond(progress)}/s`;
}

/** `sent 1,497,320 packets in 60.0 s, 24,955/s asked 25,000/s`. */
export function describeResult(
  order: AttackOrder,
  result: FloodProgress & { answered: number | null },
): string {
  const verb = unitOf(order) === 'connections' ? 'opened' : 'sent';
  const seconds = (result.elapsedMs / 1000).toFixed(1);
  const answered = result.answered === null ? '' : `; ${grouped.format(result.answered)} were accepted`;
  const rate = `${perSecond(result)}/s asked ${grouped.format(order.perSecond)}/s`;
  return `${verb} ${grouped.format(result.sent)} ${unitOf(order)} in ${seconds} s, ${rate}${answered}`;
}

function unitOf(order: AttackOrder): string {
  return order.attackClass === 'connection_flood' ? 'connections' : 'packets';
}

function perSecond({ sent, elapsedMs }: FloodProgress): string {
  return grouped.format(elapsedMs > 0 ? (sent * 1000) / elapsedMs : 0);
}
