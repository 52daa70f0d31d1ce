// Slow: Ansible runs playbooks against a live API, some seconds each.
/** The Ansible collection as it is downloaded, by Debian's ansible-core. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { ensurePlan } from '#operations/catalog/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { cases, faultsOf, playCases } from '../testing/faults.ts';

const skip = existsSync('/usr/bin/ansible-playbook') ? false : 'needs ansible-core';
let world: World;
let folder: string;
let env: Record<string, string>;
before(async () => {
  if (skip) return;
  world = await createWorld();
  const size = { vcpus: 2, memoryMb: 4_096, diskGb: 40, hourlyQuanta: 120, monthlyCapQuanta: 80_000 };
  await ensurePlan(world.database.db, { slug: 'large', name: 'Large', ...size });
  folder = mkdtempSync(join(tmpdir(), 'ansible-'));
  env = {
    ...{ PATH: '/usr/bin:/bin', HOME: folder, LC_ALL: 'C.UTF-8', ANSIBLE_COLLECTIONS_PATH: folder },
    ...{ ANSIBLE_LOCALHOST_WARNING: 'False', ANSIBLE_NOCOLOR: '1' },
    ...{ SVCCTL_URL: world.url, SVCCTL_KEY: await world.createKey(await world.createCustomer('Ansible')) },
  };
  const page = await (await fetch(`${world.url}/docs/api/clients/`)).text();
  const [, path, file] = /href="([^"]*\/(virtual_servers-cloud-[^"]*))"/.exec(page)!;
  writeFileSync(join(folder, file!), Buffer.from(await (await fetch(`${world.url}${path}`)).arrayBuffer()));
  await run('ansible-galaxy', ['collection', 'install', '--offline', '-p', folder, join(folder, file!)]);
});
after(async () => {
  if (skip) return;
  rmSync(folder, { recursive: true });
  await world[Symbol.asyncDispose]();
});

/** What a command prints; the world works meanwhile. */
async function run(program: string, given: readonly string[], more: object = {}): Promise<string> {
  let isOver = false;
  const done = promisify(execFile)(program, given, { env: { ...env, ...more }, cwd: folder }).finally(() => {
    isOver = true;
  });
  while (!isOver) await Promise.race([done.catch(() => {}), world.jobs.drain()]);
  const { stdout } = await done.catch((error) => assert.fail(`${error.message}\n${error.stdout}`));
  assert.ok(!stdout.includes(env.SVCCTL_KEY!), 'the key is printed');
  return stdout;
}

interface Result {
  changed: boolean;
  server: { id: number; status: string; labels: Record<string, string>; plan: { slug: string } } | null;
  forecast?: { would_create: boolean };
  root_password?: string;
}

/** The results of tasks with these options of the module, in one playbook. */
async function play(
  tasks: readonly Record<string, unknown>[],
  flags: readonly string[] = [],
): Promise<Result[]> {
  const results = join(folder, 'results.json');
  const names = tasks.map((_, index) => `result_${index}`);
  const steps = tasks.map((options, index) => ({
    'virtual_servers.cloud.server': { name: 'web-ä', ...options },
    register: names[index],
  }));
  const keep = {
    'ansible.builtin.copy': { content: `{{ [${names}] | to_json }}`, dest: results },
    check_mode: false,
  };
  const book = { hosts: 'localhost', connection: 'local', gather_facts: false, tasks: [...steps, keep] };
  writeFileSync(join(folder, 'book.json'), JSON.stringify([book]));
  const python = ['-e', 'ansible_python_interpreter=/usr/bin/python3'];
  await run('ansible-playbook', [...python, ...flags, 'book.json']);
  return JSON.parse(readFileSync(results, 'utf8'));
}

const wanted = { plan: 'small', image: 'debian-12', labels: { env: '' }, state: 'started' };

