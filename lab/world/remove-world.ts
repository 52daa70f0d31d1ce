/** Removes everything that a world has on the machine, also after a crash. */

import { existsSync, readdirSync, rmSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { CodedError } from '#common/errors/index.ts';
import type { WorldNames } from './name-world.ts';
import { runTool } from './run-tool.ts';

const namespaceFolder = '/run/netns';

/** The namespaces that stand for this world, guests included. */
export function listNamespaces(names: WorldNames): string[] {
  if (!existsSync(namespaceFolder)) return [];
  return readdirSync(namespaceFolder).filter((name) => name.startsWith(names.namespacePrefix));
}

/**
 * Ends every process inside the world's namespaces and removes the namespaces with their links. Safe to repeat; what
 * was half made or half removed goes too. Files of the data directory stay.
 */
export async function removeWorld(names: WorldNames): Promise<void> {
  await removeHostLink(names);
  await Promise.all(listNamespaces(names).map(removeNamespace));
  rmSync(names.worldFile, { force: true });
  rmSync(names.controlSocket, { force: true });
}

/** Ends the processes inside one namespace (SIGTERM, after a second SIGKILL) and removes it. */
export async function removeNamespace(namespace: string): Promise<void> {
  if (!existsSync(`${namespaceFolder}/${namespace}`)) return;
  for (let round = 0; round < 40; round += 1) {
    const pids = await listProcesses(namespace);
    if (pids.length === 0) break;
    for (const pid of pids) signalProcess(pid, round < 20 ? 'SIGTERM' : 'SIGKILL');
    await wait(50);
  }
  await runTool(['ip', 'netns', 'delete', namespace]).catch((error: unknown) => {
    // Two removals of one namespace at once: the other one was faster.
    if (existsSync(`${namespaceFolder}/${namespace}`)) throw error;
  });
}

async function listProcesses(namespace: string): Promise<number[]> {
  // A namespace file that is no mount any more (half removed by a crash) has no processes either.
  const output = await runTool(['ip', 'netns', 'pids', namespace]).catch(() => '');
  return output.split('\n').filter(Boolean).map(Number);
}

function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

async function removeHostLink(names: WorldNames): Promise<void> {
  if (!existsSync(`/sys/class/net/${names.hostLink}`)) return;
  await runTool(['ip', 'link', 'delete', names.hostLink]).catch((error: unknown) => {
    if (existsSync(`/sys/class/net/${names.hostLink}`)) {
      throw new CodedError('lab.link_stuck', `The link ${names.hostLink} can't be removed`, {}, error);
    }
  });
}
