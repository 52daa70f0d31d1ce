import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { describeTransportFailure } from './index.ts';
import { makeCertificates } from './testing/certificates.ts';

const why = (url: string) =>
  fetch(url).then(
    () => 'answered',
    (error) => describeTransportFailure(error),
  );

test('a request without an answer says why: the authority, the name, no TLS, no server; never what the server wrote', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-certificates-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const { key, certificate } = makeCertificates(folder);
  const secure = createServer({ key, cert: certificate }, (_request, response) => response.end());
  const plain = createHttpServer((_request, response) => response.end());
  for (const server of [secure, plain]) {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  }
  t.after(() => secure.close());
  const portOf = (server: typeof plain | typeof secure) => (server.address() as AddressInfo).port;
  assert.match(await why(`https://127.0.0.1:${portOf(secure)}/`), /unknown authority; .*NODE_EXTRA_CA_CERTS/);
  assert.match(await why(`https://127.0.0.1:${portOf(plain)}/`), /does not speak TLS/);
  assert.equal(await why('http://no-such-name.invalid/'), 'its name does not resolve');
  const port = portOf(plain);
  plain.close();
  await once(plain, 'close');
  assert.equal(await why(`http://127.0.0.1:${port}/`), 'the connection was refused');
  const altname = Object.assign(new Error("Host: a. is not in the cert's altnames: DNS:secret.example"), {
    code: 'ERR_TLS_CERT_ALTNAME_INVALID',
  });
  const failed = new TypeError('fetch failed', { cause: altname });
  assert.equal(describeTransportFailure(failed), 'its certificate is of another host name');
  assert.equal(describeTransportFailure(new Error('secret.example')), 'the connection failed');
});
