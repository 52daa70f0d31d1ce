/**
 * Makes the Debian packages: a program with the pinned Node.js, which installs and runs without npm.
 *
 * Beside them it writes the bill of materials of the whole project (svc_VERSION.cdx.json), for servers that run from it.
 *
 * usage: npm run package [-- NAME …] [--folder FOLDER] [--compression xz|none]
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { buildDeb } from './package/build-deb.ts';
import { packagedPrograms } from './package/programs.ts';
import { makeBill } from './package/software-bill.ts';

const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    folder: { type: 'string', default: `${root}/dist` },
    compression: { type: 'string', default: 'xz' },
  },
});
const chosen = packagedPrograms.filter((one) => positionals.length === 0 || positionals.includes(one.name));
if (chosen.length === 0 || !['xz', 'none'].includes(values.compression)) {
  console.error(
    `there are: ${packagedPrograms.map((one) => one.name).join(', ')}; compression is xz or none`,
  );
  process.exit(2);
}
const { version } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as { version: string };
for (const program of chosen) {
  const path = await buildDeb(program, {
    root,
    folder: values.folder,
    version: program.version,
    epochSeconds: sourceTime(),
    compression: values.compression as 'xz' | 'none',
  });
  const bytes = readFileSync(path);
  const digest = createHash('sha256').update(bytes).digest('hex');
  console.log(`${path}  ${(bytes.length / 1e6).toFixed(1)} MB  sha256 ${digest}`);
}
const bill = makeBill({ root, name: 'svc', version, epochSeconds: sourceTime(), hasNode: false });
const billPath = `${values.folder}/svc_${version}.cdx.json`;
writeFileSync(billPath, `${JSON.stringify(bill, null, 2)}\n`);
console.log(`${billPath}  ${bill.components.length} components`);

/** `SOURCE_DATE_EPOCH`, else the last commit's time, else a fixed one: never the clock. */
function sourceTime(): number {
  const given = process.env.SOURCE_DATE_EPOCH;
  if (given && /^\d+$/.test(given)) return Number(given);
  const git = spawnSync('git', ['log', '-1', '--format=%ct'], { cwd: root, encoding: 'utf8' });
  return git.status === 0 ? Number(git.stdout.trim()) : 1_767_225_600;
}
