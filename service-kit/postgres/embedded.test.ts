// Slow: makes a new database server for most tests, and kills several.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { silentReporter } from '#common/reporter/index.ts';
import { asUser, findUser } from '#common/system-users/index.ts';
import { createDatabase } from './index.ts';
import { embeddedIn, query } from './testing/embedded-server.ts';

test('a stop while the killed server is started again leaves none behind, so that the program can end', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'svc-pg-'));
  const script = `
    import { readFileSync } from 'node:fs';
    import { createEmbeddedPostgres } from '#service-kit/postgres/index.ts';
    import { silentReporter } from '#common/reporter/index.ts';
import { asUser, findUser } from '#common/system-users/index.ts';
    const ended = Promise.withResolvers();
    const reporter = { ...silentReporter, warn: ended.resolve };
    const server = createEmbeddedPostgres({ dir: process.argv[1], databaseName: 'operations', urlSetting: 'X', reporter });
    await server.start();
    process.kill(Number(readFileSync(process.argv[1] + '/data/postmaster.pid', 'utf8').split('\\n')[0]), 'SIGKILL');
    await ended.promise;
    await server.stop();`;
  const owner = spawn(process.execPath, ['--input-type=module', '-e', script, dir], { stdio: 'inherit' });
  t.after(() => {
    owner.kill('SIGKILL');
    for (const pid of serversOf(dir)) process.kill(Number(pid), 'SIGKILL');
    rmSync(dir, { recursive: true });
  });
  await once(owner, 'exit');
  assert.equal(owner.exitCode, 0);
  assert.deepEqual(serversOf(dir), []);
});

/** The processes that work in the server's folder. */
function serversOf(dir: string): string[] {
  return readdirSync('/proc').filter((entry) => {
    try {
      return /^\d+$/.test(entry) && realpathSync(join(dir, 'data')) === readlinkSync(`/proc/${entry}/cwd`);
    } catch {
      return false;
    }
  });
}

/** A process that runs the server of a folder, and the server's URL. */
async function startOwner(dir: string) {
  const script = `
    import { createEmbeddedPostgres } from '#service-kit/postgres/index.ts';
    import { silentReporter } from '#common/reporter/index.ts';
import { asUser, findUser } from '#common/system-users/index.ts';
    const server = createEmbeddedPostgres({ dir: process.argv[1], databaseName: 'operations', urlSetting: 'X', reporter: silentReporter });
    await server.start();
    console.log(server.url);
    setInterval(() => {}, 1000);`;
  const owner = spawn(process.execPath, ['--input-type=module', '-e', script, dir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const url = await new Promise<string>((done) =>
    owner.stdout.once('data', (text) => done(String(text).trim())),
  );
  const kill = async () => {
    owner.kill('SIGKILL');
    await new Promise((done) => owner.once('exit', done));
  };
  return { url, kill };
}

test('a start after the kill of the owner takes over from the orphan and finds its rows', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'svc-pg-'));
  const owner = await startOwner(dir);
  await query(owner.url, 'create table kept (n int)');
  await assert.rejects(embeddedIn(dir).start(), /Another process already runs/);
  await owner.kill();
  const server = embeddedIn(dir);
  await server.start();
  t.after(async () => {
    await server.stop();
    rmSync(dir, { recursive: true });
  });
  assert.deepEqual(await query(server.url, 'select n from kept'), []);
});

test('a start stops the orphan of a folder that was deleted meanwhile, and makes a new database', async (t) => {
  // The server's user can't pass it, so the socket is elsewhere, and stays.
  const above = mkdtempSync(join(tmpdir(), 'svc-pg-'));
  const dir = join(above, 'operations');
  const owner = await startOwner(dir);
  const pid = Number(readFileSync(join(dir, 'data/postmaster.pid'), 'utf8').split('\n')[0]);
  await query(owner.url, 'create table kept (n int)');
  await owner.kill();
  rmSync(dir, { recursive: true });
  const server = embeddedIn(dir);
  await server.start();
  t.after(async () => {
    await server.stop();
    rmSync(above, { recursive: true });
  });
  await assert.rejects(query(server.url, 'select n from kept'), /does not exist/);
  assert.equal(existsSync(`/proc/${pid}`), false, 'the orphan is gone');
});

const needsRoot = { skip: process.getuid?.() === 0 ? false : 'needs root' };

