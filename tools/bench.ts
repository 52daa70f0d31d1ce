/**
 * Runs the benchmarks (`*.bench.ts`): each compares things within one run and reports medians and ratios.
 *
 * usage: npm run bench [-- NAME …]
 */
import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

interface Benchmark {
  name: string;
  run(report: (line: string) => void): Promise<void>;
}

const wanted = process.argv.slice(2);
const files = globSync('**/*.bench.ts', { cwd: root, exclude: (path) => path.includes('node_modules') });
const benchmarks = await Promise.all(
  files.sort().map(async (file) => (await import(`${root}${file}`)) as Benchmark),
);
const chosen = benchmarks.filter((benchmark) => wanted.length === 0 || wanted.includes(benchmark.name));
if (chosen.length === 0) {
  console.error(
    `no benchmark of that name; there are: ${benchmarks.map((benchmark) => benchmark.name).join(', ')}`,
  );
  process.exit(2);
}
for (const benchmark of chosen) {
  console.log(`${benchmark.name}:`);
  await benchmark.run((line) => console.log(`  ${line}`));
}
process.exit(0);
