/**
 * What a flood does to clients of the same host, with and without the filter: a UDP flood of one sender at full speed over a veth, beside 200
 * new TLS connections a second and 20 that last. And what a packet costs the filter's program. Needs root.
 */
import { createFlood, victim } from '#sensor/testing/attack-traffic.ts';
import { FilterRuns, rulesAgainst } from '#sensor/testing/filter-runs.ts';
import { type FilteredLink, openFilteredLink } from '#sensor/testing/filtered-link.ts';

export const name = 'filter';

const rounds = 3;
const packets = Number(process.env.BENCH_PACKETS ?? 2_000_000);
const perSecond = 200;
const runsOfOne = 1_000_000;

/** Runs the benchmark. */
export async function run(report: (line: string) => void): Promise<void> {
  measureProgram(report);
  for (let round = 0; round < rounds; round += 1)
    for (const kind of ['no flood', 'no filter', 'filter'] as const) {
      const link = await openFilteredLink();
      try {
        report(`${kind.padEnd(10)} ${await measure(link, kind)}`);
      } finally {
        link.close();
      }
    }
}

async function measure(link: FilteredLink, kind: 'no flood' | 'no filter' | 'filter'): Promise<string> {
  const clients = await link.clients(20, perSecond);
  if (kind === 'filter') await link.rules('udp_flood');
  const { sent, seconds } =
    kind === 'no flood' ? await link.idle() : await link.flood('udp_flood', packets, 0);
  const { begun, completed, cut } = await clients.end();
  const dropped = (await link.counts()).udp_flood?.dropped.packets ?? 0;
  return (
    `${Math.round(sent / seconds / 1000)} kpps sent, ${Math.round(dropped / seconds / 1000)} kpps dropped, ` +
    `${completed} of ${begun} connections completed (${((completed / begun) * 100).toFixed(1)} %), ${cut} of 20 cut`
  );
}

/** One packet again and again. */
function measureProgram(report: (line: string) => void): void {
  const runs = new FilterRuns();
  const frame = createFlood({ class: 'udp_flood', version: 4, direction: 'inbound', ratio: 1 }, 3)()[0]!;
  const rules = rulesAgainst(victim(4), { class: 'udp_flood', ports: [] });
  for (const [title, own] of [
    ['no rules', []],
    ['dropped by a rule', rules],
  ] as const) {
    runs.loaded.filter.setRules(own);
    report(`${title}: ${runs.nanosecondsOf(frame, runsOfOne)} ns a packet`);
  }
  runs.close();
}
