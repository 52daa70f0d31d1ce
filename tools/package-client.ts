/**
 * Makes the npm package of the TypeScript client: compiled JavaScript with its types, the README, and a manifest.
 *
 * usage: npm run package:client [-- FOLDER]      FOLDER gets `virtual-servers-client-<version>.tgz`; default `dist`
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const source = join(root, 'clients/typescript');
/** What it promises to run on; `AbortSignal.any` is the newest thing that it uses. */
const nodeVersions = '>=20.3';

/** Returns the path of the package. */
export function packageClient(folder: string): string {
  const work = mkdtempSync(join(tmpdir(), 'virtual-servers-client-'));
  try {
    const options = {
      compilerOptions: {
        target: 'es2022',
        lib: ['es2022', 'dom', 'dom.iterable'],
        module: 'nodenext',
        moduleResolution: 'nodenext',
        types: [],
        strict: true,
        declaration: true,
        rewriteRelativeImportExtensions: true,
        rootDir: source,
        outDir: join(work, 'dist'),
      },
      files: [join(source, 'index.ts')],
    };
    writeFileSync(join(work, 'tsconfig.json'), JSON.stringify(options));
    // So that the compiler knows the sources as modules: they stand in a project of that kind, this folder does not.
    writeFileSync(join(work, 'package.json'), JSON.stringify(manifest(), null, 2));
    const compiler = join(root, 'node_modules/typescript/bin/tsc');
    run(process.execPath, [compiler, '--project', join(work, 'tsconfig.json')], root);
    rmSync(join(work, 'tsconfig.json'));
    cpSync(join(source, 'README.md'), join(work, 'README.md'));
    mkdirSync(folder, { recursive: true });
    const packed = run('npm', ['pack', '--silent', '--pack-destination', resolve(folder)], work);
    return join(resolve(folder), packed.trim().split('\n').at(-1)!);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function manifest(): object {
  const { version, license } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    version: string;
    license: string;
  };
  return {
    name: 'virtual-servers-client',
    version,
    description: 'A client of the customer API, without dependencies.',
    license,
    type: 'module',
    engines: { node: nodeVersions },
    exports: { '.': { types: './dist/index.d.ts', default: './dist/index.js' } },
    types: './dist/index.d.ts',
    files: ['dist', 'README.md'],
    sideEffects: false,
  };
}

function run(program: string, given: readonly string[], cwd: string): string {
  return execFileSync(program, given, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  console.log(packageClient(process.argv[2] ?? join(root, 'dist')));
