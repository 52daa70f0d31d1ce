import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { buildOpenApi, readOpenApi } from '#contracts/customer-api/index.ts';
import { describeCalls } from './calls.ts';
import { buildDownloads } from './downloads.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const document = readOpenApi<Parameters<typeof buildDownloads>[0]>(buildOpenApi());
let project: string;
let installed: string;
before(() => {
  project = mkdtempSync(join(tmpdir(), 'virtual-servers-client-test-'));
  installed = join(project, 'node_modules/virtual-servers-client');
  mkdirSync(installed, { recursive: true });
  const { bytes } = buildDownloads(document).find(({ kind }) => kind === 'typescript')!;
  execFileSync('tar', ['-xzf', '-', '-C', installed, '--strip-components=1'], { input: bytes });
  writeFileSync(join(project, 'package.json'), '{ "type": "module" }');
});
after(() => rmSync(project, { recursive: true, force: true }));

const run = (file: string) =>
  execFileSync(process.execPath, [join(project, file)], { cwd: project, encoding: 'utf8' });

test('the package has a manifest that says what it needs, its README, and nothing of the tests', () => {
  const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'));
  assert.deepEqual(
    [manifest.name, manifest.type, manifest.engines.node],
    ['virtual-servers-client', 'module', '>=20.3'],
  );
  for (const field of ['version', 'license', 'description', 'types']) assert.ok(manifest[field], field);
  assert.equal(manifest.private, undefined);
  const files = globSync('**/*', { cwd: installed, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name);
  assert.ok(files.includes('README.md') && files.includes('index.js') && files.includes('index.ts'));
  assert.deepEqual(
    files.filter((name) => /test|tsconfig/.test(name)),
    [],
  );
});

test('an installed package is imported by its name and makes a call', () => {
  writeFileSync(
    join(project, 'call.js'),
    `import { answerOf, createClient } from 'virtual-servers-client';
     const fetch = async () => Response.json({ id: 7 }, { headers: { etag: '"a"', 'x-request-id': 'req_1' } });
     const server = await createClient({ url: 'https://api.test', key: 'svc_k_s', fetch }).readServer(7);
     console.log(server.id, answerOf(server).etag, answerOf(server).requestId);`,
  );
  assert.equal(run('call.js').trim(), '7 "a" req_1');
});

test('without the global crypto, as on Node 18, it says which Node it needs, before any call', () => {
  writeFileSync(
    join(project, 'old.js'),
    `delete globalThis.crypto;
     const { createClient } = await import('virtual-servers-client');
     try { createClient({ url: 'https://api.test', key: 'svc_k_s' }); } catch (error) { console.log(error.message); }`,
  );
  assert.match(run('old.js'), /Node 20 or newer/);
});

test('its types are found by the compiler of a project that uses it, and every example of the README compiles', () => {
  const examples = [...readFileSync(join(installed, 'README.md'), 'utf8').matchAll(/```ts\n([\s\S]*?)```/g)];
  assert.ok(examples.length >= 3);
  for (const [index, [, code]] of examples.entries()) {
    assert.match(code!, /from 'virtual-servers-client'/);
    writeFileSync(join(project, `example-${index}.ts`), code!);
  }
  writeFileSync(
    join(project, 'use.ts'),
    `import { createClient, type Server } from 'virtual-servers-client';
     export const read = (id: number): Promise<Server> => createClient({ url: '', key: 'k' }).readServer(id);
     // @ts-expect-error a server has no such member
     export const wrong = async () => (await read(1)).no_such_member;`,
  );
  const options = [
    '--noEmit',
    '--strict',
    // As strict as a project may be: its compiler reads the sources of the package.
    '--noUncheckedIndexedAccess',
    '--exactOptionalPropertyTypes',
    '--noImplicitOverride',
    '--verbatimModuleSyntax',
    '--noUnusedLocals',
    '--module',
    'nodenext',
    '--target',
    'es2022',
    '--lib',
    'es2023,dom,dom.iterable',
  ];
  const types = ['--types', 'node', '--typeRoots', join(root, 'node_modules/@types'), '--skipLibCheck'];
  const files = globSync('*.ts', { cwd: project }).map((file) => join(project, file));
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  const done = () =>
    execFileSync(process.execPath, [compiler, ...options, ...types, ...files], {
      cwd: project,
      encoding: 'utf8',
    });
  assert.doesNotThrow(done);
});

test('the same sources give the same bytes, and no two calls have one name as a command', () => {
  const digests = () => buildDownloads(document).map(({ file, sha256 }) => [file, sha256]);
  assert.deepEqual(digests(), digests());
  const names = describeCalls(document).map(({ group, name }) => `${group} ${name}`);
  assert.equal(new Set(names).size, names.length);
});
