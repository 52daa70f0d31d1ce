/**
 * What a provider is told who sets `SVC_FACTS_URL` to a server that is too old: the answers are those that Debian's own
 * clickhouse-server, 18.16, gave to the same statements.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { createFactClient, describeStart, parseFactsUrl } from './connect.ts';
import { createEngine } from './engine-store.ts';
import { migrate } from './table-store.ts';

const failed = (code: number, text: string) =>
  `Code: ${code}, e.displayText() = DB::Exception: ${text}, e.what() = DB::Exception\n`;
const server = createServer(async (request, response) => {
  const statement = Buffer.concat(await request.toArray()).toString();
  const { searchParams } = new URL(request.url!, 'http://clickhouse');
  const [, password] = Buffer.from(request.headers.authorization!.slice(6), 'base64').toString().split(':');
  response.setHeader('content-type', 'text/plain; charset=UTF-8');
  if (password !== 'right')
    return response.writeHead(401).end(failed(193, 'Wrong password for user default'));
  if (searchParams.get('database') !== 'svc_facts')
    return response.writeHead(404).end(failed(81, "Database nothere doesn't exist"));
  if (/settings|param_/.test(statement))
    return response.writeHead(404).end(failed(115, 'Unknown setting enable_analyzer'));
  return response.end('{"version":"18.16.1"}\n');
});

before(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
after(() => server.close());

async function toldOf(place: string): Promise<string> {
  const url = parseFactsUrl(
    `clickhouse://${place.replace('HOST', `127.0.0.1:${(server.address() as AddressInfo).port}`)}`,
  );
  const client = createFactClient(url);
  try {
    await migrate(createEngine(client));
  } catch (error) {
    return String((describeStart(error, url) as Error).message).replaceAll(/:\d+/g, '');
  } finally {
    await client.close();
  }
  assert.fail('an old server was accepted');
}

test('its version and the needed one', async () => {
  assert.equal(
    await toldOf('default:right@HOST/svc_facts'),
    'ClickHouse 18.16.1 is too old for facts: 25.8 or newer is needed.',
  );
});

test('a wrong password and a missing database, before the version', async () => {
  assert.equal(
    await toldOf('default:wrong@HOST/svc_facts'),
    'ClickHouse at http://127.0.0.1 refuses the user default or the password. Check SVC_FACTS_URL.',
  );
  assert.equal(
    await toldOf('default:right@HOST/nothere'),
    'ClickHouse at http://127.0.0.1 has no database nothere: create it first. Check SVC_FACTS_URL.',
  );
});
