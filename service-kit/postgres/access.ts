/**
 * Who may do what in an embedded PostgreSQL.
 *
 * The socket is the only way in, and the kernel says which user is at its other end (peer authentication): only the user
 * that the program runs as, and root, are let in. The program works as a role of its own that owns its database and is
 * no superuser, so that no statement of it can read a file or run a program of the host. `svc`, the superuser, is used
 * for backups and to prepare the rest.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import pg from 'pg';
import { spawnInside } from '#common/folders/index.ts';

/** The superuser of every embedded server. */
export const adminRole = 'svc';

/** Writes who is let in, as the server's user; the server reads it when it starts. */
export async function writeAccessFiles(dataDir: string): Promise<void> {
  const people = [...new Set(['root', userInfo().username])];
  const methods = 'local all all peer map=svc\nlocal replication all peer map=svc\n';
  // The map's last column is a role: these users may be any.
  const map = people.map((name) => `svc "${name}" all\n`).join('');
  const script =
    'umask 077; rm -rf pg_hba.conf pg_ident.conf; printf %s "$1" > pg_hba.conf && printf %s "$2" > pg_ident.conf';
  const writer = spawnInside(dataDir, ['sh', '-c', script, 'sh', methods, map], { stdio: 'ignore' });
  const [code] = await once(writer, 'exit');
  if (code !== 0) throw new Error(`the access files in ${dataDir} can't be written`);
}

/** Makes the program's role and database, and gives the role what is in it: servers of before had the superuser alone. */
export async function prepareDatabase(socketDir: string, name: string): Promise<void> {
  await withAdmin(socketDir, 'postgres', async (client) => {
    const role = client.escapeIdentifier(name);
    const { rowCount: roles } = await client.query('select 1 from pg_roles where rolname = $1', [name]);
    if (roles === 0) await client.query(`create role ${role} login nosuperuser nocreatedb nocreaterole`);
    const { rows } = await client.query<{ owner: string }>(
      'select pg_get_userbyid(datdba) as owner from pg_database where datname = $1',
      [name],
    );
    if (rows.length === 0) await client.query(`create database ${role} owner ${role}`);
    else if (rows[0]!.owner !== name) await client.query(`alter database ${role} owner to ${role}`);
    await client.query(`revoke all on database ${role} from public`);
  });
  await withAdmin(socketDir, name, (client) => giveObjects(client, name));
}

/**
 * Takes the audit trail from the program's role, by what an operator runs on a PostgreSQL of their own. After the
 * migrations, which make it.
 */
export async function protectAudit(socketDir: string, name: string): Promise<void> {
  const script = readFileSync(new URL('../../packaging/postgres/audit.sql', import.meta.url), 'utf8');
  await withAdmin(socketDir, name, async (client) => void (await client.query(script)));
}

/**
 * Gives the role what the superuser owns, in one transaction: either it owns everything or, after a kill, the next start
 * gives it again. The audit trail's owner keeps what is theirs.
 */
export async function giveObjects(client: pg.Client, role: string): Promise<void> {
  const { rows } = await client.query<{ statement: string }>(
    `select format('alter %s %s owner to %I', kind, name, $1::text) as statement from (
       select 'schema' as kind, quote_ident(nspname) as name from pg_namespace
         where nspname = 'public' and nspowner = $2::regrole
       union all
       select 'table', c.oid::regclass::text from pg_class c
         where c.relnamespace = 'public'::regnamespace and c.relowner = $2::regrole and c.relkind in ('r', 'p', 'v', 'm', 'S')
           -- A column's sequence goes with its table.
           and not exists (select 1 from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid
             and c.relkind = 'S' and d.deptype in ('a', 'i'))
       union all
       select 'routine', p.oid::regprocedure::text from pg_proc p
         where p.pronamespace = 'public'::regnamespace and p.proowner = $2::regrole
       union all
       select 'type', t.oid::regtype::text from pg_type t
         where t.typnamespace = 'public'::regnamespace and t.typowner = $2::regrole and t.typtype in ('e', 'd')
     ) as owned order by kind, name`,
    [role, adminRole],
  );
  if (rows.length === 0) return;
  await client.query(`begin;${rows.map((row) => `${row.statement};`).join('')}commit`);
}

async function withAdmin(socketDir: string, database: string, work: (client: pg.Client) => Promise<void>) {
  const client = new pg.Client({ host: socketDir, user: adminRole, database });
  client.on('error', () => {});
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}
