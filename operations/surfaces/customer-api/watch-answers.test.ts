import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentReporter } from '#common/reporter/index.ts';
import { createHttpServer } from '#service-kit/http/index.ts';
import { watchAnswers } from './testing/watch-answers.ts';

async function watch(path: string, body: object, ask: string) {
  let watched: ReturnType<typeof watchAnswers> | null = null;
  const server = await createHttpServer({
    host: '127.0.0.1',
    port: 0,
    portSetting: 'none',
    reporter: silentReporter,
    routes(app) {
      watched = watchAnswers(app);
      app.get(path, async () => body);
    },
  });
  await server.app.inject(ask);
  return () => watched!.throwFaults();
}

test('an answer that the document does not describe fails the test, for every caller', async () => {
  const leak = await watch('/api/v2/tenants', { tenants: [], internal_note: 'x' }, '/api/v2/tenants?x=1');
  assert.throws(leak, /GET \/api\/v2\/tenants.*is not as documented|without its header/s);
  assert.throws(await watch('/api/v2/secret', {}, '/api/v2/secret'), /knows no such path/);
});

test('what is not the customer API is left alone', async () => {
  (await watch('/api/admin/v1/anything', { a: 1 }, '/api/admin/v1/anything'))();
  (await watch('/client/', { a: 1 }, '/client/'))();
});
