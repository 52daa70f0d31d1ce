// Slow: clients in processes of their own play a story against a live API, Ansible for some seconds.
/**
 * One story, from the first call to the last, as a user who comes from another provider lives it on the first day: told by
 * each client as it is downloaded, in the words of the reference and of its README. After each step the server is the same.
 */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { systemActor } from '#operations/accounts/index.ts';
import { ensureImage, ensurePlan } from '#operations/catalog/index.ts';
import { statusOf } from '#operations/servers/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { examplePublicKey } from '#operations/testing/example-public-key.ts';

const publicKey = examplePublicKey(1);
const rules = [{ direction: 'inbound', action: 'accept', protocol: 'tcp', ports: '22' }];
const policies = { inbound: 'drop', outbound: 'accept' };

/** What of the server its user sees. */
interface State {
  name: string;
  status: string;
  image: string;
  sshKeys: string[];
  rules: string[];
  snapshots: string[];
}

type Answer = Record<string, unknown> & Record<string, unknown>[];

interface Step {
  title: string;
  /** Words behind `curl`, for each of its calls; `$ID` is the server, `$ACTION` the action of the call before. */
  curl: readonly string[];
  svcctl: string;
  /** The last statement is the answer, as in `python`. */
  typescript: string;
  python: string;
  /** What the answer says. */
  says?: (answer: Answer) => boolean;
  /** How the server is then; undefined: as before, null: gone. */
  left?: Partial<State> | null;
}

const waits = ['"$URL/api/v2/actions/$ACTION" -H "Prefer: wait=30"'];
const hasPlan = (plans: readonly Record<string, unknown>[]) => plans.some(({ slug }) => slug === 'small');

const story: readonly Step[] = [
  {
    title: 'the key says what it may do',
    curl: ['"$URL/api/v2/key"'],
    svcctl: 'key read',
    typescript: 'await api.readKey()',
    python: 'api.read_key()',
    says: ({ scope, tenants }) => scope === 'full' && (tenants as unknown[]).length === 1,
  },
  {
    title: 'plans are listed with their prices',
    curl: ['"$URL/api/v2/plans"'],
    svcctl: 'plans list',
    typescript: 'await Array.fromAsync(api.listPlans())',
    python: 'list(api.list_plans())',
    says: (answer) => hasPlan((answer.plans as Answer | undefined) ?? answer),
  },
  {
    title: 'an SSH key is kept',
    curl: [`"$URL/api/v2/ssh-keys" -d "{\\"name\\": \\"laptop\\", \\"public_key\\": \\"$PUBLIC_KEY\\"}"`],
    svcctl: 'ssh-keys create --name laptop --public-key "$PUBLIC_KEY"',
    typescript: `await api.createSshKey({ name: 'laptop', public_key: PUBLIC_KEY })`,
    python: 'api.create_ssh_key(name="laptop", public_key=os.environ["PUBLIC_KEY"])',
    says: ({ fingerprint }) => String(fingerprint).startsWith('SHA256:'),
  },
  {
    title: 'a server is ordered with it, and runs',
    curl: [
      `"$URL/api/v2/servers" -d '{"plan": "small", "image": "debian-12", "name": "web-1", "ssh_keys": ["laptop"]}'`,
      '"$URL/api/v2/servers/$ID?wait_for=status:running" -H "Prefer: wait=30"',
    ],
    svcctl: 'deploy --plan small --image debian-12 --name web-1 --ssh-keys laptop',
    typescript: `const server = await api.createServer({ plan: 'small', image: 'debian-12', name: 'web-1', ssh_keys: ['laptop'] });
await api.waitForServer(server.id, 'running')`,
    python: `server = api.create_server(plan="small", image="debian-12", name="web-1", ssh_keys=["laptop"])
api.wait_for_server(server["id"], "running")`,
    left: { name: 'web-1', status: 'running', image: 'debian-12', sshKeys: [publicKey] },
  },
  {
    title: 'its firewall lets SSH in alone',
    curl: [
      `-X PUT "$URL/api/v2/servers/$ID/firewall" -H "Prefer: wait=30" -d '${JSON.stringify({ enabled: true, policies, rules })}'`,
    ],
    svcctl: `firewall replace $ID --enabled --policies '${JSON.stringify(policies)}' --rules '${JSON.stringify(rules)}'`,
    typescript: `await api.replaceServerFirewall(ID, { enabled: true, policies: { inbound: 'drop', outbound: 'accept' },
  rules: [{ direction: 'inbound', action: 'accept', protocol: 'tcp', ports: '22' }] }, { waitSeconds: 30 })`,
    python: `api.replace_server_firewall(ID, enabled=True, policies={"inbound": "drop", "outbound": "accept"},
    rules=[{"direction": "inbound", "action": "accept", "protocol": "tcp", "ports": "22"}], wait=30)`,
    says: ({ status }) => status === 'applied',
    left: { rules: ['accept tcp 22'] },
  },
  {
    title: 'its traffic is read',
    curl: ['"$URL/api/v2/servers/$ID/traffic?range=24h"'],
    svcctl: 'traffic $ID --range 24h',
    typescript: `await api.readServerTraffic(ID, { range: '24h' })`,
    python: 'api.read_server_traffic(ID, range="24h")',
    says: ({ points }) => Array.isArray(points),
  },
  {
    title: 'it is renamed, as it was read',
    curl: [`-X PATCH "$URL/api/v2/servers/$ID" -d '{"name": "web-2"}'`],
    svcctl: 'servers update $ID --name web-2',
    typescript: `const { etag } = answerOf(await api.readServer(ID));
await api.updateServer(ID, { name: 'web-2' }, { ifMatch: etag })`,
    python: `api.read_server(ID)
api.update_server(ID, name="web-2", if_match=api.last_answer.etag)`,
    left: { name: 'web-2' },
  },
  {
    title: 'a snapshot is taken',
    curl: [`"$URL/api/v2/servers/$ID/snapshots" -d '{"name": "before"}'`, ...waits],
    svcctl: 'snapshots create $ID --name before',
    typescript: `const snapshot = await api.createSnapshot(ID, { name: 'before' });
await api.waitForAction({ id: snapshot.action_id })`,
    python: `snapshot = api.create_snapshot(ID, name="before")
api.wait_for_action(snapshot["action_id"])`,
    left: { snapshots: ['before ready'] },
  },
  {
    title: 'it is rebuilt with another image',
    curl: [`"$URL/api/v2/servers/$ID/actions/rebuild" -d '{"image": "debian-13"}'`, ...waits],
    svcctl: 'actions rebuild $ID --image debian-13 --yes',
    typescript: `await api.waitForAction(await api.rebuildServer(ID, { image: 'debian-13' }))`,
    python: 'api.wait_for_action(api.rebuild_server(ID, image="debian-13")["id"])',
    left: { image: 'debian-13' },
  },
  {
    title: 'it is destroyed',
    curl: ['-X DELETE "$URL/api/v2/servers/$ID"', ...waits],
    svcctl: 'servers destroy $ID --yes',
    typescript: 'await api.waitForAction(await api.destroyServer(ID))',
    python: 'api.wait_for_action(api.destroy_server(ID)["id"])',
    says: ({ status }) => status === 'success',
    left: null,
  },
];

