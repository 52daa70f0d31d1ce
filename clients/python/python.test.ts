// Slow: a Python process orders servers from a live API and waits for them.
/** The Python client as it is downloaded, against the API itself. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { createWorld, type World } from '#operations/testing/dated-world.ts';

let world: World;
let folder: string;
let wheel: string;
before(async () => {
  world = await createWorld();
  folder = mkdtempSync(join(tmpdir(), 'python-client-'));
  const page = await (await fetch(`${world.url}/docs/api/clients/`)).text();
  const [, path] = /href="([^"]*\.whl)"/.exec(page)!;
  wheel = join(folder, path!.slice(path!.lastIndexOf('/') + 1));
  writeFileSync(wheel, Buffer.from(await (await fetch(`${world.url}${path}`)).arrayBuffer()));
});
after(async () => {
  rmSync(folder, { recursive: true });
  await world[Symbol.asyncDispose]();
});

/** What the script prints; the world works meanwhile. */
async function python(script: string, given: Record<string, string> = {}): Promise<string> {
  const env = { PATH: process.env.PATH, PYTHONPATH: wheel, PYTHONIOENCODING: 'utf-8', ...given };
  const child = spawn('python3', ['-c', script], { env });
  let isOver = false;
  const printed = Promise.all([text(child.stdout), text(child.stderr)]).finally(() => {
    isOver = true;
  });
  while (!isOver) await Promise.race([printed, world.jobs.drain()]);
  const [out, err] = await printed;
  assert.equal(err, '');
  return out;
}

test('Python orders, waits, lists, changes under a tag, acts and destroys', async () => {
  const key = await world.createKey(await world.createCustomer('Python'));
  const out = await python(
    `
import os, virtual_servers as v
api = v.Client(os.environ["URL"], os.environ["KEY"])
assert api.create_server(plan="small", image="debian-12", dry_run=True)["would_create"] is True
made = [api.create_server(plan="small", image="debian-12", name=name, labels={"env": ""}) for name in ("eins", "naïve-日本", "drei")]
assert len(made[0]["root_password"]) >= 16
running = [api.wait_for_server(one["id"], "running") for one in made]
assert [one["labels"] for one in running] == [{"env": ""}] * 3
print([one["name"] for one in api.list_servers(sort="created_at", limit=2)])
first = made[0]["id"]
api.read_server(first)
tag = api.last_answer.etag
assert api.update_server(first, name="neu", labels={"env": None}, if_match=tag)["labels"] == {}
try:
    api.update_server(first, name="alt", if_match=tag)
except v.PreconditionFailedError as error:
    print(error.status, error.reason)
try:
    api.create_server(plan="none-such", image="debian-12")
except v.ValidationError as error:
    print(error.fields[0]["path"], error.request_id[:4])
action = api.act_on_server(first, action="stop")
assert api.wait_for_action(action["id"])["status"] == "success"
api.wait_for_action(api.destroy_server(first)["id"])
try:
    api.read_server(first)
except v.NotFoundError as error:
    print(error.code, os.environ["KEY"] in repr(error) + repr(api))
`,
    { URL: world.url, KEY: key },
  );
  assert.equal(out, "['eins', 'naïve-日本', 'drei']\n412 etag_mismatch\nplan req_\nnot_found False\n");
});

test('Python: every type is one, and a delivery is read only with a signature that fits', async () => {
  const body = '{"type":"test","data":{"a":"ä"}}';
  const secret = Buffer.from('a secret of thirty-two bytes....');
  const signature = createHmac('sha256', secret).update(`msg_1.1000.${body}`).digest('base64');
  const out = await python(
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
