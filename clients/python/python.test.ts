/** The Python client as it is downloaded; what it does to servers is in `clients/story.test.ts`. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { buildOpenApi, readOpenApi } from '#contracts/customer-api/index.ts';
import { buildDownloads } from '../downloads.ts';

let folder: string;
let wheel: string;
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'python-client-'));
  const document = readOpenApi<Parameters<typeof buildDownloads>[0]>(buildOpenApi());
  const { file, bytes } = buildDownloads(document).find(({ kind }) => kind === 'python')!;
  wheel = join(folder, file);
  writeFileSync(wheel, bytes);
});
after(() => rmSync(folder, { recursive: true }));

function python(script: string, given: Record<string, string>): string {
  const env = { PATH: process.env.PATH, PYTHONPATH: wheel, PYTHONIOENCODING: 'utf-8', ...given };
  return execFileSync('python3', ['-c', script], { env, encoding: 'utf8' });
}

test('Python: every type is one, and a delivery is read only with a signature that fits', () => {
  const body = '{"type":"test","data":{"a":"ä"}}';
  const secret = Buffer.from('a secret of thirty-two bytes....');
  const signature = createHmac('sha256', secret).update(`msg_1.1000.${body}`).digest('base64');
  const out = python(
    `
import inspect, os, typing, virtual_servers as v
for thing in [*vars(v).values(), *vars(v.Client).values()]:
    if inspect.isfunction(thing) or inspect.isclass(thing) and thing.__module__ == v.__name__:
        typing.get_type_hints(thing)
headers = {"Webhook-Id": "msg_1", "webhook-timestamp": "1000", "webhook-signature": "v1,AAAA v1," + os.environ["SIGNATURE"]}
body, secret = os.environ["BODY"], os.environ["SECRET"]
print(v.verify_webhook(secret, headers, body, now=1300)["data"]["a"])
for headers, body, secret, now in [(headers, body + " ", secret, 1000), (headers, body, secret, 1301), (headers, body, secret, 699),
        (headers, body, "whsec_", 1000), ({}, body, secret, 1000)]:
    try:
        v.verify_webhook(secret, headers, body, now=now)
    except v.WebhookVerificationError:
        print("refused")
`,
    { SIGNATURE: signature, BODY: body, SECRET: `whsec_${secret.toString('base64')}` },
  );
  assert.equal(out, `ä\n${'refused\n'.repeat(5)}`);
});
