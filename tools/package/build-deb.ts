/**
 * Builds a Debian package of one program: the pinned Node.js, the program's modules, the npm packages that they name,
 * and its files of `packaging/`. The same sources give the same bytes.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { gzipSync } from 'node:zlib';
import { collectModules, type NeededFiles } from './collect-modules.ts';
import type { PackagedProgram } from './programs.ts';
import { makeBill } from './software-bill.ts';

const architectures: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };
/** What a program never reads at run time; Debian has glibc. */
const leftOut = /(\.map|\.d\.[mc]?ts|\.flow|(^|\/)(CHANGELOG|README)[^/]*|(^|\/)musl_[^/]+\/[^/]+)$/i;
const maintainer = 'svc <packages@svc.example>';
const scripts = ['postinst', 'prerm', 'postrm'];

export interface BuildOptions {
  root: string;
  /** Where the package is put. */
  folder: string;
  version: string;
  /** Unix seconds that every file in it shows. */
  epochSeconds: number;
  /** `none` for tests: xz takes a minute. */
  compression: 'xz' | 'none';
}

/** Builds the package and returns its path. */
export async function buildDeb(program: PackagedProgram, options: BuildOptions): Promise<string> {
  const architecture = architectures[process.arch];
  if (!architecture) throw new Error(`there is no pinned Node.js for ${process.arch}`);
  const stage = mkdtempSync(join(tmpdir(), 'svc-package-'));
  try {
    const library = join(stage, 'usr/lib', program.name);
    const needed = collectModules(options.root, program.entry);
    copyLibrary(library, needed, program, options);
    for (const { from, to, mode } of program.files) {
      put(join(stage, to), readFileSync(join(options.root, 'packaging', program.name, from)), mode);
    }
    const { section } = program.manual;
    const manual = gzip(await renderManual(program, options));
    put(join(stage, `usr/share/man/man${section}/${program.name}.${section}.gz`), manual, 0o644);
    writeDocuments(stage, program, options);
    writeControl(stage, program, options, architecture);
    settle(stage, options.epochSeconds);
    mkdirSync(options.folder, { recursive: true });
    const path = join(options.folder, `${program.name}_${options.version}_${architecture}.deb`);
    run(
      'dpkg-deb',
      ['--root-owner-group', `-Z${options.compression}`, '--build', stage, path],
      options.epochSeconds,
    );
    return path;
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

function copyLibrary(
  library: string,
  needed: NeededFiles,
  program: PackagedProgram,
  options: BuildOptions,
): void {
  const { root } = options;
  for (const file of needed.modules) put(join(library, file), readFileSync(join(root, file)), 0o644);
  for (const name of needed.packages) {
    const from = realpathSync(join(root, 'node_modules', name));
    for (const file of filesBelow(from)) {
      const isNested = file.includes('node_modules/');
      if (isNested || leftOut.test(file)) continue;
      put(join(library, 'node_modules', name, file), readFileSync(join(from, file)), 0o644);
    }
  }
  const node = join(root, 'node_modules', `node-linux-${process.arch}`);
  put(join(library, 'bin/node'), readFileSync(join(node, 'bin/node')), 0o755);
  const documents = join(dirname(dirname(library)), 'share/doc', program.name);
  put(join(documents, 'LICENSE.node'), readFileSync(join(node, 'LICENSE')), 0o644);
  const { version, epochSeconds } = options;
  const { packages } = needed;
  const bill = makeBill({ root, name: program.name, version, epochSeconds, packages, hasNode: true });
  put(join(documents, 'sbom.cdx.json'), `${JSON.stringify(bill, null, 2)}\n`, 0o644);
  const { imports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { imports: object };
  const own = { name: program.name, version: options.version, private: true, type: 'module', imports };
  put(join(library, 'package.json'), `${JSON.stringify(own, null, 2)}\n`, 0o644);
}

/** The changelog of a Debian package, and what lintian is not to report. */
function writeDocuments(
  stage: string,
  { name, changes, lintianOverrides }: PackagedProgram,
  { root, version, epochSeconds }: BuildOptions,
): void {
  const text = readFileSync(join(root, 'CHANGELOG.md'), 'utf8');
  const section = text.split(`\n### ${changes}\n`)[1]?.split(/\n#{2,3} /)[0];
  if (!section) throw new Error(`CHANGELOG.md has no changes of ${changes}`);
  const lines = section.split('\n').filter((line) => line !== '');
  const date = new Date(epochSeconds * 1000).toUTCString().replace('GMT', '+0000');
  const log = [
    `${name} (${version}) unstable; urgency=medium\n`,
    ...lines.map((line) => `  ${line.replace(/^- /, '* ')}`),
    `\n -- ${maintainer}  ${date}\n`,
  ];
  put(join(stage, `usr/share/doc/${name}/changelog.gz`), gzip(log.join('\n')), 0o644);
  const overrides = lintianOverrides.map(({ tag, why }) => `# ${why}\n${name}: ${tag}\n`);
  put(join(stage, `usr/share/lintian/overrides/${name}`), overrides.join(''), 0o644);
}

function writeControl(
  stage: string,
  program: PackagedProgram,
  options: BuildOptions,
  architecture: string,
): void {
  const files = filesBelow(stage);
  const bytes = files.reduce((sum, file) => sum + lstatSync(join(stage, file)).size, 0);
  const control = [
    `Package: ${program.name}`,
    `Version: ${options.version}`,
    `Architecture: ${architecture}`,
    `Maintainer: ${maintainer}`,
    `Installed-Size: ${Math.ceil(bytes / 1024)}`,
    `Depends: ${program.depends.join(', ')}`,
    'Section: net',
    'Priority: optional',
    `Description: ${program.summary}`,
    ...program.description.map((line) => ` ${line}`),
  ];
  const digest = (file: string) =>
    createHash('md5')
      .update(readFileSync(join(stage, file)))
      .digest('hex');
  const configuration = program.files.filter((file) => file.isConfiguration).map((file) => file.to);
  put(join(stage, 'DEBIAN/control'), `${control.join('\n')}\n`, 0o644);
  put(join(stage, 'DEBIAN/conffiles'), `${configuration.join('\n')}\n`, 0o644);
  put(join(stage, 'DEBIAN/md5sums'), files.map((file) => `${digest(file)}  ${file}\n`).join(''), 0o644);
  for (const script of scripts) {
    put(
      join(stage, 'DEBIAN', script),
      readFileSync(join(options.root, 'packaging', program.name, script)),
      0o755,
    );
  }
}

/** Gives folders their mode and everything the same time, so that nothing of this machine is in the package. */
function settle(stage: string, epochSeconds: number): void {
  const names = readdirSync(stage, { recursive: true, withFileTypes: true });
  for (const entry of names) if (entry.isDirectory()) chmodSync(join(entry.parentPath, entry.name), 0o755);
  chmodSync(stage, 0o755);
  for (const entry of names) lutimesSync(join(entry.parentPath, entry.name), epochSeconds, epochSeconds);
  lutimesSync(stage, epochSeconds, epochSeconds);
}

/** Paths of all files below a folder, relative to it, in one order everywhere. */
function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort();
}

function put(path: string, content: string | Uint8Array, mode: number): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  chmodSync(path, mode);
}

/** Without a time in its header. */
function gzip(text: string): Uint8Array {
  return gzipSync(text, { level: 9 });
}

function run(command: string, args: string[], epochSeconds: number): void {
  const env = { ...process.env, SOURCE_DATE_EPOCH: String(epochSeconds) };
  const { status, stderr, error } = spawnSync(command, args, { env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} failed: ${error?.message ?? stderr}`);
}

/** The page as roff. */
async function renderManual(
  program: PackagedProgram,
  { root, version, epochSeconds }: { root: string; version: string; epochSeconds: number },
): Promise<string> {
  const { name, summary } = program;
  const { section } = program.manual;
  const date = new Date(epochSeconds * 1000).toISOString().slice(0, 10);
  const head = [
    `.TH ${name.toUpperCase()} ${section} "${date}" "svc ${version}" "svc"`,
    '.SH NAME',
    `${escapeRoff(name)} \\- ${escapeRoff(summary)}`,
  ];
  const text = readFileSync(join(root, 'packaging', name, `manual.${section}`), 'utf8').trimEnd();
  const settings = (await program.manual.settings()).flatMap((setting) => {
    const unit = setting.unit ? ` Unit: ${setting.unit}.` : '';
    return [
      '.TP',
      `.B ${escapeRoff(setting.name)}`,
      escapeRoff(`${setting.sentence}${unit} Default: ${setting.defaultText}.`),
    ];
  });
  return `${[...head, text, ...settings].join('\n')}\n`;
}

function escapeRoff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^([.'])/, '\\&$1');
}
