/**
 * Every call in a program's sources that writes to the audit trail. A proof takes them out one by one
 * (`take-out-calls.ts`).
 */
import { globSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));

export interface RecordCall {
  /** Path from the root of the repository. */
  file: string;
  line: number;
  start: number;
  end: number;
  /** What stands in its place when it is taken out. */
  without: string;
}

/**
 * Calls of `record`, and of functions that do nothing but call it (`recordKey`, `noteOwn`), in one program. A helper's
 * own call of `record` stands for all of its callers and is not taken out by itself.
 */
export function findRecordCalls(program: string): RecordCall[] {
  const files = globSync(`${program}/**/*.ts`, { cwd: root })
    .filter((file) => !/\.(test|prove|bench)\.ts$|\/testing\//.test(file))
    .sort();
  const texts = files.map((file) => ({ file, text: readFileSync(`${root}${file}`, 'utf8') }));
  const helpers = new Set(
    texts.flatMap(({ text }) =>
      [...text.matchAll(/function ((?:record|note)[A-Z]\w*)\(/g)]
        .filter((match) => {
          const end = text.indexOf('\n}\n', match.index);
          return /[^\w.]record\(\s*(tx|trx|transaction)/.test(text.slice(match.index, end));
        })
        .map((match) => match[1]!),
    ),
  );
  return texts.flatMap(({ file, text }) => {
    const found: RecordCall[] = [];
    for (const match of text.matchAll(/(?<![\w.])(record(?:ed|[A-Z]\w*)?|note[A-Z]\w*)\(/g)) {
      const name = match[1]!;
      const before = text.slice(0, match.index);
      // A method's signature, not a call.
      if (/^\w+\??: /.test(text.slice(match.index + match[0].length).trimStart())) continue;
      if (/function $/.test(before) || (!['record', 'recorded'].includes(name) && !helpers.has(name)))
        continue;
      if (name.startsWith('recorded') && !text.includes('#service-kit/audit/')) continue;
      if (name === 'record' && !text.includes('#service-kit/audit/')) continue;
      const around = before.slice(before.lastIndexOf('\nfunction ') + 1);
      const isInHelper = [...helpers].some(
        (helper) =>
          lastFunction(before) === helper &&
          !/\n}\n/.test(before.slice(before.lastIndexOf(`function ${helper}(`))),
      );
      if (isInHelper || around === '') continue;
      const open = match.index + match[0].length - 1;
      const line = before.split('\n').length;
      // `recorded` makes the change as well, which stays.
      if (name === 'recorded')
        found.push({ file, line, start: match.index, end: open, without: changeAlone });
      else
        found.push({
          file,
          line,
          start: match.index,
          end: closing(text, open),
          without: 'Promise.resolve()',
        });
    }
    return found;
  });
}

const changeAlone =
  '((db, _actor, _entry, change) => db.isTransaction ? change(db) : db.transaction().execute(change))';

function lastFunction(text: string): string | null {
  return [...text.matchAll(/function (\w+)[<(]/g)].at(-1)?.[1] ?? null;
}

/** The index after the parenthesis that closes the one at `open`; texts in quotes are passed over. */
function closing(text: string, open: number): number {
  let depth = 0;
  for (let at = open; at < text.length; at += 1) {
    const character = text[at]!;
    if (character === "'" || character === '`') {
      do at += 1;
      while (text[at] !== character || text[at - 1] === '\\');
    } else if ('([{'.includes(character)) depth += 1;
    else if (')]}'.includes(character)) {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  throw new Error('a call without its end');
}

/** How a call is named in a report. */
export const nameOf = (call: RecordCall) => `${relative('.', call.file)}:${call.line}`;
