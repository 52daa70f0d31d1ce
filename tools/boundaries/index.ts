/**
 * The import law, executable: reads every module's imports and SQL texts and names what breaks a rule.
 *
 * It parses with oxc, because a checker that reads nothing must not pass: it throws when it finds too few modules.
 */
import { readFileSync } from 'node:fs';
import { parseSync } from 'oxc-parser';
import { type Module, type Place, placeOf } from './module.ts';
import { checkCycles, rules } from './rules.ts';

export interface Offence {
  rule: string;
  file: string;
  what: string;
}

const sqlPattern =
  /^\s*(select\b[\s\S]*\bfrom\b|insert\s+into\b|update\s+\S+(\s+as\s+\S+)?\s+set\b|delete\s+from\b|(create|alter|drop)\s+(table|index)\b|with\s+\w+\s+as\s*\()/;

/** Checks the files (paths relative to `root`); throws when fewer than `modulesMin` could be read. */
export function checkBoundaries(root: string, files: readonly string[], modulesMin: number): Offence[] {
  const sources = files.filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'));
  const modules = sources.map((file) => readModule(root, file));
  const importCount = modules.reduce((sum, module) => sum + module.imports.length, 0);
  if (modules.length < modulesMin || importCount === 0) {
    throw new Error(
      `boundaries: only ${modules.length} modules with ${importCount} imports were read; the check is broken`,
    );
  }
  const offences: Offence[] = [];
  for (const module of modules) {
    for (const rule of rules) {
      for (const what of rule.faults(module))
        offences.push({ rule: rule.name, file: module.place.path, what });
    }
  }
  return [...offences, ...checkCycles(modules)];
}

function readModule(root: string, file: string): Module {
  const text = readFileSync(`${root}/${file}`, 'utf8');
  const parsed = parseSync(file, text);
  if (parsed.errors.length > 0)
    throw new Error(`boundaries: ${file} can't be parsed: ${parsed.errors[0]!.message}`);
  const specifiers: { text: string; names: string[]; isTypeOnly: boolean }[] = [];
  for (const entry of parsed.module.staticImports) {
    specifiers.push({
      text: entry.moduleRequest.value,
      names: entry.entries.map((name) => name.importName.name ?? name.importName.kind),
      isTypeOnly: entry.entries.length > 0 && entry.entries.every((name) => name.isType),
    });
  }
  for (const entry of parsed.module.staticExports.flatMap((statement) => statement.entries)) {
    if (entry.moduleRequest)
      specifiers.push({ text: entry.moduleRequest.value, names: [], isTypeOnly: entry.isType });
  }
  for (const entry of parsed.module.dynamicImports) {
    const literal = /^\s*['"]([^'"]+)['"]\s*$/.exec(
      text.slice(entry.moduleRequest.start, entry.moduleRequest.end),
    );
    if (literal) specifiers.push({ text: literal[1]!, names: [], isTypeOnly: false });
  }
  const place = placeOf(file);
  return {
    place,
    imports: specifiers.map((specifier) => ({
      ...specifier,
      target: resolveSpecifier(place, specifier.text),
    })),
    sqlTexts: findSqlTexts(parsed.program),
  };
}

/** The place that a specifier names within the repository; null for packages and Node's own modules. */
function resolveSpecifier(from: Place, specifier: string): Place | null {
  if (specifier.startsWith('#')) return placeOf(specifier.slice(1));
  if (!specifier.startsWith('.')) return null;
  const parts = from.path.split('/').slice(0, -1);
  for (const step of specifier.split('/')) {
    if (step === '..') parts.pop();
    else if (step !== '.') parts.push(step);
  }
  return placeOf(parts.join('/'));
}

function findSqlTexts(program: unknown): string[] {
  const found: string[] = [];
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) {
      for (const child of node) visit(child);
      return;
    }
    if (node === null || typeof node !== 'object') return;
    const { type, value } = node as { type?: string; value?: unknown };
    if (type === 'Literal' && typeof value === 'string' && sqlPattern.test(value)) found.push(value);
    if (type === 'TemplateLiteral') {
      const quasis = (node as { quasis: { value: { cooked: string | null } }[] }).quasis;
      const text = quasis.map((quasi) => quasi.value.cooked ?? '').join('?');
      if (sqlPattern.test(text)) found.push(text);
    }
    for (const child of Object.values(node)) visit(child);
  };
  visit(program);
  return found.map((text) => text.trim().split('\n')[0]!.slice(0, 60));
}
