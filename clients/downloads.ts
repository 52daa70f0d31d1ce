/**
 * The clients as an installation hands them out, made of the sources beside this file and of its own OpenAPI document:
 * JavaScript by the types that Node.js strips, so nothing but Node.js is needed to make them. The same sources give the
 * same bytes.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { crc32, deflateRawSync, gzipSync } from 'node:zlib';
import { type Document, describeCalls } from './calls.ts';
import { generatePython } from './python/generate.ts';

export interface Download {
  kind: 'typescript' | 'svcctl' | 'python' | 'ansible';
  /** Name of the file, with its version. */
  file: string;
  title: string;
  /** One sentence. */
  summary: string;
  version: string;
  mediaType: string;
  bytes: Buffer;
  sha256: string;
}

const folder = fileURLToPath(new URL('.', import.meta.url));
/** What the JavaScript needs: `AbortSignal.any` is the newest thing that it uses. */
const nodeVersions = '>=20.3';

/** Every client; `document` has its shared parts in place. */
export function buildDownloads(document: Document): Download[] {
  const { version, license } = JSON.parse(readFileSync(join(folder, '../package.json'), 'utf8')) as Record<
    'version' | 'license',
    string
  >;
  const made: Omit<Download, 'version' | 'sha256'>[] = [
    {
      kind: 'typescript',
      file: `virtual-servers-client-${version}.tgz`,
      title: 'TypeScript and JavaScript',
      summary: 'An npm package without dependencies, for Node.js 20.3 and newer and for browsers.',
      mediaType: 'application/gzip',
      bytes: packTypescript(version, license),
    },
    {
      kind: 'svcctl',
      file: `svcctl-${version}`,
      title: 'Command line and MCP server',
      summary:
        'svcctl: one file for Node.js 20.3 and newer, with a command for each call. `svcctl mcp` offers the calls to models, as the Model Context Protocol has it.',
      mediaType: 'text/javascript; charset=utf-8',
      bytes: Buffer.from(bundleCommandLine(document, version)),
    },
    {
      kind: 'python',
      file: `virtual_servers-${version}-py3-none-any.whl`,
      title: 'Python',
      summary: 'A wheel without dependencies, for Python 3.11 and newer, with types.',
      mediaType: 'application/zip',
      bytes: packPython(document, version),
    },
    {
      kind: 'ansible',
      file: `virtual_servers-cloud-${version}.tar.gz`,
      title: 'Ansible',
      summary: 'A collection for ansible-core 2.14 and newer: a module for servers, and an inventory plugin.',
      mediaType: 'application/gzip',
      bytes: packAnsible(document, version),
    },
  ];
  return made.map((one) => ({
    ...one,
    version,
    sha256: createHash('sha256').update(one.bytes).digest('hex'),
  }));
}

/** The npm package: JavaScript, the TypeScript that it was made of as its types, the README and a manifest. */
function packTypescript(version: string, license: string): Buffer {
  const manifest = {
    name: 'virtual-servers-client',
    version,
    description: 'A client of the customer API, without dependencies.',
    license,
    type: 'module',
    engines: { node: nodeVersions },
    exports: { '.': { types: './dist/index.ts', default: './dist/index.js' } },
    types: './dist/index.ts',
    files: ['dist', 'README.md'],
    sideEffects: false,
  };
  const home = join(folder, 'typescript');
  const sources = modulesOf(join(home, 'index.ts'), importedTypes).map((path) => {
    const text = readFileSync(path, 'utf8').replaceAll(/(from\s*'\.[^']*)\.ts'/g, "$1.js'");
    return { name: `dist/${relative(home, path)}`, text };
  });
  const files = [
    { name: 'package.json', text: `${JSON.stringify(manifest, null, 2)}\n` },
    { name: 'README.md', text: readFileSync(join(home, 'README.md'), 'utf8') },
    ...sources.flatMap(({ name, text }) => [
      { name, text },
      { name: name.replace(/\.ts$/, '.js'), text: stripTypes(text) },
    ]),
  ];
  return tarball(files, 'package/');
}

