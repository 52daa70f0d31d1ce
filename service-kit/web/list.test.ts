import assert from 'node:assert/strict';
import { test } from 'node:test';
import fastify, { type FastifyRequest } from 'fastify';
import { age, badge, formatBytes, html, sendPage } from '#service-kit/pages/index.ts';
import { idCursor, idFilter, type ListDeclaration, numberOf, readList, sendWantedFile } from './index.ts';

interface Backup {
  id: number;
  server: string;
  state: 'complete' | 'failed';
  bytes: number;
  atMs: number;
}

/** A whole list: what a new one takes. */
const backupsOf = (all: readonly Backup[], nowMs: number): ListDeclaration<Backup, number> => ({
  ...{ id: 'backups', caption: 'Backups', path: '/backups', shown: 5, refreshSeconds: 30 },
  card: { line: ['state', 'size'] },
  filters: [
    {
      ...{ name: 'state', label: 'State', by: 'tabs' },
      options: [
        { value: 'complete', label: 'Complete' },
        { value: 'failed', label: 'Failed' },
      ],
    },
    { name: 'server', label: 'Server', kind: 'search' },
    idFilter('tenant'),
  ],
  cursor: idCursor<Backup>(),
  read: async ({ state, server = '', tenant }, { limit, after = 0 }) =>
    all
      .filter((row) => (state ?? row.state) === row.state && row.server.includes(server))
      .filter(({ id }) => id > after && (numberOf(tenant) ?? 1) === 1)
      .slice(0, limit),
  count: async ({ state }) => all.filter((row) => (state ?? row.state) === row.state).length,
  columns: [
    { key: 'server', header: 'Server', cell: ({ server }) => server },
    { key: 'state', header: 'State', cell: ({ state }) => badge(state === 'failed' ? 'bad' : 'good', state) },
    { key: 'at', header: 'Time', cell: ({ atMs }) => age(atMs, nowMs) },
    {
      ...{ key: 'size', header: 'Size', kind: 'figure', field: 'bytes' },
      cell: ({ bytes }) => formatBytes(bytes),
      value: ({ bytes }) => bytes,
    },
  ],
  empty: { title: 'No backups yet', text: 'The first backup of a server appears here.' },
  noMatch: { title: 'No backup matches', text: 'Choose other filters.' },
});

const backups: Backup[] = Array.from({ length: 12 }, (_, at) => ({
  ...{ id: at + 1, server: at === 0 ? '=cmd()' : `db-<${at}>`, state: at % 3 === 0 ? 'failed' : 'complete' },
  ...{ bytes: 1_000 * (at + 1), atMs: 60_000 * at },
}));

/** A program with one list; answers a path's text. */
function serve<Row, Place>(list: (request: FastifyRequest) => ListDeclaration<Row, Place>) {
  const app = fastify();
  app.get('/backups', async (request, reply) => {
    const found = await readList(request, list(request));
    const page = html`${found.tabs('state', 'Backups by state', { failed: 4 })}${found.table}`;
    return sendWantedFile(request, reply, 'home') ?? sendPage(reply, page);
  });
  return async (query = '') => {
    const answer = await app.inject(`/backups${query}`);
    assert.equal(answer.statusCode, 200, query);
    return answer.body;
  };
}
const serversOf = (page: string) =>
  [...page.matchAll(/<th scope="row"[^>]*>(.*?)<\/th>/g)].map(([, name]) => name);
const hrefOf = (page: string, text: string) =>
  new RegExp(`href="/backups(\\?[^"]*)"[^>]*>${text}`).exec(page)?.[1]?.replaceAll('&amp;', '&');

test('a declared list has its filter, tabs, pages, refresh, cards and texts for no rows', async () => {
  const get = serve(() => backupsOf(backups, 900_000));
  const page = await get('?tenant=1');
  assert.match(page, /data-list="backups" data-refresh="30"/);
  assert.match(page, /<td class="kind-text on-line"[^>]*><span class="badge/);
  assert.match(page, /5 of 12/);
  assert.match(page, /Failed <span class="count">4</);
  assert.match(page, /<input type="hidden" name="tenant" value="1">/, 'the form keeps what a link set');
  assert.equal(hrefOf(page, 'Failed'), '?tenant=1&state=failed', 'and so do the tabs');
  assert.equal(serversOf(await get('?state=failed')).length, 4);
  assert.match(await get('?server=nothing'), /No backup matches/);
  assert.match(await serve(() => backupsOf([], 0))(), /No backups yet/);
  assert.doesNotMatch(page, /db-<1>/);
});

test('pages follow one another without a gap, behind a cursor and by counted rows', async () => {
  const counted = (): ListDeclaration<Backup, number> => {
    const { cursor: _, ...list } = backupsOf(backups, 0);
    return { ...list, read: async (_values, { skip, limit }) => backups.slice(skip, skip + limit) };
  };
  for (const get of [serve(() => backupsOf(backups, 0)), serve(counted)]) {
    const seen: unknown[] = [];
    for (let query: string | undefined = ''; query !== undefined; ) {
      const page = await get(query);
      seen.push(...serversOf(page));
      query = hrefOf(page, 'Next');
    }
    assert.equal(seen.length, 12);
    assert.equal(new Set(seen).size, 12);
  }
  assert.match(await serve(counted)('?after=5'), /6–10 of 12/);
  assert.equal(hrefOf(await serve(counted)('?after=10'), '← Previous'), '?after=5');
});

test('a file has every row that the filters leave, from whichever page it is asked for', async () => {
  const get = serve(() => backupsOf(backups, 900_000));
  const lines = (await get('?after=5&format=csv&table=backups')).trim().split('\r\n');
  assert.equal(lines.length, 13);
  assert.deepEqual(lines.slice(0, 3), [
    'server,state,at,bytes',
    "'=cmd(),failed,1970-01-01T00:00:00.000Z,1000",
    'db-<1>,complete,1970-01-01T00:01:00.000Z,2000',
  ]);
  const { rows, is_complete } = JSON.parse(await get('?state=failed&format=json&table=backups'));
  assert.deepEqual([rows.length, rows[1].server, is_complete], [4, 'db-<3>', true]);
});

test('the reader chooses the order by the columns that the list names, and pages and filters keep it', async () => {
  let asked: unknown;
  const get = serve(() => ({
    ...backupsOf(backups, 0),
    order: { by: ['server'], fallback: { by: 'id', direction: 'asc' } },
    read: async (_values, { sort }) => {
      asked = sort;
      return backups;
    },
  }));
  const page = await get('?sort=server&direction=desc');
  assert.deepEqual(asked, { by: 'server', direction: 'desc' });
  assert.match(hrefOf(page, 'Next')!, /sort=server&direction=desc&after=/);
  assert.match(page, /aria-sort="descending"/);
  assert.match(page, /<input type="hidden" name="sort" value="server">/);
  await get('?sort=bytes');
  assert.deepEqual(asked, { by: 'id', direction: 'asc' }, 'a forged name');
});

test('what a filter does not know does not filter, and breaks nothing', async () => {
  const get = serve(() => backupsOf(backups, 0));
  for (const query of [
    '?state=lost',
    '?state=failed&state=complete',
    '?tenant=-1',
    `?server=${'x'.repeat(201)}`,
    '?server=%00',
    '?after=x',
    '?after=1&after=2',
  ])
    assert.equal(serversOf(await get(query)).length, 5, query);
});
