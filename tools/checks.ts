/** The checks: everything of the gate but its tests. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { checkBoundaries } from './boundaries/index.ts';
import { findDeadPaths } from './doc-paths/index.ts';
import { checkGlossary } from './glossary/index.ts';

const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');
const bin = (name: string) => `${root}/node_modules/.bin/${name}`;

/** Files of the working tree that git knows or would add; without git, every file below. */
export function listFiles(): string[] {
  const git = spawnSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: root, encoding: 'utf8' });
  const listed =
    git.status === 0
      ? git.stdout
      : spawnSync('find', ['.', '-path', './node_modules', '-prune', '-o', '-type', 'f', '-print'], {
          cwd: root,
          encoding: 'utf8',
        }).stdout;
  return listed
    .split('\n')
    .map((file) => file.replace(/^\.\//, ''))
    .filter((file) => file !== '' && existsSync(`${root}/${file}`))
    .sort();
}

async function runTool(...command: string[]): Promise<string | null> {
  const child = spawn(command[0]!, command.slice(1), { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  const said: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (piece: Buffer) => void said.push(piece));
  try {
    const [code] = await once(child, 'close');
    return code === 0 ? null : Buffer.concat(said).toString();
  } catch (error) {
    return (error as Error).message;
  }
}

interface Check {
  name: string;
  /** What is wrong, or null. `tell` prints figures beside the name. */
  run(tell: (figures: string) => void): Promise<string | null>;
}

const checks: Check[] = [
  {
    name: 'format and lint',
    run: () => runTool(bin('biome'), 'check', '--error-on-warnings', '--max-diagnostics=40', '.'),
  },
  // On one thread it takes two thirds of the processor time, and the others of the list have the other processors.
  { name: 'types', run: () => runTool(bin('tsc'), '--singleThreaded') },
  {
    name: 'boundaries',
    async run(tell) {
      const { offences, figures } = checkBoundaries(root, listFiles(), 200);
      tell(figures);
      return offences.length === 0
        ? null
        : offences.map((o) => `${o.file}: ${o.what}\n    (${o.rule})`).join('\n');
    },
  },
  {
    name: 'glossary',
    async run() {
      const faults = checkGlossary(root, listFiles());
      return faults.length === 0 ? null : faults.map(({ file, what }) => `${file}: ${what}`).join('\n');
    },
  },
  {
    name: 'paths in documents',
    async run() {
      const dead = findDeadPaths(root, listFiles());
      return dead.length === 0 ? null : dead.map(({ at, path }) => `${at}: there is no ${path}`).join('\n');
    },
  },
  { name: 'wire format', run: () => runTool(bin('buf'), 'lint') },
  {
    name: 'settings reference',
    run: () => runTool(process.execPath, `${root}/tools/settings-reference.ts`, '--check'),
  },
  {
    name: 'proofs page',
    run: () => runTool(process.execPath, `${root}/tools/proofs-page.ts`, '--check'),
  },
  { name: 'dead code', run: () => runTool(bin('knip')) },
];

interface Verdict {
  fault: string | null;
  figures: string;
  seconds: number;
}

async function runCheck(check: Check): Promise<Verdict> {
  const started = performance.now();
  let figures = '';
  let fault: string | null;
  try {
    fault = await check.run((text) => {
      figures = `: ${text}`;
    });
  } catch (error) {
    fault = (error as Error).message;
  }
  return { fault, figures, seconds: (performance.now() - started) / 1000 };
}

/**
 * All begin at once: half of them use one processor only. They are told in the order of the list. Returns how many failed.
 */
export async function runChecks(): Promise<number> {
  const verdicts = checks.map((check) => ({ check, verdict: runCheck(check) }));
  let failed = 0;
  for (const { check, verdict } of verdicts) {
    const { fault, figures, seconds } = await verdict;
    console.log(`${fault === null ? 'ok  ' : 'FAIL'}  ${check.name}${figures} (${seconds.toFixed(1)} s)`);
    if (fault === null) continue;
    console.log(fault);
    failed += 1;
  }
  return failed;
}
