/**
 * A PostgreSQL as an operator has it: Debian's server with passwords over TCP and every safety on, with the databases and
 * roles of `packaging/postgres/roles.sql`, whose passwords are set as the container of PostgreSQL sets them.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { claimPort } from './free-port.ts';

const packaging = fileURLToPath(new URL('../../packaging/', import.meta.url));
const superPassword = 'of the administrator';

export interface OwnPostgres extends AsyncDisposable {
  /** `host:port` for URLs. */
  host: string;
  /** Runs a client program, such as `psql` or `pg_dump`, as the administrator; returns what it prints. */
  run(program: string, ...args: string[]): string;
  /** Calls `set-passwords.sh` with this folder of secrets. */
  setPasswords(secrets: string): void;
}

/** Starts a server on a port of its own. Needs Debian's package `postgresql`. */
export async function startOwnPostgres(): Promise<OwnPostgres> {
  const binaries = findBinaries();
  const folder = mkdtempSync(join(tmpdir(), 'svc-own-postgres-'));
  const port = await claimPort();
  const user = userOfServer();
  if (user) chownSync(folder, user.uid, user.gid);
  const passwordFile = join(folder, 'password');
  writeFileSync(passwordFile, superPassword);
  const data = join(folder, 'data');
  const initdb = [
    '-D',
    data,
    '-U',
    'postgres',
    '--auth=scram-sha-256',
    `--pwfile=${passwordFile}`,
    '-E',
    'UTF8',
  ];
  execFileSync(join(binaries, 'initdb'), [...initdb, '--locale=C.UTF-8'], {
    ...user,
    cwd: folder,
    stdio: 'pipe',
  });
  const settings = ['listen_addresses=127.0.0.1', `port=${port}`, `unix_socket_directories=${folder}`];
  const server = spawn(
    join(binaries, 'postgres'),
    ['-D', data, ...settings.flatMap((setting) => ['-c', setting])],
    { ...user, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  await isReady(server);
  const env = {
    ...process.env,
    PGHOST: '127.0.0.1',
    PGPORT: String(port),
    PGUSER: 'postgres',
    PGPASSWORD: superPassword,
  };
  const run = (program: string, ...args: string[]) =>
    execFileSync(program, args, { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  run('psql', '-q', '-v', 'ON_ERROR_STOP=1', '-f', join(packaging, 'postgres/roles.sql'), 'postgres');
  return {
    host: `127.0.0.1:${port}`,
    run,
    setPasswords(secrets) {
      const script = join(packaging, 'containers/set-passwords.sh');
      execFileSync(script, { env: { ...env, SVC_SECRETS: secrets }, stdio: 'pipe' });
    },
    async [Symbol.asyncDispose]() {
      const gone = once(server, 'exit');
      server.kill('SIGQUIT');
      await gone;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function findBinaries(): string {
  const found = globSync('/usr/lib/postgresql/*/bin/initdb').sort().at(-1);
  if (!found) throw new Error("Debian's package postgresql is missing.");
  return dirname(found);
}

/** The server refuses to run as root. */
function userOfServer(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

function isReady(server: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let text = '';
    server.stderr!.on('data', (piece: Buffer) => {
      text += piece;
      if (text.includes('ready to accept connections')) resolve();
    });
    server.once('exit', (code) => reject(new Error(`postgres ended with ${code}: ${text}`)));
  });
}