const imported = /^(?:import|export)\s*(?:\{[^}]*\}|\*)\s*from\s*'([^']+)';/gm;
const importedTypes = /^(?:import|export)\s*(?:type\s*)?(?:\{[^}]*\}|\*)\s*from\s*'([^']+)';/gm;

/** The modules that the entry needs, each behind those that it imports. */
function modulesOf(entry: string, pattern: RegExp): string[] {
  const found = new Set<string>();
  const visited = new Set<string>();
  const visit = (path: string) => {
    if (visited.has(path)) return;
    visited.add(path);
    const text = pattern === imported ? stripTypes(readFileSync(path, 'utf8')) : readFileSync(path, 'utf8');
    for (const [, target] of text.matchAll(pattern))
      if (target!.startsWith('.')) visit(join(dirname(path), target!));
    found.add(path);
  };
  visit(entry);
  return [...found];
}

/** JavaScript; the lines that held nothing but types are left out, and no text of these sources has empty lines. */
const stripTypes = (text: string) =>
  stripTypeScriptTypes(text)
    .split('\n')
    .filter((line, index, lines) => line.trim() !== '' || lines[index - 1]?.trim() !== '')
    .join('\n');

/** One CommonJS file, which runs under any name: the modules behind one another, in one scope. */
function bundleCommandLine(document: Document, version: string): string {
  const builtins = new Map<string, Set<string>>();
  const texts = modulesOf(join(folder, 'svcctl/svcctl.ts'), imported).map((path) =>
    stripTypes(readFileSync(path, 'utf8'))
      .replaceAll(/^import\s*\{([^}]*)\}\s*from\s*'([^']+)';/gm, (_, names: string, from: string) => {
        if (from.startsWith('.')) return '';
        const known = builtins.get(from) ?? new Set();
        builtins.set(from, known);
        for (const name of names.split(',').map((one) => one.trim().replace(' as ', ': ')))
          if (name !== '') known.add(name);
        return '';
      })
      .replaceAll(/^export (?=(?:async )?(?:function|const|class))/gm, ''),
  );
  return `#!/usr/bin/env node
'use strict';
// svcctl ${version}: the command line of the customer API. Run "svcctl help".
if (typeof AbortSignal.any !== 'function') {
  console.error('svcctl needs Node.js 20.3 or newer, this is ' + process.version);
  process.exit(1);
}
${[...builtins].map(([from, names]) => `const { ${[...names].sort().join(', ')} } = require('${from}');`).join('\n')}
${texts.join('\n')}
const calls = ${JSON.stringify(describeCalls(document))};
runCommand(calls, ${JSON.stringify(version)}, process.argv.slice(2)).then((code) => {
  process.exitCode = code;
});
`;
}

/** A wheel: what pip installs without building anything. */
function packPython(document: Document, version: string): Buffer {
  const information = `virtual_servers-${version}.dist-info`;
  const files: [name: string, text: string][] = [
    ['virtual_servers/__init__.py', generatePython(document, version)],
    ['virtual_servers/py.typed', ''],
    [
      `${information}/METADATA`,
      `Metadata-Version: 2.1\nName: virtual-servers\nVersion: ${version}\nSummary: A client of the customer API, without dependencies.\nRequires-Python: >=3.11\n`,
    ],
    [
      `${information}/WHEEL`,
      'Wheel-Version: 1.0\nGenerator: svc\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
    ],
  ];
  const record = files.map(([name, text]) => {
    const digest = createHash('sha256').update(text).digest('base64url');
    return `${name},sha256=${digest},${Buffer.byteLength(text)}\n`;
  });
  return zip([...files, [`${information}/RECORD`, `${record.join('')}${information}/RECORD,,\n`]]);
}

