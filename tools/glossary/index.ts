/**
 * Refuses the terms that docs/glossary.md lists as not to use, in code, pages and documentation.
 *
 * The glossary is the only list: every term in code style in the last column of its tables is refused. A glossary
 * without such terms is an error, because a check that reads nothing must not pass.
 */
import type { Tree } from '../tree.ts';

export interface GlossaryFault {
  file: string;
  what: string;
}

const glossaryFile = 'docs/glossary.md';
const checkedEndings = /\.(ts|js|css|md|sql|sh)$/;
/** Text that never changes, is written by a program from checked text, or is a record of the past. */
const recordPattern =
  /^(CHANGELOG\.md|docs\/glossary\.md|tools\/glossary\/|clients\/typescript\/generated\/)|\/migrations\//;

/** The terms that the glossary refuses, in lower case. Throws when it has none. */
export function readRefusedTerms(glossary: string): string[] {
  const terms = glossary
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .flatMap(
      (line) =>
        line
          .split('|')
          .at(-2)!
          .match(/`[^`]+`/g) ?? [],
    )
    .map((term) => term.slice(1, -1).toLowerCase());
  if (terms.length === 0) throw new Error(`${glossaryFile} lists no term that is not to be used`);
  return [...new Set(terms)];
}

/** Every use of a term in the text. A term may continue on the next line of a comment. */
export function findRefusedTerms(text: string, terms: readonly string[]): { line: number; term: string }[] {
  const pattern = new RegExp(`(?<![a-z])(${terms.map(toPattern).join('|')})`, 'gi');
  return [...text.matchAll(pattern)].map((match) => ({
    line: text.slice(0, match.index).split('\n').length,
    term: match[0].replace(/[\s*/]+/g, ' '),
  }));
}

function toPattern(term: string): string {
  return term
    .split(' ')
    .map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    .join('[\\s*/]+');
}

/** Checks the files against the glossary of the tree. `names`: file → texts that are ignored in it. */
export function checkGlossary(
  tree: Tree,
  names: Readonly<Record<string, readonly string[]>> = namesOfOthers,
): GlossaryFault[] {
  const terms = readRefusedTerms(tree.read(glossaryFile));
  const faults: GlossaryFault[] = [];
  for (const file of tree.files.filter((each) => checkedEndings.test(each) && !recordPattern.test(each))) {
    let text = tree.read(file);
    for (const name of names[file] ?? []) text = text.replaceAll(name, '');
    for (const { line, term } of findRefusedTerms(text, terms))
      faults.push({ file: `${file}:${line}`, what: `write another term for "${term}"` });
  }
  return faults;
}

/** Texts in which a refused term is a name of another system. Each is ignored where it appears in the file. */
const namesOfOthers: Readonly<Record<string, readonly string[]>> = {
  'operations/hypervisors/testing/libvirt-world.ts': ['s/^nobody:'],
  'service-kit/postgres/embedded.test.ts': ['/^nobody:'],
  'tools/package/package.test.ts': ['asNobody', '--reuid nobody'],
};
