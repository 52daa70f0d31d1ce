/**
 * Runs a proof with a large N: the same code that a test runs with a small one. Prints the claim and the result.
 *
 * With --only one case is run alone, by the number by which the proof named it when it failed.
 *
 * usage: npm run prove -- NAME [--n N] [--seed SEED] [--only CASE]
 */
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));

interface ProofResult {
  claim: string;
  tried: number;
  failures: number;
  /** Absent where none are planted. */
  plantedBugsCaught?: string;
}

interface Proof {
  name: string;
  prove(options: { n: number; seed: number; report: (line: string) => void }): Promise<ProofResult>;
  /** Runs one case alone, where cases have numbers of their own. */
  replay?(options: { only: number; report: (line: string) => void }): Promise<{ failures: number }>;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    n: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string' },
  },
});
const files = globSync('**/*.prove.ts', {
  cwd: root,
  exclude: (path) => path.includes('node_modules'),
}).sort();
const proofs = await Promise.all(files.map(async (file) => (await import(`${root}${file}`)) as Proof));
const proof = proofs.find((candidate) => candidate.name === positionals[0]);
if (!proof) {
  console.error(
    `usage: npm run prove -- NAME [--n N] [--seed SEED] [--only CASE]; NAME is one of: ${proofs.map((p) => p.name).join(', ')}`,
  );
  process.exit(2);
}
const report = (line: string) => console.log(line);
if (values.only !== undefined) {
  if (!proof.replay || !/^\d+$/.test(values.only)) {
    console.error(
      proof.replay
        ? `--only takes the number of a case, as a failure names it; "${values.only}" is none.`
        : `The proof ${proof.name} can't run a case alone: leave --only out.`,
    );
    process.exit(2);
  }
  const { failures } = await proof.replay({ only: Number(values.only), report });
  console.log(failures === 0 ? `case ${values.only}: no offence` : `case ${values.only} fails`);
  process.exit(failures === 0 ? 0 : 1);
}
const n = Number(values.n);
const seed = Number(values.seed);
const commit = spawnSync('git', ['rev-parse', '--short', 'HEAD'], {
  cwd: root,
  encoding: 'utf8',
}).stdout.trim();
const started = Date.now();
const result = await proof.prove({ n, seed, report });
const minutes = ((Date.now() - started) / 60_000).toFixed(1);
console.log(`${proof.name}: ${result.claim}`);
console.log(
  `${result.tried} tried, ${result.failures} failed; seed ${seed}, commit ${commit}, ${minutes} min`,
);
if (result.plantedBugsCaught) console.log(`planted bugs caught: ${result.plantedBugsCaught}`);
process.exit(result.failures === 0 ? 0 : 1);