/** The collection `virtual_servers.cloud`, as ansible-galaxy installs it. */
function packAnsible(document: Document, version: string): Buffer {
  const source = (name: string) => readFileSync(join(folder, 'ansible', name), 'utf8');
  const files = [
    { name: 'README.md', text: source('README.md') },
    { name: 'meta/runtime.yml', text: "---\nrequires_ansible: '>=2.14.0'\n" },
    { name: 'plugins/inventory/servers.py', text: source('servers.py') },
    { name: 'plugins/modules/server.py', text: source('server.py') },
    { name: 'plugins/module_utils/virtual_servers.py', text: generatePython(document, version) },
  ];
  const digestOf = (text: string) => createHash('sha256').update(text).digest('hex');
  const entry = (name: string, ftype: 'dir' | 'file', sha256: string | null) => ({
    ...{ name, ftype, chksum_type: sha256 && 'sha256', chksum_sha256: sha256, format: 1 },
  });
  const list = JSON.stringify({
    files: [entry('.', 'dir', null), ...files.map(({ name, text }) => entry(name, 'file', digestOf(text)))],
    format: 1,
  });
  const manifest = JSON.stringify({
    collection_info: {
      ...{
        namespace: 'virtual_servers',
        name: 'cloud',
        version,
        authors: ['The provider'],
        readme: 'README.md',
      },
      ...{ tags: ['cloud'], description: 'Servers of the customer API.', license: [], license_file: null },
      ...{ dependencies: {}, repository: null, documentation: null, homepage: null, issues: null },
    },
    file_manifest_file: entry('FILES.json', 'file', digestOf(list)),
    format: 1,
  });
  return tarball(
    [{ name: 'MANIFEST.json', text: manifest }, { name: 'FILES.json', text: list }, ...files],
    '',
  );
}

/** A zip archive; every file is of 1980, the first day that its format knows. */
function zip(files: readonly [name: string, text: string][]): Buffer {
  const locals: Buffer[] = [];
  const central: Buffer[] = [];
  let offset = 0;
  for (const [name, text] of files) {
    const bytes = Buffer.from(text);
    const packed = deflateRawSync(bytes, { level: 9 });
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(0x0800, 2);
    common.writeUInt16LE(8, 4);
    common.writeUInt16LE(0x21, 8);
    common.writeUInt32LE(crc32(bytes), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(bytes.length, 18);
    common.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, Buffer.from(name), packed]);
    const attributes = Buffer.alloc(14);
    attributes.writeUInt32LE(0o100644 * 0x10000, 6);
    attributes.writeUInt32LE(offset, 10);
    central.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\x03'), common, attributes, Buffer.from(name)]));
    locals.push(local);
    offset += local.length;
  }
  const directory = Buffer.concat(central);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06');
  end.writeUInt16LE(files.length, 8);
  end.writeUInt16LE(files.length, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...locals, directory, end]);
}

/** A gzipped tar archive, every file at one fixed time. */
function tarball(files: readonly { name: string; text: string }[], root: string): Buffer {
  const blocks = files.flatMap(({ name, text }) => {
    const bytes = Buffer.from(text);
    const rest = Buffer.alloc((512 - (bytes.length % 512)) % 512);
    return [tarHeader(`${root}${name}`, bytes.length), bytes, rest];
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(1_024)]), { level: 9 });
}

/** POSIX ustar. */
function tarHeader(name: string, size: number): Buffer {
  const header = Buffer.alloc(512);
  const octal = (value: number, length: number) => `${value.toString(8).padStart(length - 1, '0')}\0`;
  header.write(name, 0, 100);
  header.write(octal(0o644, 8), 100);
  header.write(octal(0, 8), 108);
  header.write(octal(0, 8), 116);
  header.write(octal(size, 12), 124);
  header.write(octal(499_162_500, 12), 136);
  header.write('        ', 148);
  header.write('0', 156);
  header.write('ustar\x0000', 257);
  header.write(
    `${header
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148,
  );
  return header;
}
