/** A potential vulnerability by keyboard, in a real browser: found on the server's page, read, ignored with a reason, and active again. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createWorld, type World } from '#operations/testing/create-world.ts';
import {
  createFindingMonitor,
  findingOf,
  projectedService,
  projectionOf,
} from '#operations/testing/projection-of.ts';
import { type KeyboardUser, startKeyboardUser } from './testing/keyboard.ts';

let world: World;
let user: KeyboardUser;
let path: string;

before(async () => {
  world = await createWorld();
  const { deliver } = await createFindingMonitor(world);
  const { tenant, email } = await world.createCustomer('Keys');
  const { serverId } = await world.deploy(tenant, 'by-keyboard');
  await world.backdate(serverId, '2 days');
  const [first] = await world.addresses.listAllocationsOfServers([serverId]);
  await deliver(
    projectionOf(first!, {
      services: [
        projectedService({
          findings: [
            findingOf('CVE-2024-6387'),
            findingOf('CVE-2023-38408', { severity: 'critical', score: 9.8 }),
          ],
        }),
      ],
    }),
  );
  path = `/client/servers/${serverId}`;
  user = await startKeyboardUser();
  const [name, value] = (await world.signIn(email)).split('=') as [string, string];
  await user.page.context().addCookies([{ name, value, url: world.url }]);
});
after(async () => {
  await user?.[Symbol.asyncDispose]();
  await world?.[Symbol.asyncDispose]();
});

test('NET-2.6.1: by keyboard, a finding is read with its evidence, ignored with a reason, and active again', async () => {
  await user.open(`${world.url}${path}`);
  await user.enter(/^Protect$/);
  await user.waitFor(/2 active, 1 critical, 1 high\./);
  await user.enter(/^OpenSSH 9\.6p1/);
  await user.enter(/^CVE-2023-38408$/);
  assert.match(await user.text(), /What CVE-2023-38408 is about\.[\s\S]*OpenSSH 9\.6p1/);
  await user.fill(/^Reason/, 'patched by the distribution');
  await user.tabTo(/^For how long/);
  await user.press('3');
  await user.enter(/^Ignore this finding$/);
  assert.match(await user.text(), /1 active, 1 high\. 1 ignored\./);
  await user.enter(/^Ignored/);
  await user.enter(/^CVE-2023-38408$/);
  assert.match(await user.text(), /patched by the distribution/);
  await user.enter(/^End ignoring$/);
  await user.open(`${world.url}${path}/protect`);
  assert.match(await user.text(), /2 active, 1 critical, 1 high\./);
  assert.equal(await user.pointerEvents(), 0);
  assert.deepEqual(user.complaints, []);
});
