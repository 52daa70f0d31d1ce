import assert from 'node:assert/strict';
import { test } from 'node:test';
import { treeOf } from '../testing/tree-of.ts';
import { checkBoundaries } from './index.ts';
import { rules } from './rules.ts';
import { tableRules } from './tables.ts';

/** A small tree that breaks no rule. */
const clean: Record<string, string> = {
  'common/clock/index.ts': `import { x } from 'node:os'; export const a = x;`,
  'contracts/admin-api/schemas.ts': `import { Type } from 'typebox'; export const b = Type;`,
  'operations/main.ts': `import { p } from './surfaces/portal/index.ts'; export const m = p;`,
  'operations/migrations/0001-create.sql': 'create table servers (id int); create table accounts (id int);',
  'operations/accounts/store.ts': 'export const x = `select 1 from accounts`;',
  'operations/surfaces/portal/read-names-store.ts':
    'export const x = `select 1 from servers s join accounts a on a.id = s.id`;',
  'operations/servers/index.ts': `export { s } from './store.ts';`,
  'operations/servers/store.ts': `import { sql } from 'kysely'; export const s = sql\`select 1 from servers\`;`,
  'operations/surfaces/parts/index.ts': 'export const q = 1;',
  'operations/surfaces/console/overview.ts': `import { q } from '../parts/index.ts'; export const o = q;`,
  'operations/surfaces/portal/index.ts': `import { s } from '#operations/servers/index.ts'; export const p = s;`,
  'sensor/capture/index.ts': `import { r } from '#common/bytes/index.ts'; export const c = r;`,
  'common/bytes/index.ts': `export const r = 1;`,
};

/** Rules that look at more than one module at a time, or at its size. */
const rulesOfTheTree = [
  'features form no cycle',
  'files import one another in no circle',
  ...Object.values(tableRules),
  'files are short',
  'functions are short',
];

/** Rules whose offences name a folder. */
const namesFolders: string[] = ['features form no cycle', tableRules.unused];

/** Rule → one offender planted beside the clean tree. */
const offenders: Record<string, Record<string, string>> = {
  'a program imports no other program': {
    'monitor/sites/index.ts': `import { s } from '#operations/servers/index.ts'; export const x = s;`,
  },
  'a feature reaches a sibling only through its index.ts': {
    'operations/billing/charge.ts': `import { s } from '../servers/store.ts'; export const x = s;`,
  },
  'a feature imports no surface, command or main file': {
    'operations/billing/charge.ts': `import { p } from '#operations/surfaces/portal/index.ts'; export const x = p;`,
  },
  'a surface imports no other surface': {
    'operations/surfaces/console/index.ts': `import { p } from '../portal/index.ts'; export const x = p;`,
  },
  'a surface reaches a feature only through its index.ts': {
    'operations/surfaces/console/index.ts': `import { s } from '#operations/servers/store.ts'; export const x = s;`,
  },
  'SQL stands only in store files and migrations': {
    'operations/billing/charge.ts': `export const x = (n: string) => \`update accounts set name = \${n}\`;`,
  },
  'the sensor imports only common and contracts': {
    'sensor/spool/index.ts': `import { d } from '#service-kit/postgres/index.ts'; export const x = d;`,
  },
  'sensor/capture imports common/bytes only': {
    'sensor/capture/names.ts': `import { parse } from 'tldts'; export const x = parse;`,
  },
  'common, contracts and service-kit import no program': {
    'service-kit/http/index.ts': `export { s } from '#operations/servers/index.ts';`,
  },
  'common imports nothing but itself and Node': {
    'common/ip/index.ts': `import ip from 'ipaddr.js'; export const x = ip;`,
  },
  'contracts import only common and schema libraries': {
    'contracts/admin-api/client.ts': `import Fastify from 'fastify'; export const x = Fastify;`,
  },
  'no program imports lab, demo, tools or system-tests': {
    'operations/hypervisors/index.ts': `const x = await import('#lab/index.ts'); export { x };`,
  },
  'no program imports what is made for tests': {
    'service-kit/sessions/testing/cheap-passwords.ts': `export const c = 1;`,
    'operations/servers/cheap.ts': `import '#service-kit/sessions/testing/cheap-passwords.ts'; export const x = 1;`,
    'proofs/operations/servers/races.ts': `export const d = 1;`,
    'operations/servers/fast.ts': `import { d } from '#proofs/operations/servers/races.ts'; export const y = d;`,
  },
  'clients import nothing but themselves': {
    'clients/typescript/files.ts': `import { readFileSync } from 'node:fs'; export const x = readFileSync;`,
    'clients/typescript/index.ts': `import { b } from '#contracts/admin-api/schemas.ts'; export const x = b;`,
  },
  'lab and demo know the programs from outside only': {
    'lab/index.ts': `import { m } from '#operations/main.ts'; export const x = m;`,
  },
  'files import one another in no circle': {
    'operations/billing/charge.ts': `import { a } from './ledger.ts'; export const b = a;`,
    'operations/billing/ledger.ts': `import { b } from './charge.ts'; export const a = b;`,
  },
  [tableRules.owner]: {
    'operations/billing/store.ts': 'export const x = `select 1 from ledger l join servers s on s.id = l.id`;',
  },
  [tableRules.unused]: { 'operations/migrations/0002-more.sql': 'create table orders (id int);' },
  [tableRules.readModel]: {
    'operations/views/read-servers-store.ts': 'export const x = `update servers set id = 2`;',
  },
  'files are short': { 'operations/billing/charge.ts': 'export const x = 1;\n'.repeat(701) },
  'functions are short': {
    'operations/billing/charge.ts': `export function charge() {\n${'  f();\n'.repeat(119)}}\n`,
  },
  'features form no cycle': {
    'operations/billing/index.ts': `import { s } from '#operations/ordering/index.ts'; export const x = s;`,
    'operations/ordering/index.ts': `import { x } from '#operations/billing/index.ts'; export const s = x;`,
  },
};

