/**
 * Backup and restore of an embedded server: one file, taken while the program works, that holds everything committed
 * when it was finished.
 *
 * The way is PostgreSQL's own for file copies (its manual: "Making a Base Backup Using the Low Level API"): the server
 * is told, the files are copied while they change, and the log of that time goes with them, so that the restored server
 * recovers to one consistent moment. A temporary slot keeps the server from recycling that log meanwhile.
 *
 * The file is tar archives, one after the other, in one zstd stream with a checksum; the last entry is a manifest, so
 * a file that was cut is never taken for whole. It holds every secret of the database: mode 0600. What lies in the data
 * folder is read and written as the server's user, so that no link in there leads root elsewhere.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import {
  access,
  chmod,
  mkdtemp,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib';
import pg from 'pg';
import { CodedError, describeError, hasCode } from '#common/errors/index.ts';
import { makeFolderOf, removeTree, spawnInside } from '#common/folders/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { keepFolder } from './cluster.ts';
import { refuseElsewhere } from './database-place.ts';
import { createEmbeddedPostgres } from './embedded.ts';
import { chooseIdentity } from './runtime.ts';

export interface BackupTarget {
  /** `operations` or `monitor`: the database's name, and what a restore compares. */
  program: string;
  /** Name of the setting that would hold a URL. */
  urlSetting: string;
  /** Its value; with one, the server's operator is responsible for its backup. */
  url: string | null;
  /** The program's own folder in the data directory. */
  programDir: string;
  reporter: Reporter;
}

/** What a backup says about itself. */
export interface BackupManifest {
  format: 1;
  program: string;
  /** Major version of the PostgreSQL whose files these are. */
  postgres: number;
  /** RFC 3339; everything committed before it is in the backup. */
  finishedAt: string;
}

/** Everything below the data folder that a restored server makes anew. */
const leftOut = [
  './pg_wal/*',
  './postmaster.pid',
  './postmaster.opts',
  './pg_replslot/*',
  './pg_dynshmem/*',
  './pg_notify/*',
  './pg_serial/*',
  './pg_snapshots/*',
  './pg_stat_tmp/*',
  './pg_subtrans/*',
  './base/pgsql_tmp*',
];
const manifestName = 'svc-backup.json';

/**
 * Writes a backup into `file`, beside a running program or without one. Throws `backup.external` with a database URL,
 * `backup.exists` where the file is there already, and `backup.empty` where nothing was ever done in the database.
 */
export async function backUp(
  target: BackupTarget,
  file: string,
  { mayBeEmpty = false }: { mayBeEmpty?: boolean } = {},
): Promise<{ bytes: number; manifest: BackupManifest }> {
  await refuseExternal(
    target,
    `pg_dump --format=custom --file=${target.program}.dump "$${target.urlSetting}"`,
  );
  const path = resolve(file);
  if (await exists(path))
    throw new CodedError('backup.exists', `${path} exists already; a backup is never overwritten.`);
  if (!(await exists(dirname(path))))
    throw new CodedError('backup.no_folder', `There is no folder ${dirname(path)}.`);
  return withServer(target, async (url, dataDir) => {
    if (!mayBeEmpty) await refuseEmpty(target, url);
    const part = `${path}.part`;
    const scratch = await mkdtemp(join(tmpdir(), 'svc-backup-'));
    try {
      // Of a backup that was killed, or of another user, where the folder is shared.
      await rm(part, { force: true });
      const manifest = await copyServer(target, { url, dataDir, part, scratch });
      await syncFile(part);
      await rename(part, path);
      await syncFile(dirname(path));
      return { bytes: (await stat(path)).size, manifest };
    } finally {
      await rm(scratch, { recursive: true, force: true });
      await rm(part, { force: true });
    }
  });
}

/**
 * Puts a backup where the program's server keeps its files; its next start recovers. Throws `backup.in_the_way` where
 * there is a server's folder already, and `backup.damaged`, `backup.foreign` for a file that can't be used: then
 * nothing was changed.
 */
