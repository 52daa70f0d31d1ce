/**
 * Random versions of packages, half of them a small change of one another: our order is that of `dpkg --compare-versions` and of
 * rpm's `vercmp`, which are asked as programs. Needs both, or those that `oracles` names.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { seededRandom } from '#common/random/index.ts';
import {
  type ComparePart,
  compareDebianPart,
  compareRevisions,
  compareRpmPart,
  parsePackageVersion,
} from '#monitor/vulnerabilities/packages/compare-revisions.ts';

export const name = 'package-revisions';

type Pair = readonly [a: string, b: string];

export interface Oracle {
  /** Characters and words that versions are made of. */
  pieces: readonly string[];
  /** What versions begin with. */
  begins: string;
  ask(pairs: readonly Pair[], folder: string): number[];
  compare: ComparePart;
  plant: (compare: ComparePart) => ComparePart;
}

const common = [
  '0',
  '1',
  '2',
  '9',
  '10',
  '007',
  '.',
  '+',
  '~',
  'a',
  'b',
  'p1',
  'rc',
  'ubuntu',
  'deb12u',
  'Z',
];

/** Writes the pairs into a file that a script reads. */
function askScript(
  pairs: readonly Pair[],
  folder: string,
  command: string,
  args: (path: string) => string[],
): number[] {
  const path = join(folder, 'pairs');
  writeFileSync(path, pairs.map((pair) => `${pair.join(' ')}\n`).join(''));
  const out = execFileSync(command, args(path), {
    encoding: 'utf8',
    maxBuffer: 1 << 26,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return out.trim().split(/\s+/).map(Number);
}

const dpkgScript = `while read -r a b; do
  if dpkg --compare-versions "$a" lt "$b"; then echo -1
  elif dpkg --compare-versions "$a" eq "$b"; then echo 0; else echo 1; fi
done < "$0"`;

const wholeDebian: ComparePart = (a, b) =>
  compareRevisions(compareDebianPart, parsePackageVersion(a), parsePackageVersion(b));

export const dpkg: Oracle = {
  ...{ pieces: [...common, '-', '-1'], begins: '1', compare: wholeDebian },
  ask: (pairs, folder) => askScript(pairs, folder, 'sh', (path) => ['-c', dpkgScript, path]),
  plant: (compare) => (a, b) => compare(a.replaceAll('~', '+'), b.replaceAll('~', '+')),
};

export const rpm: Oracle = {
  ...{ pieces: [...common, '^', '_', '..'], begins: '', compare: compareRpmPart },
  ask: (pairs, folder) =>
    askScript(pairs, folder, 'rpm', (path) => [
      '--eval',
      `%{lua: for l in io.lines("${path}") do local a, b = l:match("^(%S+) (%S+)$"); print(rpm.vercmp(a, b) .. " ") end}`,
    ]),
  plant: (compare) => (a, b) => compare(a.replaceAll('^', '.'), b.replaceAll('^', '.')),
};

export async function prove(
  options: { n: number; seed: number; report: (line: string) => void },
  oracles: readonly Oracle[] = [dpkg, rpm],
) {
  const random = seededRandom(options.seed);
  const folder = mkdtempSync(join(tmpdir(), 'svc-revisions-'));
  let [tried, failures, caught] = [0, 0, 0];
  try {
    for (const oracle of oracles) {
      const pairs = Array.from({ length: Math.ceil(options.n / oracles.length) }, () =>
        makePair(oracle, random),
      );
      const said = oracle.ask(pairs, folder);
      const differing = (compare: ComparePart) =>
        pairs.filter(
          ([a, b], i) => Math.sign(compare(a, b)) !== Math.sign(said[i]!) || said.length !== pairs.length,
        );
      const wrong = differing(oracle.compare);
      for (const [a, b] of wrong.slice(0, 3)) options.report(`${a} and ${b}: ${oracle.compare(a, b)}`);
      tried += pairs.length;
      failures += wrong.length;
      if (differing(oracle.plant(oracle.compare)).length > 0) caught += 1;
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return {
    claim: "versions of packages have the order of dpkg's and rpm's own comparison",
    ...{ tried, failures, plantedBugsCaught: `${caught} of ${oracles.length}` },
  };
}

function makePair({ pieces, begins }: Oracle, random: () => number): Pair {
  const piece = () => pieces[Math.floor(random() * pieces.length)]!;
  const a = Array.from({ length: 1 + Math.floor(random() * 6) }, piece);
  const b = [...a];
  if (random() < 0.5) b.splice(Math.floor(random() * (b.length + 1)), Math.floor(random() * 2), piece());
  else b.splice(0, b.length, ...Array.from({ length: 1 + Math.floor(random() * 6) }, piece));
  // dpkg takes a dash for the begin of the revision, which must not be empty.
  const text = (parts: readonly string[]) => `${begins}${parts.join('')}`.replace(/-+$/, '') || '0';
  return [text(a), text(b)];
}
