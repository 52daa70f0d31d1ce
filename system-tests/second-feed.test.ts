/**
 * A feed that exists only in this file: one contract, one declaration in the monitor, one in operations. Everything
 * that other tests require of the minute feed must follow from them, without other changes.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { Type } from 'typebox';
import { booleanSetting, integerSetting } from '#common/config/index.ts';
import { CodedError } from '#common/errors/index.ts';
import type { FeedContract } from '#contracts/admin-api/contract.ts';
import { compose } from '#monitor/composition.ts';
import { readConfig } from '#monitor/config.ts';
import { defineFeed, type FeedItem, minutes, type TickResult } from '#monitor/feeds/index.ts';
import { systemActor as monitorActor } from '#monitor/operators/index.ts';
import { type MonitorServer, startMonitorServer } from '#monitor/testing/server.ts';
import { systemActor } from '#operations/accounts/index.ts';
import type { FeedReceiver } from '#operations/feeds/index.ts';
import { createWorld, password, type World } from '#operations/testing/create-world.ts';

const contract = {
  permission: 'test_notes_ingest',
  required: { test_notes_ingest: true, test_notes_contract_version: 1 },
  path: '/protect/test-notes/',
  request: Type.Object(
    { notes: Type.Array(Type.Object({ id: Type.String(), text: Type.String() }), { maxItems: 3 }) },
    { additionalProperties: false },
  ),
  answer: Type.Object({
    receipts: Type.Array(Type.Object({ id: Type.String(), receipt: Type.String() })),
  }),
  bodyBytesMax: 4_096,
} as const satisfies FeedContract;

interface NotesRequest {
  notes: { id: string; text: string }[];
}
interface NotesAnswer {
  receipts: { id: string; receipt: string }[];
}

/** Data of the monitor to deliver. */
const written = new Map<string, string>();
/** Data in operations, by project. */
const received = new Map<string, string>();
/** Changes the receipts of operations, for tests of wrong ones. */
let distort = (receipts: NotesAnswer['receipts']) => receipts;
/** The notes of each request that operations accepted. */
const requests: string[][] = [];

const notes = defineFeed<FeedItem, NotesRequest, NotesAnswer>({
  name: 'notes',
  title: 'Test notes',
  loop: 'sync_test_notes',
  purpose: 'delivers test notes',
  contract,
  items: 'records',
  batch: { itemsPerTick: 9, itemsPerRequest: 3, requestsAtOnce: 1 },
  cadence: {
    isOn: booleanSetting('SVC_TEST_NOTES_SYNC', true, 'Whether serve also delivers test notes.'),
    seconds: integerSetting('SVC_TEST_NOTES_SYNC_SECONDS', 30, { min: 5, max: 60 }, 'Pause between two.'),
  },
  outcomes: { accepted: 'acknowledged', unchanged: 'acknowledged' },
  observation: { noun: 'note', seconds: 0 },
  create: () => ({
    due: async (round) => ({ items: await round.pickDue([...written.keys()].map((key) => ({ key }))) }),
    build: async (items) => ({
      request: { notes: items.map(({ key }) => ({ id: key, text: written.get(key)! })) },
      visits: [],
      take: ({ receipts }) =>
        receipts.map(({ id, receipt }) => ({
          key: id,
          outcome: receipt,
          position: { sent: 1 },
          acknowledged: 60,
        })),
    }),
  }),
});

const receiver: FeedReceiver = {
  contract,
  hint: 'Deliver test notes.',
  readsTargets: false,
  invalidCode: 'notes.invalid',
  async receive({ projectId }, request: NotesRequest) {
    const bad = request.notes.findIndex(({ text }) => text === 'bad');
    if (bad !== -1) {
      const fields = [{ path: `notes.${bad}.text`, message: 'is bad' }];
      throw new CodedError('notes.invalid', 'Some fields are not as they must be.', { fields });
    }
    requests.push(request.notes.map(({ id }) => id));
    const receipts = request.notes.map(({ id, text }) => {
      const key = `${projectId} ${id}`;
      const receipt = received.get(key) === text ? 'unchanged' : 'accepted';
      received.set(key, text);
      return { id, receipt };
    });
    return { receipts: distort(receipts) };
  },
};

