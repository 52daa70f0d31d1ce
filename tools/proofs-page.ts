/**
 * Writes docs/proofs.md from docs/proofs.tsv, to which `npm run prove -- NAME --record` appends.
 *
 * usage: sh tools/with-node tools/proofs-page.ts
 */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const recordsFile = fileURLToPath(new URL('../docs/proofs.tsv', import.meta.url));
const pageFile = fileURLToPath(new URL('../docs/proofs.md', import.meta.url));

const columns = ['Proof', 'Claim', 'Result', 'Seed', 'Commit', 'Took', 'Planted bugs caught'];

const introduction = `# Proofs

A proof is a test's code with a large N: \`npm run prove -- NAME --n N --seed S\`. With no failure in N tries, the true rate is
below 3/N (95 %). A proof counts only if it catches the bugs planted for it. \`--record\` adds a run to the table, which this page
is made of (\`tools/proofs-page.ts\`). [about-proofs.md](about-proofs.md) says how single proofs work and what they found;
[mended-faults.md](mended-faults.md) names the test of each fault that was mended.
`;

/** One run of a proof, in the order of the columns. */
export type ProofRecord = readonly string[];

/** Adds a run to the records and to the page. */
export function recordProof(record: ProofRecord): void {
  appendFileSync(recordsFile, `${record.map((field) => field.replaceAll(/[\t\n]/g, ' ')).join('\t')}\n`);
  writeFileSync(pageFile, renderPage(readFileSync(recordsFile, 'utf8')));
}

/** The page of these records: a line for each run, fields divided by tabs. Throws for a line with other fields. */
export function renderPage(records: string): string {
  const lines = records.split('\n').filter((line) => line !== '');
  const rows = lines.map((line) => {
    const fields = line.split('\t');
    if (fields.length !== columns.length)
      throw new Error(
        `docs/proofs.tsv: "${fields[0]}" has ${fields.length} fields instead of ${columns.length}`,
      );
    return toRow(fields.map((field) => field.replaceAll('|', '\\|')));
  });
  return [introduction, toRow(columns), `|${'---|'.repeat(columns.length)}`, ...rows, ''].join('\n');
}

function toRow(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}

/** What is wrong with the page; null if it is current. */
export function checkPage(): string | null {
  return readFileSync(pageFile, 'utf8') === renderPage(readFileSync(recordsFile, 'utf8'))
    ? null
    : 'docs/proofs.md is out of date; make it anew: sh tools/with-node tools/proofs-page.ts';
}

if (import.meta.main) writeFileSync(pageFile, renderPage(readFileSync(recordsFile, 'utf8')));
