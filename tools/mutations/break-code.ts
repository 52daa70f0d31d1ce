/** Ways to break code by its syntax: each operator, condition, number, statement and SQL comparison of a file. */
import { type Node, parseSync, visitorKeys } from 'oxc-parser';

/** One way to break a file: the text from `start` to `end` (in UTF-16 units) becomes `replacement`. */
export interface Break {
  start: number;
  end: number;
  replacement: string;
}

const otherOperators: Readonly<Record<string, readonly string[]>> = {
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '===': ['!=='],
  '!==': ['==='],
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '%': ['*'],
  '&&': ['||'],
  '||': ['&&'],
};

const otherSql: readonly (readonly [RegExp, string])[] = [
  [/ <= /g, ' < '],
  [/ >= /g, ' > '],
  [/ < /g, ' <= '],
  [/ > /g, ' >= '],
  [/ = /g, ' <> '],
  [/ <> /g, ' = '],
  [/\band\b/g, 'or'],
  [/\bis null\b/g, 'is not null'],
  [/\bis not null\b/g, 'is null'],
  [/\bnot exists\b/g, 'exists'],
  [/\bdesc\b/g, 'asc'],
  [/\bfor update\b(?! skip)/g, ''],
];
const sqlPattern = /\b(select|insert into|update|delete from)\b[\s\S]*\b(where|from|set|values)\b/;
/** Statements that only tell people or machines what happened. */
const tellingPattern = /^(await )?(this\.#?)?(\w+\.)*(reporter|log|logger|console)\.\w+\(|^void /;

/** All ways, in the order of the text. Types, imports and texts of messages are none. */
export function findBreaks(file: string, text: string): Break[] {
  const breaks: Break[] = [];
  const add = (start: number, end: number, replacement: string) => breaks.push({ start, end, replacement });
  const visit = (node: Node): void => {
    if (
      /^TS(?!As|NonNull|Satisfies)|^Import|^Export(All|Named)/.test(node.type) &&
      !('declaration' in node && node.declaration)
    )
      return;
    switch (node.type) {
      case 'BinaryExpression':
      case 'LogicalExpression': {
        const at = text.indexOf(node.operator, node.left.end);
        for (const other of otherOperators[node.operator] ?? []) add(at, at + node.operator.length, other);
        // Without `?? null` there is a type error, or PostgreSQL gets its null all the same.
        if (node.operator === '??' && text.slice(node.right.start, node.right.end) !== 'null')
          add(node.left.end, node.end, '');
        break;
      }
      case 'UnaryExpression':
        if (node.operator === '!') add(node.start, node.start + 1, '');
        break;
      case 'IfStatement':
      case 'ConditionalExpression':
        add(node.test.start, node.test.end, 'true');
        add(node.test.start, node.test.end, 'false');
        break;
      case 'Literal':
        if (typeof node.value === 'number') add(node.start, node.end, `${node.value + 1}`);
        if (typeof node.value === 'boolean') add(node.start, node.end, `${!node.value}`);
        break;
      case 'ExpressionStatement': {
        const { expression } = node;
        const isCall =
          expression.type === 'CallExpression' ||
          (expression.type === 'AwaitExpression' && expression.argument.type === 'CallExpression');
        if (isCall && !tellingPattern.test(text.slice(node.start, node.end))) add(node.start, node.end, ';');
        break;
      }
      case 'TemplateLiteral':
        if (sqlPattern.test(text.slice(node.start, node.end)))
          for (const { start, end } of node.quasis)
            for (const [pattern, other] of otherSql)
              for (const match of text.slice(start, end).matchAll(pattern))
                add(start + match.index, start + match.index + match[0].length, other);
        break;
      default:
    }
    for (const key of visitorKeys[node.type] ?? []) {
      const child = (node as unknown as Record<string, Node | (Node | null)[] | null>)[key];
      for (const one of Array.isArray(child) ? child : [child]) if (one) visit(one);
    }
  };
  const { program, errors } = parseSync(file, text);
  if (errors.length > 0) throw new Error(`${file} does not parse: ${errors[0]!.message}`);
  visit(program);
  return breaks.sort((a, b) => a.start - b.start || a.end - b.end);
}

export const breakText = (text: string, { start, end, replacement }: Break) =>
  `${text.slice(0, start)}${replacement}${text.slice(end)}`;

/** A file that does not parse would be noticed by any test. */
export const parses = (file: string, text: string) => parseSync(file, text).errors.length === 0;
