/** Reads a module with oxc: its imports with their targets, its SQL texts and the sizes of its functions. */
import { readFileSync } from 'node:fs';
import { parseSync } from 'oxc-parser';
import { type FunctionSize, isStore, type Module, type Place, placeOf } from './module.ts';

const sqlPattern =
  /^\s*(select\b[\s\S]*\bfrom\b|insert\s+into\b|update\s+\S+(\s+as\s+\S+)?\s+set\b|delete\s+from\b|(create|alter|drop)\s+(table|index)\b|with\s+\w+\s+as\s*\()/;

/** Part of the comment above a function that may be long. */
const lengthReason = 'Over 80 lines: ';

export function readModule(root: string, file: string): Module {
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
  const texts = findTexts(parsed.program);
  return {
    place,
    imports: specifiers.map((specifier) => ({
      ...specifier,
      target: resolveSpecifier(place, specifier.text),
    })),
    sqlTexts: texts
      .filter((one) => sqlPattern.test(one))
      .map((one) => one.trim().split('\n')[0]!.slice(0, 60)),
    storeTexts: isStore(file) ? texts : [],
    builderTables: findBuilderTables(parsed.program),
    declaredTables: file.endsWith('/tables.ts') ? texts : [],
    lines: text.replace(/\n$/, '').split('\n').length,
    functions: findFunctions(parsed.program, text),
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

interface Node {
  type: string;
  start: number;
  end: number;
  [key: string]: unknown;
}

/** Calls `visit` with every node below `value` and the result that it returned for the node around it. */
function walk<T>(value: unknown, around: T, visit: (node: Node, around: T) => T): void {
  if (Array.isArray(value)) {
    for (const child of value) walk(child, around, visit);
    return;
  }
  if (value === null || typeof value !== 'object') return;
  const inner = typeof (value as Node).type === 'string' ? visit(value as Node, around) : around;
  for (const child of Object.values(value)) walk(child, inner, visit);
}

/** Text literals and templates; an inserted value stands as `?`. */
function findTexts(program: unknown): string[] {
  const found: string[] = [];
  walk(program, null, (node) => {
    const { type, value } = node;
    if (type === 'Literal' && typeof value === 'string' && node.raw !== undefined) found.push(value);
    if (type === 'TemplateLiteral') {
      const quasis = node.quasis as { value: { cooked: string | null } }[];
      found.push(quasis.map((quasi) => quasi.value.cooked ?? '').join('?'));
    }
    return null;
  });
  return found;
}

/** Calls that name a table by a text of its own, and which argument it is. */
const builderCalls: Readonly<Record<string, number>> = {
  copyRows: 1,
  table: 0,
  selectFrom: 0,
  insertInto: 0,
  replaceInto: 0,
  updateTable: 0,
  deleteFrom: 0,
  mergeInto: 0,
  innerJoin: 0,
  leftJoin: 0,
  rightJoin: 0,
  fullJoin: 0,
  crossJoin: 0,
};

function findBuilderTables(program: unknown): string[] {
  const found: string[] = [];
  walk(program, null, (node) => {
    if (node.type !== 'CallExpression') return null;
    const callee = node.callee as { name?: string; property?: { name?: string } };
    const position = builderCalls[callee.property?.name ?? callee.name ?? ''];
    const argument = position === undefined ? undefined : (node.arguments as Node[])[position];
    if (typeof argument?.value === 'string') found.push(argument.value.split(' ')[0]!);
    return null;
  });
  return found;
}

const functionTypes = ['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'];

interface Around {
  /** The name that a variable, property or method gives to the value in it. */
  given: string | null;
  /** The nearest function around, and the statement that the comment above a function belongs to. */
  inside: string;
  statementStart: number;
}

function findFunctions(program: unknown, text: string): FunctionSize[] {
  const found: FunctionSize[] = [];
  walk<Around>(program, { given: null, inside: 'the module', statementStart: 0 }, (node, around) => {
    const isStatement = /(Statement|Declaration|Definition|Property)$/.test(node.type);
    const statementStart = isStatement && around.given !== 'export' ? node.start : around.statementStart;
    // The comment stands above `export`, not between it and the declaration.
    if (node.type.startsWith('Export')) return { ...around, given: 'export', statementStart };
    if (!functionTypes.includes(node.type) || !node.body)
      return { ...around, given: nameGivenBy(node), statementStart };
    const own = (node.id as { name: string } | null)?.name ?? around.given;
    const name = own ?? `a callback in ${around.inside}`;
    const comment = /(\/\*\*?(?:(?!\*\/)[\s\S])*\*\/|(?:\/\/[^\n]*\n\s*)+)\s*$/.exec(
      text.slice(0, statementStart),
    );
    found.push({
      name,
      lines: text.slice(node.start, node.end).split('\n').length,
      isExempt: comment?.[0].includes(lengthReason) ?? false,
    });
    return { given: null, inside: name, statementStart };
  });
  return found;
}

function nameGivenBy(node: Node): string | null {
  const named = (node.type === 'VariableDeclarator' ? node.id : node.key) as { name?: string } | undefined;
  return named?.name ?? null;
}
