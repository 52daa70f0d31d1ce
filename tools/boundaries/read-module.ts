/** Reads a module with oxc: its imports with their targets, its SQL texts and its long functions. */
import { parseSync, visitorKeys } from 'oxc-parser';
import { functionLinesMax, isStore, type LongFunction, type Module, type Place, placeOf } from './module.ts';

const sqlPattern =
  /^\s*(select\b[\s\S]*\bfrom\b|insert\s+into\b|update\s+\S+(\s+as\s+\S+)?\s+set\b|delete\s+from\b|(create|alter|drop)\s+(table|index)\b|with\s+\w+\s+as\s*\()/;

/** Part of the comment above a function that may be long. */
const lengthReason = 'Over 120 lines: ';

export function readModule(file: string, text: string): Module {
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
  // No rule looks into tests, and making objects of what was parsed takes most of the time.
  const body = place.isTest ? nothing : readBody(parsed.program, text);
  return {
    place,
    imports: specifiers.map((specifier) => ({
      ...specifier,
      target: resolveSpecifier(place, specifier.text),
    })),
    sqlTexts: body.texts
      .filter((one) => sqlPattern.test(one))
      .map((one) => one.trim().split('\n')[0]!.slice(0, 60)),
    storeTexts: isStore(file) ? body.texts : [],
    builderTables: body.builderTables,
    lines: countLines(text.replace(/\n$/, '')),
    longFunctions: body.longFunctions,
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

interface Body {
  /** Text literals and templates; an inserted value stands as `?`. */
  texts: string[];
  /** The tables that calls name by a text of their own. */
  builderTables: string[];
  longFunctions: LongFunction[];
}

const nothing: Body = { texts: [], builderTables: [], longFunctions: [] };

/** Calls that name a table, and which argument it is. */
const builderCalls: ReadonlyMap<string, number> = new Map([
  ['copyRows', 1],
  ...[
    ...['table', 'selectFrom', 'insertInto', 'replaceInto', 'updateTable', 'deleteFrom', 'mergeInto'],
    ...['innerJoin', 'leftJoin', 'rightJoin', 'fullJoin', 'crossJoin'],
  ].map((name): [string, number] => [name, 0]),
]);

interface Around {
  /** The name that a variable, property or method gives to the value in it. */
  given: string | null;
  /** The nearest function around, and the statement that the comment above a function belongs to. */
  inside: string;
  statementStart: number;
}

function readBody(program: unknown, text: string): Body {
  const body: Body = { texts: [], builderTables: [], longFunctions: [] };
  const visit = (node: Node, around: Around): void => {
    // A module's name is no SQL.
    if (node.type === 'ImportDeclaration') return;
    readText(node, body);
    const inner = readFunction(node, around, text, body);
    for (const key of visitorKeys[node.type]!) {
      const child = node[key] as Node | (Node | null)[] | null | undefined;
      if (Array.isArray(child)) {
        for (const one of child) if (one !== null) visit(one, inner);
      } else if (child) visit(child, inner);
    }
  };
  visit(program as Node, { given: null, inside: 'the module', statementStart: 0 });
  return body;
}

function readText(node: Node, body: Body): void {
  if (node.type === 'Literal') {
    if (typeof node.value === 'string') body.texts.push(node.value);
  } else if (node.type === 'TemplateLiteral') {
    const quasis = node.quasis as { value: { cooked: string | null } }[];
    body.texts.push(quasis.map((quasi) => quasi.value.cooked ?? '').join('?'));
  } else if (node.type === 'CallExpression') {
    const callee = node.callee as { name?: string; property?: { name?: string } };
    const position = builderCalls.get(callee.property?.name ?? callee.name ?? '');
    const argument = position === undefined ? undefined : (node.arguments as Node[])[position];
    if (typeof argument?.value === 'string') body.builderTables.push(argument.value.split(' ')[0]!);
  }
}

const statementTypes = /(Statement|Declaration|Definition|Property)$/;
/** What documents the functions in a function does not make it long. */
const commentLines = /^\s*(\/\*\*|\*|\/\/).*\n/gm;
const functionTypes = ['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'];

/** What is around the nodes in this one; a function that is long is noted. */
function readFunction(node: Node, around: Around, text: string, body: Body): Around {
  const { type } = node;
  const isStatement = around.given !== 'export' && statementTypes.test(type);
  const statementStart = isStatement ? node.start : around.statementStart;
  // The comment stands above `export`, not between it and the declaration.
  if (type.startsWith('Export')) return { inside: around.inside, given: 'export', statementStart };
  if (!functionTypes.includes(type) || !node.body) {
    const named = (type === 'VariableDeclarator' ? node.id : node.key) as { name?: string } | undefined;
    return { inside: around.inside, given: named?.name ?? null, statementStart };
  }
  const own = (node.id as { name: string } | null)?.name ?? around.given;
  const name = own ?? `a callback in ${around.inside}`;
  const lines = countLines(text.slice(node.start, node.end).replaceAll(commentLines, ''));
  if (lines > functionLinesMax && !commentAbove(text, statementStart).includes(lengthReason))
    body.longFunctions.push({ name, lines });
  return { given: null, inside: name, statementStart };
}

function countLines(text: string): number {
  let lines = 1;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines += 1;
  return lines;
}

function commentAbove(text: string, start: number): string {
  const before = text.slice(0, start).trimEnd();
  if (before.endsWith('*/')) return before.slice(before.lastIndexOf('/*'));
  const lines = before.split('\n');
  return lines.slice(lines.findLastIndex((line) => !line.trimStart().startsWith('//')) + 1).join('\n');
}