const checkTree = (files: Record<string, string>, modulesMin = 1) =>
  checkBoundaries(treeOf(files), modulesMin).offences;

test('a tree that follows the law has no offence', () => {
  assert.deepEqual(checkTree(clean), []);
});

test('every rule has a planted offender here', () => {
  assert.deepEqual(
    Object.keys(offenders).sort(),
    [...rules.map((rule) => rule.name), ...rulesOfTheTree].sort(),
  );
});

for (const [rule, planted] of Object.entries(offenders)) {
  test(`the planted offender is caught: ${rule}`, () => {
    const offences = checkTree({ ...clean, ...planted });
    assert.ok(
      offences.some((one) => one.rule === rule && (one.file in planted || namesFolders.includes(rule))),
      JSON.stringify(offences),
    );
  });
}

test('a circle by types is allowed inside one feature, and refused across features', () => {
  const types = (file: string, other: string) => ({
    [file]: `import type { b } from '${other}'; export const a = 1 as typeof b;`,
  });
  const door = { 'common/a/x.ts': `import { a } from './y.ts'; export const b = a;` };
  assert.deepEqual(checkTree({ ...clean, ...door, ...types('common/a/y.ts', './x.ts') }), []);
  const across = { 'common/a/x.ts': `import { a } from '../b/y.ts'; export const b = a;` };
  assert.equal(checkTree({ ...clean, ...across, ...types('common/b/y.ts', '../a/x.ts') }).length, 1);
});

test('two circles that share a file are one, and a circle of three files counts once', () => {
  const three = {
    'common/a/x.ts': `export * from './y.ts';`,
    'common/a/y.ts': `export * from './z.ts';`,
    'common/a/z.ts': `export * from './x.ts'; export * from './y.ts';`,
  };
  assert.equal(checkTree({ ...clean, ...three }).length, 1);
});

const long = (comment: string, lines = 121) => ({
  'operations/billing/charge.ts': `${comment}export const charge = () => {\n${'  f();\n'.repeat(lines - 2)}};\n`,
});

test('a function of 120 lines is allowed, and a longer one whose comment gives the reason', () => {
  assert.deepEqual(checkTree({ ...clean, ...long('', 120) }), []);
  assert.equal(checkTree({ ...clean, ...long('') }).length, 1);
  assert.equal(checkTree({ ...clean, ...long('/** Charges. */\n') }).length, 1);
  assert.deepEqual(checkTree({ ...clean, ...long('/** Over 120 lines: one loop. */\n') }), []);
  assert.deepEqual(checkTree({ ...clean, ...long('// Over 120 lines: one loop.\n') }), []);
  const documented = Object.entries(long('', 120)).map(([file, text]) => [
    file,
    text.replace('{\n', '{\n  /**\n   * One.\n   */\n  // Two.\n'),
  ]);
  assert.deepEqual(checkTree({ ...clean, ...Object.fromEntries(documented) }), []);
});