test(
  'as root the server runs as its own user without any capability, and admits root only',
  needsRoot,
  async (t) => {
    // mkdtemp makes it 0700, as /root is: the server's user can't pass it.
    const dir = mkdtempSync(join(tmpdir(), 'svc-pg-'));
    const server = embeddedIn(join(dir, 'operations'));
    await server.start();
    t.after(async () => {
      await server.stop();
      rmSync(dir, { recursive: true });
    });
    const pid = Number(readFileSync(join(dir, 'operations/data/postmaster.pid'), 'utf8').split('\n')[0]);
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
      assert.match(status, new RegExp(`^${set}:\\s0+$`, 'm'), set);
    assert.match(status, /^NoNewPrivs:\s1$/m);
    const { uid, gid } = statSync(join(dir, 'operations/data'));
    assert.match(readFileSync('/etc/passwd', 'utf8'), new RegExp(`^svc-postgres:x:${uid}:`, 'm'));

    // Also one who finds the socket, because the folders around it are open.
    const url = new URL(server.url);
    const socket = url.searchParams.get('host')!;
    const script = `
    import pg from 'pg';
    const client = new pg.Client({ host: process.argv[1], user: process.argv[2], database: 'operations' });
    client.connect().then(() => { console.log('let in'); process.exit(); }, (error) => { console.log(error.message); process.exit(); });`;
    for (const role of ['svc', 'operations']) {
      const asOther = spawnSync(
        'setpriv',
        [
          `--reuid=${uid}`,
          `--regid=${gid}`,
          '--clear-groups',
          process.execPath,
          '--input-type=module',
          '-e',
          script,
          socket,
          role,
        ],
        { encoding: 'utf8', cwd: process.cwd() },
      );
      assert.match(
        asOther.stdout,
        /Peer authentication failed/,
        `${role}: ${asOther.stdout}${asOther.stderr}`,
      );
    }
  },
);

test('the program works as a role that is no superuser: it reads no file of the host and runs no program', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'svc-pg-'));
  const server = embeddedIn(dir);
  await server.start();
  t.after(async () => {
    await server.stop();
    rmSync(dir, { recursive: true });
  });
  const [role] = await query(
    server.url,
    'select rolname, rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls from pg_roles where rolname = current_user',
  );
  assert.deepEqual(role, {
    rolname: 'operations',
    rolsuper: false,
    rolcreatedb: false,
    rolcreaterole: false,
    rolreplication: false,
    rolbypassrls: false,
  });
  for (const attempt of [
    "select pg_read_file('/etc/passwd')",
    "copy (select 1) to program 'true'",
    'create role other superuser',
    'set role svc',
  ])
    await assert.rejects(query(server.url, attempt), /permission denied|must have|must be/, attempt);
  await query(server.url, 'create table mine (n int)');
});

test('the audit trail belongs to a role that the program is not, from the first start on and after each', async (t) => {
  const programDir = mkdtempSync(join(tmpdir(), 'svc-pg-'));
  t.after(() => rmSync(programDir, { recursive: true }));
  const database = createDatabase({
    ...{ program: 'operations', urlSetting: 'X', url: null, programDir, reporter: silentReporter },
    migrations: fileURLToPath(new URL('../../operations/migrations', import.meta.url)),
  });
  for (let start = 0; start < 2; start += 1) {
    await database.start();
    const entry = `insert into audit_entries (operation, actor_kind, subject_kind, subject_id)
      values ('thing.make', 'system', 'thing', '1')`;
    await database.pool.query(entry);
    for (const statement of ['delete from audit_entries', 'alter table audit_entries disable trigger all'])
      await assert.rejects(database.pool.query(statement), /permission denied|must be owner/, statement);
    await database.pool.query('create table further (n int); drop table further');
    await database.stop();
  }
});