let world: World;
let folder: string;
/** Of the downloads, by kind. */
const files = new Map<string, string>();
before(async () => {
  world = await createWorld();
  await world.jobs.start();
  await ensureImage(world.database.db, { slug: 'debian-13', name: 'Debian 13', family: 'debian' });
  const size = { vcpus: 2, memoryMb: 4_096, diskGb: 40, hourlyQuanta: 120, monthlyCapQuanta: 80_000 };
  await ensurePlan(world.database.db, { slug: 'large', name: 'Large', ...size });
  folder = mkdtempSync(join(tmpdir(), 'story-'));
  const page = await (await fetch(`${world.url}/docs/api/clients/`)).text();
  for (const [, path, name, end] of page.matchAll(/href="(\/docs\/api\/clients\/(([a-z]+)[^"]*))"/g)) {
    files.set(
      name!.endsWith('.whl')
        ? 'python'
        : name!.endsWith('.tar.gz')
          ? 'ansible'
          : name!.endsWith('.tgz')
            ? 'tgz'
            : end!,
      join(folder, name!),
    );
    writeFileSync(join(folder, name!), Buffer.from(await (await fetch(`${world.url}${path}`)).arrayBuffer()));
  }
});
after(async () => {
  rmSync(folder, { recursive: true });
  await world.jobs.stop();
  await world[Symbol.asyncDispose]();
});

/** A customer with a key, and what a program prints with it. */
async function begin(name: string) {
  const { tenant, ...customer } = await world.createCustomer(name);
  const key = await world.createKey({ tenant, ...customer });
  const address = { URL: world.url, KEY: key, SVCCTL_URL: world.url, SVCCTL_KEY: key };
  const shared = { HOME: folder, PATH: '/usr/bin:/bin', LC_ALL: 'C.UTF-8', PUBLIC_KEY: publicKey };
  const all = { ...shared, ...address };
  return {
    key,
    env: all,
    listSnapshots: (id: number) => world.servers.listSnapshots(systemActor, tenant.id, id),
    async run(program: string, words: readonly string[], more: Record<string, string> = {}) {
      const env = { ...all, ...more };
      const { stdout } = await promisify(execFile)(program, words, { env, cwd: folder }).catch((error) =>
        assert.fail(`${error.message}\n${error.stdout}`),
      );
      assert.ok(!stdout.includes(key), 'the key is printed');
      return stdout;
    },
    /** The server as its user sees it; null when it is gone. */
    async look(id: number): Promise<State | null> {
      const server = await world.servers.findServer(systemActor, tenant.id, id);
      if (server === null) return null;
      const firewall = await world.firewalls.readFirewall(systemActor, tenant.id, id);
      const snapshots = await this.listSnapshots(id);
      const { rows } = await world.database.pool.query('select ssh_keys as keys from servers where id = $1', [
        id,
      ]);
      return {
        name: server.name,
        status: statusOf(server),
        image: server.imageSlug,
        sshKeys: rows[0].keys,
        rules: firewall!.rules.map(({ action, protocol, ports }) => `${action} ${protocol} ${ports}`),
        snapshots: snapshots.map((one) => `${one.name} ${one.state}`),
      };
    },
  };
}

