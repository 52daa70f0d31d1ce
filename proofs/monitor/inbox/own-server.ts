/** A PostgreSQL of a proof's own, so that it may be killed, crowded out and filled up; durable, as in production. */
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { silentReporter } from '#common/reporter/index.ts';
import { applyMigrations } from '#service-kit/postgres/database.ts';
import { createEmbeddedPostgres, type EmbeddedPostgres } from '#service-kit/postgres/index.ts';

const kitMigrations = fileURLToPath(new URL('../../../service-kit/migrations', import.meta.url));
const monitorMigrations = fileURLToPath(new URL('../../../monitor/migrations', import.meta.url));
const smallDiskMiB = 600;
export const connectionsMax = 40;

export interface OwnServer extends AsyncDisposable {
  readonly url: string;
  /** Whether its tables lie on a disk that can be filled up. */
  readonly hasSmallDisk: boolean;
  /** Sends a signal to its first process; it comes back by itself. */
  signal(signal: 'SIGKILL' | 'SIGQUIT'): Promise<void>;
  fillDisk(): void;
  freeDisk(): void;
}

export async function startOwnServer(): Promise<OwnServer> {
  await using undo = new AsyncDisposableStack();
  const dir = mkdtempSync(join(tmpdir(), 'svc-inbox-'));
  undo.defer(() => rmSync(dir, { recursive: true, force: true }));
  // The server's user, which is not ours when we are root, has to reach the small disk.
  chmodSync(dir, 0o711);
  const server = createEmbeddedPostgres({
    dir: join(dir, 'postgres'),
    databaseName: 'monitor',
    urlSetting: 'none',
    reporter: silentReporter,
    serverSettings: { max_connections: String(connectionsMax), shared_buffers: '64MB' },
  });
  await server.start();
  undo.defer(() => server.stop());
  const disk = join(dir, 'disk');
  const filler = join(disk, 'filler');
  mkdirSync(disk);
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${smallDiskMiB}m`, 'tmpfs', disk]);
  const hasSmallDisk = mounted.status === 0;
  if (hasSmallDisk) undo.defer(() => void spawnSync('umount', ['-l', disk]));
  const url = await createFleetDatabase(server, dir, hasSmallDisk ? disk : null);
  const parts = undo.move();
  return {
    url,
    hasSmallDisk,
    async signal(signal) {
      const file = await readFile(join(dir, 'postgres', 'data', 'postmaster.pid'), 'utf8').catch(() => '');
      const pid = Number(file.split('\n')[0]);
      try {
        if (pid > 1) process.kill(pid, signal);
      } catch {
        // It is down already, from the fault before.
      }
    },
    fillDisk() {
      // Until there is no room for a page more.
      for (let size = 64 * 1024 * 1024; size >= 4096; size /= 2) {
        for (;;) {
          try {
            writeFileSync(filler, Buffer.alloc(size), { flag: 'a' });
          } catch {
            break;
          }
        }
      }
    },
    freeDisk: () => rmSync(filler, { force: true }),
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

/** Only the server's own administrator makes a tablespace; everything in the database is the program's. */
async function createFleetDatabase(
  server: EmbeddedPostgres,
  dir: string,
  disk: string | null,
): Promise<string> {
  const url = server.url.replace('/monitor?', '/fleet?');
  const admin = new pg.Client({ connectionString: server.adminUrl });
  // A statement that fails stops the server, and the reason must not be hidden by the lost connection.
  admin.on('error', () => {});
  await admin.connect();
  if (disk) {
    const { uid, gid } = statSync(join(dir, 'postgres', 'data'));
    const place = join(disk, 'tables');
    mkdirSync(place);
    chownSync(place, uid, gid);
    chownSync(disk, uid, gid);
    await admin.query(`create tablespace small location '${place}'`);
  }
  const role = new URL(url).username;
  // A proof makes deadlocks end at once.
  await admin.query(`grant set on parameter deadlock_timeout to ${role}`);
  await admin.query(`create database fleet owner ${role}${disk ? ' tablespace small' : ''}`);
  await admin.end();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await applyMigrations(client, [kitMigrations, monitorMigrations]);
  // A statement that fails as if two transactions had met, while the flag is up.
  await client.query(`
    create table fault_flags (is_up boolean not null);
    insert into fault_flags values (false);
    create function fail_serialization() returns trigger language plpgsql as $$
    begin
      if random() < 0.5 and (select is_up from fault_flags) then
        raise exception 'planned' using errcode = '40001';
      end if;
      return null;
    end $$;
    create trigger fail_serialization after update on inbox_uploads for each statement execute function fail_serialization()`);
  await client.end();
  return url;
}
