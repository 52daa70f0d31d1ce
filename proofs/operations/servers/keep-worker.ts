/**
 * A process that works on servers' jobs when it is told to, on a node of libvirt that its parent plays: `keep-worker.ts DATABASE_URL [BUG]`.
 * It kills itself at a statement or a command of the node that its parent chooses, before that is sent or once it is done.
 */
import { createLibvirtDriver } from '#operations/hypervisors/libvirt/driver.ts';
import { type Virsh, virshError } from '#operations/hypervisors/libvirt/run-virsh.ts';
import { node } from '#operations/hypervisors/testing/example-guest.ts';
import { createServerWorker } from '#operations/servers/testing/worker.ts';
import { plantSql } from '#operations/testing/planted-sql.ts';
import { createPool } from '#service-kit/postgres/database.ts';

/** `halves`: what is one transaction is several. `anew`: an attempt that is repeated has another number at the node. */
export type WorkerBug = 'halves' | 'anew';

/** From the parent: work until nothing is due, and die at this step; or the answer to a command. */
export type ToWorker =
  | { kind: 'work'; dieAt: number; isAfter: boolean }
  | { kind: 'answer'; id: number; said: string; isRefused: boolean };

export type FromWorker =
  | { kind: 'ready' }
  | { kind: 'command'; id: number; command: readonly string[] }
  | { kind: 'worked'; steps: number; error: string | null };

async function run(databaseUrl: string, bug: WorkerBug | undefined): Promise<void> {
  let course = { steps: 0, dieAt: -1, isAfter: false };
  const step = async <T>(work: () => Promise<T>): Promise<T> => {
    course.steps += 1;
    const isEnd = course.steps === course.dieAt;
    if (isEnd && !course.isAfter) process.kill(process.pid, 'SIGKILL');
    const result = await work();
    if (isEnd) process.kill(process.pid, 'SIGKILL');
    return result;
  };
  const tell = (message: FromWorker) => process.send!(message);

  let commands = 0;
  const answers = new Map<number, { resolve(said: string): void; reject(error: Error): void }>();
  const virsh: Virsh = (command) =>
    step(() => {
      commands += 1;
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      answers.set(commands, { resolve, reject: (error) => reject(virshError(command[0]!, error.message)) });
      tell({ kind: 'command', id: commands, command });
      return promise;
    });
  const usual = createLibvirtDriver({ ...node, uri: 'qemu:///system' }, { virsh });
  let attempts = 0;
  const driver: typeof usual = {
    ...usual,
    rebuildGuest(guest, rebuild, report) {
      attempts += 1;
      return usual.rebuildGuest(guest, bug === 'anew' ? rebuild * 100 + attempts : rebuild, report);
    },
  };

  if (bug === 'halves')
    plantSql((text) => (/^(begin|start transaction|commit|rollback)\b/i.test(text) ? 'select 1' : text));
  const { db, pool } = createPool(databaseUrl, 4);
  pool.on('connect', (client) => {
    const query = client.query.bind(client) as (...given: unknown[]) => Promise<unknown>;
    client.query = ((...given: unknown[]) => step(() => query(...given))) as typeof client.query;
  });
  const worker = createServerWorker(db, driver);

  process.on('message', async (message: ToWorker) => {
    if (message.kind === 'answer') {
      const { resolve, reject } = answers.get(message.id)!;
      if (message.isRefused) reject(new Error(message.said));
      else resolve(message.said);
      return;
    }
    course = { steps: 0, dieAt: message.dieAt, isAfter: message.isAfter };
    const error = await worker.drain().then(
      () => null,
      (caught: unknown) => String(caught),
    );
    tell({ kind: 'worked', steps: course.steps, error });
  });
  tell({ kind: 'ready' });
}

if (process.send !== undefined) await run(process.argv[2]!, process.argv[3] as WorkerBug | undefined);