const untouched = { rules: [], snapshots: [] };

/** What a step's calls are told: the server, and the action of the call before. */
type Ids = Record<'ID' | 'ACTION', string>;

/** Plays the story; `callsOf` makes the calls of a step, each of which gives its answer. */
async function play(
  user: Awaited<ReturnType<typeof begin>>,
  callsOf: (step: Step) => readonly ((ids: Ids) => Promise<unknown>)[],
): Promise<void> {
  const ids = { ID: '', ACTION: '' };
  let state: Partial<State> | null = untouched;
  for (const step of story) {
    let answer = {} as Answer;
    for (const call of callsOf(step)) {
      answer = (await call(ids)) as Answer;
      if (ids.ID === '' && 'power_state' in answer) ids.ID = String(answer.id);
      ids.ACTION = String(answer.action_id ?? answer.id);
    }
    const where = `${step.title}: ${JSON.stringify(answer).slice(0, 300)}`;
    assert.ok(step.says?.(answer) ?? true, where);
    state = step.left === undefined ? state : step.left && { ...state, ...step.left };
    if (ids.ID !== '') assert.deepEqual(await user.look(Number(ids.ID)), state, where);
  }
  assert.equal(state, null);
}

test('the story by curl, as the reference has it', async () => {
  const user = await begin('Curl');
  const curl =
    'curl -sS --fail-with-body -H "Authorization: Bearer $KEY" -H "Content-Type: application/json"';
  await play(user, (step) =>
    step.curl.map(
      (words) => async (ids) => JSON.parse(await user.run('bash', ['-euc', `${curl} ${words}`], ids)),
    ),
  );
});

test('the story by svcctl, which waits by itself', async () => {
  const user = await begin('Command line');
  const program = `"${process.execPath}" "${files.get('svcctl')}"`;
  await play(user, ({ svcctl }) => [
    async (ids) => JSON.parse(await user.run('bash', ['-euc', `${program} ${svcctl} --json`], ids)),
  ]);
});

test('the story by TypeScript', async () => {
  const user = await begin('TypeScript');
  await user.run('tar', ['-xzf', files.get('tgz')!]);
  const { createClient, answerOf } = await import(join(folder, 'package/dist/index.js'));
  const api = createClient({ url: world.url, key: user.key });
  await play(user, ({ typescript }) => [
    ({ ID }) => {
      const lines = typescript.split('\n');
      const last = lines.findLastIndex((line) => !line.startsWith(' '));
      const body = lines.with(last, `return ${lines[last]}`).join('\n');
      const names = ['api', 'answerOf', 'PUBLIC_KEY', 'ID'];
      return new AsyncFunction(...names, body)(api, answerOf, publicKey, Number(ID));
    },
  ]);
});

const AsyncFunction = (async () => {}).constructor as new (
  ...words: string[]
) => (...values: unknown[]) => Promise<unknown>;

test('the story by Python', async () => {
  const user = await begin('Python');
  const child = spawn('python3', ['-c', interpreter, files.get('python')!], { env: user.env });
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    complaint += text;
  });
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  await play(user, ({ python }) => [
    async ({ ID }) => {
      child.stdin.write(`${JSON.stringify([python, Number(ID)])}\n`);
      const { value, done } = await answers.next();
      assert.ok(!done, complaint);
      return JSON.parse(value);
    },
  ]);
  child.stdin.end();
  await once(child, 'exit');
});

/** Runs the code of each line of its input, and prints the value of the last statement. */
const interpreter = `import ast, json, os, sys
sys.path.insert(0, sys.argv[1])
import virtual_servers
api = virtual_servers.Client(os.environ["URL"], os.environ["KEY"])
for line in sys.stdin:
    code, ID = json.loads(line)
    module = ast.parse(code)
    last = ast.Expression(module.body.pop().value)
    exec(compile(module, "story", "exec"))
    print(json.dumps(eval(compile(last, "story", "eval"))), flush=True)`;