export async function restore(target: BackupTarget, file: string): Promise<BackupManifest> {
  await refuseExternal(target, `pg_restore --dbname="$${target.urlSetting}" ${target.program}.dump`);
  const dir = resolve(target.programDir, 'postgres');
  const dataDir = join(dir, 'data');
  if (await exists(dataDir)) {
    throw new CodedError(
      'backup.in_the_way',
      `${dataDir} exists already. Stop the program and move that folder away first; nothing was changed.`,
    );
  }
  keepFolder(dir, target.urlSetting);
  const fresh = `${dataDir}.restoring`;
  removeTree(fresh);
  makeFolderOf(fresh, chooseIdentity());
  try {
    await unpack(file, fresh);
    const manifest = await readManifest(fresh, target);
    await rm(join(fresh, manifestName));
    await chmod(fresh, 0o700);
    await rename(fresh, dataDir);
    return manifest;
  } finally {
    removeTree(fresh);
  }
}

/** A new database has nothing but what its migrations wrote: it is hardly the one that was meant. */
async function refuseEmpty(target: BackupTarget, url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  try {
    const { rows } = await client.query<{ is_used: boolean }>(
      'select exists (select from audit_entries) as is_used',
    );
    if (!rows[0]!.is_used)
      throw new CodedError(
        'backup.empty',
        `The database in ${target.programDir} is empty. Is SVC_DATA_DIR right? With --allow-empty it is copied all the same.`,
      );
  } finally {
    await client.end();
  }
}

async function refuseExternal(target: BackupTarget, command: string): Promise<void> {
  if (target.url === null) return await refuseElsewhere(target);
  throw new CodedError(
    'backup.external',
    `${target.urlSetting} names a PostgreSQL of your own, which its own tools copy: ${command}`,
  );
}

/** The embedded server, joined where a program runs it, else started for as long as `work` takes. */
async function withServer<T>(target: BackupTarget, work: (url: string, dataDir: string) => Promise<T>) {
  const dir = resolve(target.programDir, 'postgres');
  if (!(await exists(join(dir, 'data'))))
    throw new CodedError('backup.nothing', `There is no database below ${dir}. Is SVC_DATA_DIR right?`);
  const server = createEmbeddedPostgres({
    dir,
    databaseName: target.program,
    urlSetting: target.urlSetting,
    reporter: target.reporter,
  });
  let isOurs = true;
  try {
    await server.start();
  } catch (error) {
    if (!hasCode(error, 'postgres.in_use')) throw error;
    isOurs = false;
  }
  try {
    return await work(server.adminUrl, join(dir, 'data'));
  } finally {
    if (isOurs) await server.stop();
  }
}

async function copyServer(
  target: BackupTarget,
  at: { url: string; dataDir: string; part: string; scratch: string },
): Promise<BackupManifest> {
  // Both the slot and the backup end with this session, however it ends.
  const client = new pg.Client({ connectionString: at.url });
  client.on('error', () => {});
  await client.connect();
  try {
    await client.query(`select pg_create_physical_replication_slot('svc_backup_${process.pid}', true, true)`);
    const begun = await client.query<{ file: string; version: number }>(
      `select pg_walfile_name(pg_backup_start('svc', fast => true)) as file,
        current_setting('server_version_num')::int / 10000 as version`,
    );
    const { file: firstLog, version } = begun.rows[0]!;
    const excluded = leftOut.map((pattern) => `--exclude=${pattern}`);
    const sink = createSink(at.part);
    // What changes or vanishes meanwhile is the rule here, and made good by the log.
    const moving = ['--warning=no-file-changed', '--warning=no-file-removed', '--ignore-failed-read'];
    await sink.add(tar(at.dataDir, ['-c', '--numeric-owner', ...moving, ...excluded, '.']));
    const ended = await client.query<{ label: string; file: string; at: Date }>(
      `select labelfile as label, pg_walfile_name(lsn) as file, now() as at from pg_backup_stop(wait_for_archive => false)`,
    );
    const { label, file: lastLog, at: finishedAt } = ended.rows[0]!;
    const manifest: BackupManifest = {
      format: 1,
      program: target.program,
      postgres: version,
      finishedAt: finishedAt.toISOString(),
    };
    const segments = await logSegments(join(at.dataDir, 'pg_wal'), firstLog, lastLog);
    await sink.add(tar(at.dataDir, ['-c', '--numeric-owner', ...segments.map((name) => `./pg_wal/${name}`)]));
    await writeFile(join(at.scratch, 'backup_label'), label);
    await writeFile(join(at.scratch, manifestName), `${JSON.stringify(manifest)}\n`);
    await sink.add(tar(at.scratch, ['-c', './backup_label', `./${manifestName}`]));
    await sink.end();
    return manifest;
  } finally {
    await client.end();
  }
}

