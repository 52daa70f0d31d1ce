/**
 * A software bill of materials (CycloneDX 1.6, JSON): what of others is in a package, with version, licence and digest
 * as the lockfile has them. The same sources give the same bytes, so nothing in it is of the moment or the machine.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

interface LockedPackage {
  version: string;
  integrity?: string;
  license?: string;
  dev?: boolean;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
}

export interface BillOptions {
  root: string;
  /** What it is the bill of. */
  name: string;
  version: string;
  epochSeconds: number;
  /** Folders below node_modules; absent: all that the programs may load. */
  packages?: readonly string[];
  /** Whether the pinned Node.js is part of it. */
  hasNode: boolean;
}

export interface Component {
  'bom-ref': string;
  type: 'library' | 'platform';
  name: string;
  version: string;
  purl: string;
  hashes: { alg: string; content: string }[];
  licenses: ({ license: { id: string } } | { license: { name: string } } | { expression: string })[];
}

export interface Bill {
  bomFormat: 'CycloneDX';
  specVersion: '1.6';
  serialNumber: string;
  version: 1;
  metadata: object;
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

/** Throws for a package that the lockfile does not name: it would be missing from the bill without a word. */
export function makeBill(options: BillOptions): Bill {
  const { root, name, version } = options;
  const { packages: locked } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, LockedPackage>;
  };
  const all = Object.keys(locked).filter((path) => path !== '' && !locked[path]!.dev);
  const chosen = options.packages?.map((one) => `node_modules/${one}`) ?? all;
  const components = new Map<string, Component>();
  const uses = new Map<string, Set<string>>();
  for (const path of chosen.sort()) {
    const found = locked[path];
    if (!found) throw new Error(`${path} is not in package-lock.json`);
    // A package may lie in several folders.
    const ref = refOf(path, found);
    components.set(ref, describe(nameOf(path), found));
    const { dependencies, optionalDependencies, peerDependencies } = found;
    const used = uses.get(ref) ?? new Set();
    uses.set(ref, used);
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })) {
      const place = resolve(path, name, locked);
      if (place !== null && chosen.includes(place)) used.add(refOf(place, locked[place]!));
    }
  }
  const list = [...components.values(), ...(options.hasNode ? [describeNode(root)] : [])];
  const ref = `${name}@${version}`;
  const dependencies = [
    { ref, dependsOn: list.map((one) => one['bom-ref']) },
    ...[...uses].map(([ref, used]) => ({ ref, dependsOn: [...used].sort() })),
  ];
  const body = {
    version: 1 as const,
    metadata: {
      timestamp: new Date(options.epochSeconds * 1000).toISOString(),
      component: { 'bom-ref': ref, type: 'application', name, version },
    },
    components: list,
    dependencies,
  };
  return { bomFormat: 'CycloneDX', specVersion: '1.6', serialNumber: serialOf(body), ...body };
}

/** The folder from which Node.js loads the package `name` for the one in `path`; null where it is not installed. */
function resolve(path: string, name: string, locked: Record<string, LockedPackage>): string | null {
  for (let from = path; ; from = from.slice(0, Math.max(0, from.lastIndexOf('/node_modules/')))) {
    const place = `${from === '' ? '' : `${from}/`}node_modules/${name}`;
    if (place in locked) return place;
    if (from === '') return null;
  }
}

const refOf = (path: string, { version }: LockedPackage) => `${nameOf(path)}@${version}`;

/** The package's name: nested folders hold another version of it. */
function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
}

function describe(name: string, { version, integrity, license }: LockedPackage): Component {
  const [algorithm, digest] = integrity?.split('-', 2) ?? [];
  return {
    'bom-ref': `${name}@${version}`,
    type: 'library',
    name,
    version,
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
    hashes:
      algorithm === 'sha512' && digest
        ? [{ alg: 'SHA-512', content: Buffer.from(digest, 'base64').toString('hex') }]
        : [],
    licenses: license === undefined ? [] : [licenseOf(license)],
  };
}

/** Identifiers that packages give and SPDX does not have. */
const spdxNames: Readonly<Record<string, string>> = { 'BSD-0-Clause': '0BSD' };

function licenseOf(license: string): Component['licenses'][number] {
  if (/[\s()]/.test(license)) return { expression: license };
  return { license: { id: spdxNames[license] ?? license } };
}

/** The binary that is packaged, by the digest of its own bytes. */
function describeNode(root: string): Component {
  const folder = join(root, 'node_modules', `node-linux-${process.arch}`);
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string };
  const content = createHash('sha256')
    .update(readFileSync(join(folder, 'bin/node')))
    .digest('hex');
  return {
    'bom-ref': `node@${version}`,
    type: 'platform',
    name: 'node',
    version,
    purl: `pkg:generic/node@${version}`,
    hashes: [{ alg: 'SHA-256', content }],
    licenses: [{ license: { id: 'MIT' } }],
  };
}

/** A UUID (version 8) of the content. */
function serialOf(body: object): string {
  const bytes = createHash('sha256').update(JSON.stringify(body)).digest().subarray(0, 16);
  bytes[6] = (bytes[6]! & 0x0f) | 0x80;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return `urn:uuid:${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
