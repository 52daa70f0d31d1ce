/** What pages of the console cost with a fleet of this size. */
import { signIn } from '#monitor/facts/testing/bench-monitor.ts';
import { measure } from './meter.ts';
import { pidsOf, type Running } from './running.ts';

const pageRounds = 7;

export async function benchPages(running: Running): Promise<void> {
  const { bench, server, sample, report } = running;
  const headers = await signIn(bench);
  const site = `/sites/${sample[0]!.siteId}`;
  const told: string[] = [];
  for (const [page, path] of [
    ['overview', '/'],
    ['traffic of a site', `${site}/traffic`],
    ['live', `${site}/live`],
    ['sensors of a site', `${site}/sensors`],
  ] as const) {
    const took: number[] = [];
    const used = await measure(pidsOf(running), running.idle, async () => {
      for (let round = 0; round < pageRounds; round += 1) {
        const answer = await server.get(path, headers);
        if (answer.status !== 200) throw new Error(`${path} was a ${answer.status}`);
        took.push(answer.ms);
      }
    });
    const median = took.toSorted((a, b) => a - b)[Math.floor(pageRounds / 2)]!;
    const processor = ((used.serve + used.postgres) * 1000) / pageRounds;
    told.push(`${page} ${median.toFixed(0)} ms (${processor.toFixed(0)} ms of processor time)`);
  }
  report(`pages: ${told.join(', ')}`);
}
