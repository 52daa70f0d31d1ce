/**
 * Runs a proof with a large N: the same code that a test runs with a small one. Prints the line for docs/proofs.md.
 *
 * usage: npm run prove -- NAME [--n N] [--seed SEED]
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
  plantedBugsCaught: string;
}

interface Proof {
  name: string;
  prove(options: { n: number; seed: number; report: (line: string) => void }): Promise<ProofResult>;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { n: { type: 'string', default: '100' }, seed: { type: 'string', default: '1' } },
});
const files = globSync('**/*.prove.ts', {
  cwd: root,
  exclude: (path) => path.includes('node_modules'),
}).sort();
const proofs = await Promise.all(files.map(async (file) => (await import(`${root}${file}`)) as Proof));
const proof = proofs.find((candidate) => candidate.name === positionals[0]);
if (!proof) {
  console.error(
    `usage: npm run prove -- NAME [--n N] [--seed SEED]; NAME is one of: ${proofs.map((p) => p.name).join(', ')}`,
  );
  process.exit(2);
}
const n = Number(values.n);
const seed = Number(values.seed);
const commit = spawnSync('git', ['rev-parse', '--short', 'HEAD'], {
  cwd: root,
  encoding: 'utf8',
}).stdout.trim();
const started = Date.now();
const result = await proof.prove({ n, seed, report: (line) => console.log(line) });
const minutes = ((Date.now() - started) / 60_000).toFixed(1);
console.log(
  `| ${proof.name} | ${result.claim} | ${result.tried} tried, ${result.failures} failed | ${seed} | ${commit} | ${minutes} min | ${result.plantedBugsCaught} |`,
);
process.exit(result.failures === 0 ? 0 : 1);