/** A forwarder to operations. While it is cut, it resets every connection, as a host does where nothing listens. */
async function startForwarder(target: string) {
  const sockets = new Set<Socket>();
  const port = Number(new URL(target).port);
  let isCut = false;
  const server = createServer((socket) => {
    if (isCut) return void socket.resetAndDestroy();
    const upstream = connect(port, '127.0.0.1');
    for (const one of [socket, upstream]) {
      sockets.add(one);
      one.on('error', () => {});
    }
    socket.pipe(upstream).pipe(socket);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endConnections = () => {
    for (const socket of sockets) socket.resetAndDestroy();
    sockets.clear();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    setCut(cut: boolean) {
      isCut = cut;
      endConnections();
    },
    async [Symbol.asyncDispose]() {
      server.close();
      endConnections();
      await once(server, 'close');
    },
  };
}

const metricsToken = 'token-of-the-scraper';
const feeds = [minutes, notes];
let operations: World;
let monitor: MonitorServer;
let way: Awaited<ReturnType<typeof startForwarder>>;
let project: { id: number; token: string };

before(async () => {
  operations = await createWorld({ receivers: [receiver] });
  const permissions = [minutes.contract.permission];
  const { id } = await operations.adminProjects.create(systemActor, {
    name: 'Monitor',
    permissions,
    clusterIds: null,
  });
  const { token } = await operations.adminProjects.issueToken(systemActor, id, null);
  project = { id, token };
  way = await startForwarder(operations.url);
  monitor = await startMonitorServer({ SVC_MONITOR_METRICS_TOKEN: metricsToken }, { feeds });
  const connection = { baseUrl: way.url, token, isEnabled: true };
  await monitor.monitor.connection.save(monitorActor, connection);
});
after(async () => {
  await monitor?.[Symbol.asyncDispose]();
  await way?.[Symbol.asyncDispose]();
  await operations?.[Symbol.asyncDispose]();
});

async function tick(): Promise<TickResult> {
  const result = await monitor.monitor.feeds.find('notes').runOnce();
  if (typeof result === 'string') throw new Error(`no tick: ${result}`);
  return result;
}

const post = (body: unknown) =>
  fetch(`${operations.url}/api/admin/v1${contract.path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${project.token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

test('NET-5.1, NET-4.l: a declared feed needs its permission, which the project form offers and discovery advertises', async () => {
  written.set('note-1', 'one');
  assert.equal((await post({ notes: [] })).status, 403);
  const refused = await tick();
  assert.match(refused.error!, /lacks the permission/);
  assert.equal(received.size, 0);

  const staff = { email: 'operator@staff.test', name: 'Operator', password, staffRole: 'operator' as const };
  await operations.accounts.createPerson(systemActor, staff);
  const cookie = await operations.signIn(staff.email);
  const form = await fetch(`${operations.url}/console/projects/${project.id}`, {
    headers: { cookie, accept: 'text/html' },
  });
  assert.match(
    await form.text(),
    /name="permissions" value="test_notes_ingest"(?! checked).*Deliver test notes\./s,
  );

  const permissions = [minutes.contract.permission, contract.permission];
  await operations.adminProjects.update(systemActor, project.id, {
    name: 'Monitor',
    permissions,
    clusterIds: null,
  });
  const { error, counts } = await tick();
  assert.deepEqual([error, counts.accepted], [null, 1], 'the same token works');
  const { capabilities } = (await monitor.monitor.connection.view())!;
  assert.equal(capabilities.test_notes_contract_version, 1);
  assert.equal((await tick()).counts.unchanged, 1, 'a replay changes nothing');
});

test('a declared receiver has its bounds and its schema: 413 and 422, and 404 where it is not declared', async () => {
  assert.equal((await post({ notes: [{ id: 'x', text: 'x'.repeat(5_000) }] })).status, 413);
  assert.equal((await post({ notes: [], more: 1 })).status, 422);
  const named = await post({ notes: [{ id: 'x', text: 'bad' }] });
  assert.equal(named.status, 422);
  const { error } = (await named.json()) as { error: { fields: { path: string }[] } };
  assert.equal(error.fields[0]!.path, 'notes.0.text');
  await using other = await createWorld();
  const token = await other.createToken([minutes.contract.permission]);
  const absent = await fetch(`${other.url}/api/admin/v1${contract.path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
  });
  assert.equal(absent.status, 404);
});