interface Result {
  changed: boolean;
  server: { id: number; labels: Record<string, string>; plan: { slug: string } } | null;
  forecast?: { would_create: boolean };
  root_password?: string;
}

test('the story by Ansible: each task changes what is to be changed, and nothing when it runs again', {
  skip: existsSync('/usr/bin/ansible-playbook') ? false : 'needs ansible-core',
}, async () => {
  const user = await begin('Ansible');
  const { run } = user;
  const look = (id: number) => user.look(id);
  const env = {
    ...{ ANSIBLE_COLLECTIONS_PATH: folder, ANSIBLE_LOCALHOST_WARNING: 'False', ANSIBLE_NOCOLOR: '1' },
    // One result after the other, as JSON.
    ANSIBLE_STDOUT_CALLBACK: 'minimal',
    // A process less for each task.
    ANSIBLE_PIPELINING: 'True',
  };
  await run(
    'ansible-galaxy',
    ['collection', 'install', '--offline', '-p', folder, files.get('ansible')!],
    env,
  );
  writeFileSync(
    join(folder, 'servers.yml'),
    'plugin: virtual_servers.cloud.servers\nkeyed_groups: [{key: server_labels.env, prefix: env}]\n',
  );
  /** A task with these options of the module; `check`: in check mode. */
  const task = ({ check = false, ...options }: { check?: boolean } & Record<string, unknown>) => ({
    'virtual_servers.cloud.server': options,
    check_mode: check,
  });
  const play = async <Told = Result>(...tasks: readonly object[]) => {
    const book = { hosts: 'localhost', connection: 'local', gather_facts: false, tasks };
    writeFileSync(join(folder, 'book.json'), JSON.stringify([book]));
    const python = ['-e', 'ansible_python_interpreter=/usr/bin/python3'];
    const told = await run('ansible-playbook', [...python, '-i', 'servers.yml', 'book.json'], env);
    const results = [...told.matchAll(/^localhost \| \w+ => (\{[\s\S]*?^\})/gm)];
    return results.map(([, text]) => JSON.parse(text!) as Told);
  };
  const order = {
    ...{ name: 'web-ä', plan: 'small', image: 'debian-12', ssh_keys: [publicKey], labels: { env: '' } },
    ...{ firewall: { policies, rules }, state: 'started' },
  };
  const [checked, made] = await play(task({ ...order, check: true }), task(order));
  assert.deepEqual([checked!.changed, checked!.forecast!.would_create], [true, true]);
  const { id, labels } = made!.server!;
  assert.deepEqual([made!.changed, labels], [true, { env: '' }]);
  assert.match(made!.root_password!, /^\S{16,}$/);
  const first = { name: 'web-ä', status: 'running', image: 'debian-12', sshKeys: [publicKey] };
  const ordered: State = { ...first, rules: ['accept tcp 22'], snapshots: [] };
  assert.deepEqual(await look(id), ordered);

  const change = {
    ...{ id, name: 'web-2', plan: 'large', image: 'debian-13', rebuild: true, snapshot: 'before' },
    ...{ labels: { role: 'db' }, state: 'stopped' },
  };
  const listed = { debug: { msg: ['{{ groups.plan_small }}', "{{ hostvars['web-ä'].ansible_host }}"] } };
  const [inventory, same, changed] = await play<Result & { msg: unknown[] }>(
    listed,
    task(order),
    task(change),
  );
  assert.deepEqual(inventory!.msg[0], ['web-ä']);
  assert.match(String(inventory!.msg[1]), /^203\.0\.113\.\d+$/);
  assert.deepEqual([same!.changed, same!.root_password], [false, undefined]);
  assert.deepEqual([changed!.changed, changed!.server!.labels], [true, { role: 'db' }]);
  assert.deepEqual([changed!.server!.plan.slug, /^\S{16,}$/.test(changed!.root_password!)], ['large', true]);
  const rebuilt = { name: 'web-2', status: 'stopped', image: 'debian-13', snapshots: ['before ready'] };
  assert.deepEqual(await look(id), { ...ordered, ...rebuilt });
  const [snapshot] = await user.listSnapshots(id);
  const copy = { name: 'web-3', plan: 'large', from_snapshot: snapshot!.id };
  const gone = { id, state: 'absent' };
  const ends = await play(
    ...[change, { ...change, firewall: { policies }, check: true }, copy, copy, gone, gone].map(task),
  );
  assert.deepEqual(
    ends.map((one) => [one.changed, one.server === null]),
    [
      [false, false],
      [true, false],
      [true, false],
      [false, false],
      [true, true],
      [false, true],
    ],
  );
  assert.equal(await look(id), null);
  const copied = { name: 'web-3', status: 'running', image: 'debian-12', sshKeys: [] };
  assert.deepEqual(await look(ends[2]!.server!.id), { ...copied, ...untouched });
});
