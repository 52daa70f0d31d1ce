/** What a program needs at run time: its modules, followed from the entry, and the npm packages that they name. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { parseSync } from 'oxc-parser';

export interface NeededFiles {
  /** Paths relative to the project. */
  modules: string[];
  /** Folders below node_modules. */
  packages: string[];
}

interface PackageFile {
  imports: Record<string, string>;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
}

const readJson = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as PackageFile;

/** Follows imports, dynamic imports and `new URL('./x.ts', import.meta.url)` (or `./x.bpf.o`) from the entry. */
export function collectModules(root: string, entry: string): NeededFiles {
  const aliases = Object.entries(readJson(join(root, 'package.json')).imports);
  const modules = new Set<string>();
  const packages = new Set<string>();
  const waiting = [entry];
  for (let file = waiting.pop(); file; file = waiting.pop()) {
    if (modules.has(file)) continue;
    modules.add(file);
    for (const specifier of specifiersIn(root, file)) {
      const alias = aliases.find(([from]) => specifier.startsWith(from.slice(0, -1)));
      if (specifier.startsWith('.')) waiting.push(normalize(join(dirname(file), specifier)));
      else if (alias)
        waiting.push(normalize(specifier.replace(alias[0].slice(0, -1), alias[1].slice(0, -1))));
      else if (!specifier.startsWith('node:')) addPackage(root, packageName(specifier), packages);
    }
  }
  return { modules: [...modules].sort(), packages: [...packages].sort() };
}

function specifiersIn(root: string, file: string): string[] {
  // A program for the kernel needs nothing else.
  if (file.endsWith('.bpf.o')) return [];
  const text = readFileSync(join(root, file), 'utf8');
  const parsed = parseSync(file, text);
  if (parsed.errors.length > 0) throw new Error(`${file} can't be parsed: ${parsed.errors[0]!.message}`);
  // An `import type` is gone at run time; one with types in its braces leaves an import behind.
  const isKept = (start: number) => !/^(import|export)\s+type\b/.test(text.slice(start, start + 40));
  const { staticImports, staticExports, dynamicImports } = parsed.module;
  const found = staticImports.filter((one) => isKept(one.start)).map((one) => one.moduleRequest.value);
  for (const one of staticExports) {
    if (!isKept(one.start)) continue;
    for (const entry of one.entries) if (entry.moduleRequest) found.push(entry.moduleRequest.value);
  }
  for (const { moduleRequest } of dynamicImports) {
    const literal = /^\s*['"]([^'"]+)['"]\s*$/.exec(text.slice(moduleRequest.start, moduleRequest.end));
    if (!literal) throw new Error(`${file} imports a computed name, which can't be packaged`);
    found.push(literal[1]!);
  }
  for (const match of text.matchAll(/new URL\(\s*'(\.[^']+\.(?:[tj]s|bpf\.o))',\s*import\.meta\.url/g))
    found.push(match[1]!);
  return found;
}

function packageName(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

/** The package with what it depends on; of optional parts those that are installed, which are this machine's. */
function addPackage(root: string, name: string, packages: Set<string>): void {
  if (packages.has(name)) return;
  const path = join(root, 'node_modules', name, 'package.json');
  if (!existsSync(path)) throw new Error(`the package ${name} is not installed`);
  packages.add(name);
  const { dependencies = {}, optionalDependencies = {} } = readJson(path);
  for (const needed of Object.keys(dependencies)) addPackage(root, needed, packages);
  for (const optional of Object.keys(optionalDependencies)) {
    if (existsSync(join(root, 'node_modules', optional))) addPackage(root, optional, packages);
  }
}