test('NET-4.3: requests are bounded, and a refused record does not block the others', async () => {
  for (let i = 1; i <= 8; i += 1) written.set(`note-${i}`, i === 5 ? 'bad' : `text ${i}`);
  requests.length = 0;
  const { counts } = await tick();
  assert.deepEqual([counts.visited, counts.accepted, counts.failed], [8, 7, 1]);
  assert.ok(requests.every((one) => one.length <= 3));
  const held = await monitor.monitor.feeds.listHeldBack();
  assert.deepEqual(
    held.map(({ feed, item, outcome }) => [feed, item, outcome]),
    [['notes', 'note-5', 'refused']],
  );
  written.delete('note-5');
});

test('NET-4.3, NET-2.9: two transport failures end a run, and health, pages and metrics report it', async () => {
  for (let i = 1; i <= 9; i += 1) written.set(`note-${i}`, `changed ${i}`);
  way.setCut(true);
  const { counts, error } = await tick();
  way.setCut(false);
  assert.match(error!, /could not be reached/);
  assert.deepEqual([counts.visited, counts.failed], [6, 6], 'two requests of three, and not the third');

  const viewer = await monitor.signIn('viewer');
  const health = JSON.parse((await viewer.get('/api/integrations/operations/health')).text) as {
    problems: string[];
    feeds: { feed: string; last_error: string | null }[];
  };
  assert.deepEqual(
    health.feeds.map(({ feed }) => feed),
    ['inventory', 'telemetry', 'notes'],
  );
  assert.match(health.feeds[2]!.last_error!, /could not be reached/);
  assert.ok(health.problems.some((text) => text.startsWith('Test notes: Operations could not be reached')));
  const page = (await viewer.get('/operations')).text;
  assert.match(page, />Test notes</);
  assert.match(page, /test_notes_ingest/);
  const system = (await viewer.get('/system')).text;
  assert.match(system, /delivers test notes/);
  assert.match((await viewer.get('/settings')).text, /SVC_TEST_NOTES_SYNC_SECONDS/);
  const metrics = await fetch(`${monitor.url}/metrics`, {
    headers: { authorization: `Bearer ${metricsToken}` },
  });
  assert.match(await metrics.text(), /svc_monitor_feed_failing\{feed="notes"\} 1/);
});

test('NET-4.3: unvisited records come first in the next run, and then none is left', async () => {
  requests.length = 0;
  // The last run began with note 9, which was new, then with the notes with the oldest visits.
  const [first, second] = [await tick(), await tick()];
  assert.deepEqual(requests[0]!.toSorted(), ['note-5', 'note-7', 'note-8']);
  assert.deepEqual([first.error, first.counts.accepted], [null, 9]);
  assert.equal(second.counts.unchanged, 9);
  const state = (await monitor.monitor.feeds.find('notes').state())!;
  assert.deepEqual([state.lastError, state.latestAcknowledged], [null, 60]);
});

test('NET-4.3: missing, repeated or wrong receipts acknowledge nothing', async () => {
  const wrong: (typeof distort)[] = [
    (receipts) => receipts.slice(1),
    (receipts) => [...receipts, receipts[0]!],
    (receipts) => receipts.map(({ receipt }, i) => ({ id: `other-${i}`, receipt })),
  ];
  for (const one of wrong) {
    distort = one;
    const { counts, error } = await tick();
    assert.match(error!, /was invalid/);
    assert.deepEqual([counts.failed, counts.unchanged], [9, 0]);
  }
  distort = (receipts) => receipts;
  assert.equal((await tick()).counts.unchanged, 9);
});

test('NET-2.9: cursors of every feed are deleted together', async () => {
  assert.equal(await monitor.monitor.feeds.forgetCursors(Date.UTC(2000, 0)), 0);
  assert.equal(await monitor.monitor.feeds.forgetCursors(Date.UTC(2100, 0)), 9);
});

test('NET-4.6: the settings of a declared feed are read, and turn its loop off', () => {
  const loopsOf = (environment: NodeJS.ProcessEnv) => {
    const config = readConfig({ SVC_LOG_LEVEL: 'error', ...environment }, feeds);
    return compose(config, { feeds }).loops.map(({ name }) => name);
  };
  assert.ok(loopsOf({}).includes('loop sync_test_notes'));
  assert.ok(!loopsOf({ SVC_TEST_NOTES_SYNC: '0' }).includes('loop sync_test_notes'));
  assert.throws(
    () => readConfig({ SVC_TEST_NOTES_SYNC_SECONDS: '4' }, feeds),
    /SVC_TEST_NOTES_SYNC_SECONDS must be a whole number/,
  );
});
