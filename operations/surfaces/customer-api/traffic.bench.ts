/**
 * What a page of a day of minutes costs: `GET /servers/{id}/traffic` of a server with two addresses and three days of
 * minutes, among other servers with as many. One call at a time, from the request to the answer's last byte; beside it
 * `GET /servers/{id}`, which has the same gate and count and reads one server. Processor time is that of server and caller
 * together, without PostgreSQL; it says more than the clock on a machine that does other work.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#common/clock/index.ts';
import { startParts } from '#common/lifecycle/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { fillMinutes } from '#operations/testing/fill-minutes.ts';
import { createDemoWorld } from '../../commands/seed-demo/index.ts';
import { compose, partsOf } from '../../composition.ts';
import { readOperationsSettings } from '../../config.ts';
import { programDir } from '../../platform.ts';

export const name = 'traffic';

const rounds = 100;
const days = 3;

export async function run(report: (line: string) => void): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const settings = readOperationsSettings({
    SVC_DATA_DIR: folder,
    SVC_OPERATIONS_PORT: '0',
    SVC_API_KEY_REQUESTS_PER_MINUTE: '1000000',
    API_INCLUDED_REQUESTS_PER_MONTH: '1000000',
  });
  const features = await compose(settings, { reporter: silentReporter });
  const http = await features.createServer();
  const dir = programDir(settings);
  const demoWorld = createDemoWorld({ features, reporter: silentReporter, clock: systemClock, dir });
  const stop = await startParts(partsOf(features, http, [demoWorld]), silentReporter);
  const demo = JSON.parse(await readFile(join(dir, 'demo.json'), 'utf8')) as {
    tenant_id: number;
    read_key: string;
  };
  const servers = await features.servers.listServers(systemActor, demo.tenant_id, {
    order: 'oldest',
    limit: 5,
  });
  const ids = servers.map(({ id }) => id);
  await fillMinutes(features.db(), ids, { days, applications: 20 });
  const path = `/api/v2/servers/${ids[0]}`;
  const to = new Date(Math.floor(Date.now() / 60_000) * 60_000).toISOString();
  const from = (hours: number) => new Date(Date.parse(to) - hours * 3_600_000).toISOString();
  const cases: [what: string, path: string][] = [
    ['the server alone', path],
    ['an hour of minutes', `${path}/traffic?from=${from(1)}&to=${to}`],
    ['a day of minutes', `${path}/traffic?from=${from(24)}&to=${to}`],
    ['a day in steps of 5 minutes', `${path}/traffic?from=${from(24)}&to=${to}&step=5m`],
    ['three days in hours', `${path}/traffic?from=${from(72)}&to=${to}&step=hour`],
  ];
  for (const [what, of] of cases) {
    const took: number[] = [];
    let bytes = 0;
    let cpu = process.cpuUsage();
    for (let round = -10; round < rounds; round += 1) {
      if (round === 0) cpu = process.cpuUsage();
      const began = performance.now();
      const answer = await fetch(`${http.url}${of}`, {
        headers: { authorization: `Bearer ${demo.read_key}` },
      });
      bytes = (await answer.arrayBuffer()).byteLength;
      if (answer.status !== 200) throw new Error(`${of} was a ${answer.status}`);
      if (round >= 0) took.push(performance.now() - began);
    }
    const { user, system } = process.cpuUsage(cpu);
    took.sort((a, b) => a - b);
    const [best, median, p95] = [0, 0.5, 0.95].map((part) =>
      took[Math.floor(took.length * part)]!.toFixed(1),
    );
    report(
      `${what.padEnd(28)} best ${best} ms, median ${median} ms, 95th percentile ${p95} ms, ${((user + system) / 1_000 / rounds).toFixed(1)} ms of processor time, ${Math.round(bytes / 1024)} KiB`,
    );
  }
  report(`load of the machine: ${loadavg()[0]!.toFixed(1)}`);
  await stop();
  await rm(folder, { recursive: true, force: true });
}
