/**
 * `npm run prove -- upgrade`: a demo of an earlier commit is used, stopped, and goes on with this checkout's code.
 *
 * It clones each commit (`SVC_UPGRADE_FROM`, separated by commas; if not given the first with feeds and private networks,
 * and the last without roles of processes), installs its packages, and does so N times: every second time the demo is
 * killed instead of stopped. A checkout without the commit is an error: an upgrade that was not tried is never reported as one.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createClient } from '#clients/typescript/index.ts';
import { readMinutes, signIn } from '../testing/people.ts';
import { type RunningDemo, runDemo } from '../testing/run-demo.ts';
import { compare, look, type Sight } from './installation.ts';

export const name = 'upgrade';

const root = fileURLToPath(new URL('../..', import.meta.url));
const earlierCommits = (process.env.SVC_UPGRADE_FROM ?? '0e74edc,745b6406').split(',');

export async function prove({ n, report }: { n: number; seed: number; report: (line: string) => void }) {
  const offences: string[] = [];
  let sight: Sight | null = null;
  for (const commit of earlierCommits) {
    const checkout = mkdtempSync(join(tmpdir(), 'svc-earlier-'));
    try {
      fetchEarlier(commit, checkout);
      for (let round = 0; round < n; round += 1) {
        const upgraded = await upgrade(checkout, round % 2 === 1);
        offences.push(...upgraded.offences.map((offence) => `${commit}: ${offence}`));
        sight = upgraded.sight;
        report(
          `${commit} ${round + 1}: ${upgraded.sight.minutes.size} minutes, ${upgraded.sight.objects.size} objects`,
        );
      }
    } finally {
      rmSync(checkout, { recursive: true, force: true });
    }
  }
  for (const offence of offences) report(`OFFENCE ${offence}`);
  const planted = sight ? plants.map((plant) => compare(sight, plant(sight)).length > 0) : [];
  return {
    claim: `an installation of ${earlierCommits.join(' and of ')} goes on with the new code: logins, keys, servers, networks, minutes, counts`,
    tried: n * earlierCommits.length,
    failures: offences.length,
    plantedBugsCaught: `${planted.filter(Boolean).length} of ${plants.length}`,
  };
}

function fetchEarlier(commit: string, checkout: string): void {
  const { status } = spawnSync('git', ['-C', root, 'cat-file', '-e', `${commit}^{commit}`]);
  if (status !== 0)
    throw new Error(`This checkout has no commit ${commit}: run it in a clone with the whole history.`);
  run('git', ['clone', '--quiet', '--no-checkout', root, checkout]);
  run('git', ['-C', checkout, 'checkout', '--quiet', commit]);
  run('sh', [join(checkout, 'svc'), '--version']);
}

function run(command: string, args: string[]): void {
  const { status, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}: ${stderr}`);
}

/** The demo of the earlier commit, used and ended, and then the demo of this checkout on its data. */
async function upgrade(checkout: string, isKilled: boolean): Promise<{ offences: string[]; sight: Sight }> {
  const old = await runDemo({ checkout });
  let demo: RunningDemo = old;
  try {
    const api = createClient({ url: old.file.operations_url, key: old.file.full_key });
    const made = await api.createServer({ plan: 'kvm-1', image: 'debian-13', name: 'before-upgrade' });
    await api.waitForServer(made.id, 'running');
    const network = await api.createNetwork({ name: 'before-upgrade' });
    await api.attachServer(made.id, { network_id: network.id });
    await waitForMinutes(old);
    const before = await look(old.file);
    await (isKilled ? old.kill() : old.leave());

    demo = await runDemo({ after: old });
    const after = await look(demo.file);
    const offences = compare(before, after);
    if (JSON.stringify(demo.file) !== JSON.stringify({ ...demo.file, ...old.file }))
      offences.push('demo.json has other logins or keys than before');
    await waitForMinutes(demo);
    return { offences, sight: await look(demo.file) };
  } finally {
    await demo.stop();
  }
}

/** Until a minute that began after this call has traffic on a customer's page: every program does its part. */
async function waitForMinutes(demo: RunningDemo): Promise<void> {
  const since = Date.now();
  await demo.until('a minute with traffic is shown', 300_000, async () => {
    const api = createClient({ url: demo.file.operations_url, key: demo.file.full_key });
    const visitor = await signIn(demo.file.operations_url, demo.file.customer);
    for (const { id } of (await api.listServers()).servers)
      for (const minute of await readMinutes(visitor, id))
        if (Date.parse(minute.timestamp) >= since && (minute.inbound_bytes ?? 0) > 0) return true;
    return false;
  });
}

const plants: ((sight: Sight) => Sight)[] = [
  (sight) => ({ ...sight, minutes: new Map([...sight.minutes].slice(1)) }),
  (sight) => ({ ...sight, objects: new Map([...sight.objects].slice(1)) }),
  (sight) => ({ ...sight, requests: sight.requests - 1 }),
  (sight) => ({ ...sight, minutes: new Map([...sight.minutes].map(([key, text]) => [key, less(text)])) }),
];

/** The minute with a byte less. */
function less(text: string): string {
  const minute = JSON.parse(text) as { inbound_bytes: number | null };
  return JSON.stringify(
    minute.inbound_bytes ? { ...minute, inbound_bytes: minute.inbound_bytes - 1 } : minute,
  );
}