/** Segments of the log from the backup's beginning to its end, and the histories of time lines. */
async function logSegments(folder: string, first: string, last: string): Promise<string[]> {
  const isNeeded = (name: string) =>
    name.endsWith('.history') || (/^[0-9A-F]{24}$/.test(name) && name >= first && name <= last);
  return (await readdir(folder)).filter(isNeeded);
}

/** A compressed file that tar archives are added to, one after the other. */
function createSink(path: string) {
  const compress = createZstdCompress({ params: { [constants.ZSTD_c_checksumFlag]: 1 } });
  const written = pipeline(compress, createWriteStream(path, { mode: 0o600, flags: 'wx' }));
  written.catch(() => {});
  return {
    async add(archive: ChildProcess): Promise<void> {
      const ended = once(archive, 'close');
      for await (const piece of archive.stdout as Readable) {
        if (!compress.write(piece)) await Promise.race([once(compress, 'drain'), written]);
      }
      const [code] = (await ended) as [number | null];
      // 1: a file changed while it was read.
      if (code !== 0 && code !== 1) throw new CodedError('backup.tar', `tar ended with exit code ${code}.`);
    },
    async end(): Promise<void> {
      compress.end();
      await written;
    },
  };
}

/** GNU tar in a folder, as the folder's owner; what it says of a damaged archive is said by us. */
function tar(folder: string, args: readonly string[]): ChildProcess {
  return spawnInside(folder, ['tar', ...args], { stdio: ['pipe', 'pipe', 'ignore'] });
}

async function unpack(file: string, folder: string): Promise<void> {
  const damaged = (error: unknown) =>
    new CodedError(
      'backup.damaged',
      `${file} is no whole backup (${describeError(error)}); nothing was changed.`,
      {},
      error,
    );
  const archive = tar(folder, ['-x', '--ignore-zeros', '--no-same-owner']);
  const ended = once(archive, 'close');
  try {
    await pipeline(createReadStream(file), createZstdDecompress(), archive.stdin!);
  } catch (error) {
    archive.kill('SIGKILL');
    await ended;
    throw damaged(error);
  }
  const [code] = (await ended) as [number | null];
  if (code !== 0) throw damaged(new Error(`tar ended with exit code ${code}`));
}

async function readManifest(folder: string, target: BackupTarget): Promise<BackupManifest> {
  const text = await readFile(join(folder, manifestName), 'utf8').catch(() => null);
  if (text === null)
    throw new CodedError('backup.damaged', 'The backup has no end: it was cut. Nothing was changed.');
  const manifest = JSON.parse(text) as BackupManifest;
  if (manifest.format !== 1 || manifest.program !== target.program) {
    throw new CodedError(
      'backup.foreign',
      `This is a backup of ${manifest.program} in format ${manifest.format}, not of ${target.program}. Nothing was changed.`,
    );
  }
  return manifest;
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

async function syncFile(path: string): Promise<void> {
  const handle = await open(path, 'r');
  await handle.sync();
  await handle.close();
}