test('a playbook twice in a row changes nothing the second time, and nothing in check mode', {
  skip,
}, async () => {
  const [checked] = await play([wanted], ['--check']);
  assert.deepEqual([checked!.changed, checked!.forecast!.would_create], [true, true]);
  const other = { ...wanted, plan: 'large', labels: { role: 'db' } };
  const [made, again, changed, same] = await play([wanted, wanted, other, other]);
  assert.deepEqual(
    [made!.changed, made!.server!.status, made!.server!.labels],
    [true, 'running', { env: '' }],
  );
  assert.match(made!.root_password!, /^\S{16,}$/);
  assert.deepEqual([again!.changed, again!.root_password], [false, undefined]);
  assert.deepEqual(
    [changed!.changed, changed!.server!.labels, changed!.server!.plan.slug, changed!.server!.status],
    [true, { role: 'db' }, 'large', 'running'],
  );
  assert.equal(same!.changed, false);

  writeFileSync(
    join(folder, 'servers.yml'),
    'plugin: virtual_servers.cloud.servers\nkeyed_groups: [{key: server_labels.role, prefix: role}]\n',
  );
  const inventory = JSON.parse(await run('ansible-inventory', ['-i', 'servers.yml', '--list']));
  assert.deepEqual(inventory.role_db.hosts, ['web-ä']);
  assert.deepEqual(inventory.plan_large.hosts, ['web-ä']);
  assert.match(inventory._meta.hostvars['web-ä'].ansible_host, /^203\.0\.113\.\d+$/);

  const [wouldStop] = await play([{ state: 'stopped' }], ['--check']);
  assert.deepEqual([wouldStop!.changed, wouldStop!.server!.status], [true, 'running']);
  const ends = await play([
    { state: 'stopped' },
    { state: 'stopped' },
    { state: 'absent' },
    { state: 'absent' },
  ]);
  assert.deepEqual(
    ends.map(({ changed, server }) => [changed, server?.status ?? null]),
    [
      [true, 'stopped'],
      [false, 'stopped'],
      [true, null],
      [false, null],
    ],
  );
});

test('what was reported of other providers’ clients fails a task in its own words, without the key', {
  skip,
}, async () => {
  // Those that end in an error of a read: the module reads the list of servers first.
  const failing = [...cases.entries()].filter(
    ([, { call, throws, seconds }]) => throws && call.id === 'readServer' && seconds === undefined,
  );
  const played = await playCases();
  try {
    const hosts = failing.map(([index]) => `case${index}`);
    const task = {
      'virtual_servers.cloud.server': {
        url: `http://127.0.0.1:${new URL(played.urlOf(0)).port}/{{ inventory_hostname[4:] }}`,
        id: 1,
      },
      ignore_errors: true,
    };
    const book = { hosts: 'all', connection: 'local', gather_facts: false, tasks: [task] };
    writeFileSync(join(folder, 'faults.json'), JSON.stringify([book]));
    const python = ['-e', 'ansible_python_interpreter=/usr/bin/python3', '-f', String(hosts.length)];
    const told = await run(
      'ansible-playbook',
      [...python, '-i', `${hosts.join(',')},`, 'faults.json'],
      // One result after the other, as JSON.
      { ANSIBLE_STDOUT_CALLBACK: 'minimal' },
    );
    const results = new Map(
      [...told.matchAll(/^(case\d+) \| FAILED! => (\{[\s\S]*?^\})/gm)].map((match) => [match[1]!, match[2]!]),
    );
    for (const [place, [index, { title, throws, requests }]] of failing.entries()) {
      const result = JSON.parse(results.get(hosts[place]!)!);
      const faults = faultsOf(index, played.received[index]!);
      assert.deepEqual(faults, [], `${title}: ${JSON.stringify(result)}`);
      assert.ok(result.msg.length > 10 && !/Traceback|MODULE FAILURE/.test(JSON.stringify(result)), title);
      assert.equal('code' in result, throws !== 'Connection', `${title}: ${result.msg}`);
      assert.ok(requests !== undefined && !JSON.stringify(result).includes(env.SVCCTL_KEY!), title);
    }
    assert.ok(failing.length >= 4);
  } finally {
    played.close();
  }
});
