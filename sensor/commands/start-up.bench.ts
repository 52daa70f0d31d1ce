/**
 * Measures how long `./svc sensor read` of a small file takes from the shell, split into the shell script, Node.js, and
 * our modules with and without the compile cache.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pcapFile } from '#sensor/testing/capture-files.ts';
import { clientHello, ethernet, Tcp, tcp } from '#sensor/testing/frames.ts';

export const name = 'sensor-start-up';

const rounds = 15;
const root = fileURLToPath(new URL('../..', import.meta.url));

export async function run(report: (line: string) => void): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-start-'));
  try {
    const ends = { from: '192.0.2.1', fromPort: 40_000, to: '203.0.113.9', toPort: 443 };
    const bytes = ethernet(tcp(ends, Tcp.ack, 1, clientHello({ host: 'www.example.org' })));
    const file = join(folder, 'small.pcap');
    writeFileSync(file, pcapFile([{ bytes, seconds: 1_700_000_000, nanoseconds: 0 }]));
    const cached = { NODE_COMPILE_CACHE: join(folder, 'cache') };
    const uncached = { NODE_DISABLE_COMPILE_CACHE: '1' };
    const read = ['./svc', 'sensor', 'read', file];
    const cases: [string, string[], Record<string, string>][] = [
      ['./svc sensor read, compile cache', read, cached],
      ['./svc sensor read, without it', read, uncached],
      ['./svc --help, compile cache', ['./svc', '--help'], cached],
      ['Node.js alone', [process.execPath, '-e', '0'], {}],
      ['sh alone', ['/bin/sh', '-c', ':'], {}],
    ];
    const times = cases.map(() => [] as number[]);
    // In turn, so that other load affects all of them equally.
    for (let round = 0; round <= rounds; round += 1) {
      for (const [i, [, command, environment]] of cases.entries()) {
        const started = performance.now();
        const env = { ...process.env, ...environment };
        const { status } = spawnSync(command[0]!, command.slice(1), { cwd: root, env, stdio: 'ignore' });
        if (status !== 0) throw new Error(`${command.join(' ')} ended with ${status}`);
        // The first round fills the cache.
        if (round > 0) times[i]!.push(performance.now() - started);
      }
    }
    for (const [i, [label]] of cases.entries()) {
      const sorted = times[i]!.toSorted((a, b) => a - b);
      const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)]!.toFixed(0);
      report(
        `${label.padEnd(34)} median ${at(0.5).padStart(4)} ms, fastest ${at(0).padStart(4)} ms, slowest ${at(1).padStart(4)} ms`,
      );
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