test(
  'a server of before, with trust, the superuser alone and another user, goes on with its rows',
  needsRoot,
  async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'svc-pg-'));
    const first = embeddedIn(dir);
    await first.start();
    const admin = (text: string) => query(first.adminUrl, text);
    await admin(`create type mood as enum ('good'); create table kept (id bigint generated always as identity, m mood);
    create table days (d date) partition by range (d); create table day_1 partition of days default;
    create view seen as select * from kept; create function one() returns int language sql as 'select 1';
    insert into kept (m) values ('good')`);
    await admin('alter database operations owner to svc; alter schema public owner to svc');
    await first.stop();
    const data = join(dir, 'data');
    writeFileSync(join(data, 'pg_hba.conf'), 'local all all trust\n');
    const { uid, gid } = statSync('/etc/passwd');
    assert.equal(uid, 0);
    const otherUser = Number(/^nobody:x:(\d+):/m.exec(readFileSync('/etc/passwd', 'utf8'))![1]);
    for (const entry of ['.', ...(readdirSync(data, { recursive: true }) as string[])])
      chownSync(join(data, entry), otherUser, gid);
    const again = embeddedIn(dir);
    await again.start();
    t.after(async () => {
      await again.stop();
      rmSync(dir, { recursive: true });
    });
    assert.deepEqual(await query(again.url, 'select id, m from seen'), [{ id: 1, m: 'good' }]);
    await query(
      again.url,
      "alter table kept add column n int; alter type mood add value 'bad'; drop table days; drop function one()",
    );
    await query(again.url, "insert into kept (m) values ('bad')");
    assert.notEqual(statSync(data).uid, otherUser);
    assert.match(readFileSync(join(data, 'pg_hba.conf'), 'utf8'), /peer/);
  },
);

test(
  "links that the server's user puts where root works change none of what they name; the data's are refused",
  needsRoot,
  async (t) => {
    const above = mkdtempSync(join(tmpdir(), 'svc-pg-'));
    t.after(() => rmSync(above, { recursive: true }));
    // So that the socket is inside.
    chmodSync(above, 0o755);
    const dir = join(above, 'postgres');
    const first = embeddedIn(dir);
    await first.start();
    assert.equal(statSync(dir).uid, 0);
    await query(first.url, 'create table kept (n int); insert into kept values (7)');
    await first.stop();
    const user = findUser('svc-postgres')!;
    const asServer = (...command: string[]) => {
      const [program, ...words] = [...asUser(user), ...command];
      const { status, stderr } = spawnSync(program!, words, { encoding: 'utf8' });
      assert.equal(status, 0, stderr);
    };
    assert.throws(() => asServer('ln', '-s', '/etc/passwd', join(dir, 'planted')), /Permission denied/);

    // In earlier versions the folder was the server's.
    chownSync(dir, user.uid, user.gid);
    const aims = join(above, 'aims');
    mkdirSync(aims);
    const places = ['server.log', 'data/pg_hba.conf', 'data/pg_ident.conf', 'socket', 'runtime', 'data.new'];
    for (const [i, place] of places.entries()) {
      const aim = join(aims, String(i));
      if (place.includes('.') && place !== 'data.new') writeFileSync(aim, `text ${i}`, { mode: 0o640 });
      else mkdirSync(aim, { mode: 0o750 });
      asServer('sh', '-c', '[ ! -e "$0" ] || mv "$0" "$0.moved"', join(dir, place));
      asServer('ln', '-s', aim, join(dir, place));
    }
    const facts = () =>
      ['.', ...readdirSync(aims)].map((name) => {
        const { uid, gid, mode, size, mtimeMs } = lstatSync(join(aims, name));
        const inside =
          mode & 0o040000 ? readdirSync(join(aims, name)) : readFileSync(join(aims, name), 'utf8');
        return { name, uid, gid, mode, size, mtimeMs, inside };
      });
    const before = facts();
    const again = embeddedIn(dir);
    await again.start();
    t.after(() => again.stop());
    assert.deepEqual(await query(again.url, 'select n from kept'), [{ n: 7 }]);
    assert.deepEqual(facts(), before);
    assert.equal(lstatSync(dir).uid, 0, "the folder is root's from then on");
    await again.stop();

    chownSync(dir, user.uid, user.gid);
    asServer('mv', join(dir, 'data'), join(dir, 'moved'));
    asServer('ln', '-s', aims, join(dir, 'data'));
    const refused = embeddedIn(dir);
    await assert.rejects(refused.start(), /is a link to .*\/aims that root did not make\. Put the data back/);
    assert.deepEqual(facts(), before);
    rmSync(join(dir, 'data'));
    renameSync(join(dir, 'moved'), join(dir, 'data'));
    const last = embeddedIn(dir);
    await last.start();
    t.after(() => last.stop());
    assert.deepEqual(await query(last.url, 'select n from kept'), [{ n: 7 }]);
  },
);