test('tests, proofs and generated code may be long', () => {
  const text = long('', 800)['operations/billing/charge.ts'];
  for (const file of [
    'operations/a/a.test.ts',
    'operations/a/testing/b.ts',
    'clients/typescript/generated/api.ts',
  ])
    assert.deepEqual(checkTree({ ...clean, [file]: text }), []);
});

const foreign = (body: string) =>
  checkTree({ ...clean, 'operations/billing/store.ts': body }).filter(
    ({ rule, file }) => rule === tableRules.owner && file === 'operations/billing/store.ts',
  );

for (const [how, body] of Object.entries({
  'a statement that reads': 'export const x = `select 1 from servers`;',
  'a list of tables': 'export const x = `select 1 from ledger l, servers s where true`;',
  'a write by a template tag': 'export const x = (sql) => sql`update servers set id = 1`;',
  'an insert from a select': 'export const x = `insert into ledger (id) select id from servers`;',
  'a delete': 'export const x = `delete from servers where id = 1`;',
  'a part of a statement': 'export const x = (sql) => sql`ledger l left join servers s on true`;',
  'a part that begins with the table': 'export const x = (sql) => sql`servers s join ledger l on true`;',
  'a qualified column': 'export const x = (sql) => sql`servers.id as "serverId"`;',
  'a text literal': `export const x = 'select 1 from servers';`,
  'a builder call': `export const x = (db) => db.selectFrom('servers').selectAll();`,
  'a builder call with an alias': `export const x = (db) => db.selectFrom('ledger').innerJoin('servers as s', 'a', 'b');`,
  'a copy': `export const x = (db) => copyRows(db, 'servers', [], rows);`,
  'the name as a value': `export const x = (sql) => sql\`select 1 from \${sql.table('servers')}\`;`,
}))
  test(`SQL on the table of another feature is refused: ${how}`, () => {
    assert.equal(foreign(body).length, 1);
  });

for (const [what, body] of Object.entries({
  'a table expression of the same name':
    'export const x = `with servers as (select 1) select * from servers`;',
  'a column of that name': 'export const x = `select count(*) as servers, l.servers from ledger l`;',
  'a comment': 'export const x = `select 1 from ledger -- not from servers`;',
}))
  test(`${what} is no use of the table`, () => {
    assert.deepEqual(foreign(body), []);
  });

test('SQL outside store files is refused as a builder call too', () => {
  const body = `export const x = (db) => db.updateTable('servers');`;
  const offences = checkTree({ ...clean, 'operations/servers/change.ts': body });
  assert.deepEqual(
    offences.map(({ rule }) => rule),
    ['SQL stands only in store files and migrations'],
  );
});

for (const body of [
  'insert into servers (id) values (1)',
  'delete from servers',
  'select id from servers for update',
  'select id from servers for no key update of servers',
  'with gone as (delete from servers returning id) select * from gone',
])
  test(`a read model is refused: ${body}`, () => {
    const offences = checkTree({
      ...clean,
      'operations/surfaces/portal/read-x-store.ts': `export const x = \`${body}\`;`,
    });
    assert.deepEqual(
      offences.map(({ rule }) => rule),
      [tableRules.readModel],
    );
  });

test('a table that no SQL names is refused, under its last name', () => {
  const renamed = { 'operations/migrations/0002-name.sql': 'alter table accounts rename to tenants;' };
  assert.deepEqual(
    checkTree({ ...clean, ...renamed }).map(({ what }) => what),
    ['no SQL names tenants'],
  );
  const dropped = { 'operations/migrations/0002-less.sql': 'drop table accounts;' };
  assert.deepEqual(checkTree({ ...clean, ...dropped }), []);
});

test('a table of the service kit has one feature over all programs', () => {
  const leases = {
    'service-kit/migrations/0001-leases.sql': 'create table leases (id int);',
    'service-kit/leases/store.ts': 'export const x = `select 1 from leases`;',
  };
  assert.deepEqual(checkTree({ ...clean, ...leases }), []);
  const second = { 'operations/servers/lease-store.ts': 'export const x = `select 1 from leases`;' };
  assert.deepEqual(
    checkTree({ ...clean, ...leases, ...second }).map(({ rule, file }) => [rule, file]),
    [
      [tableRules.owner, 'operations/servers/lease-store.ts'],
      [tableRules.owner, 'service-kit/leases/store.ts'],
    ],
  );
});

test('a check that reads too few modules fails instead of passing', () => {
  assert.throws(() => checkTree({}, 1), /only 0 modules/);
  assert.throws(() => checkTree(clean, 1000), /the check is broken/);
});
