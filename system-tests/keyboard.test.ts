// Slow: uses the demo that the crawl of every page uses.
/**
 * A customer's tasks by keyboard, in a real browser on the running system: sign in, create a key, create a network,
 * deploy a server, attach it, power-cycle it, destroy it, read the API reference and try a call from it.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { NotFoundError } from '#clients/typescript/index.ts';
import { type KeyboardUser, startKeyboardUser } from './testing/keyboard.ts';
import { apiOf } from './testing/people.ts';
import type { RunningDemo } from './testing/run-demo.ts';
import { shareDemo } from './testing/shared-demo.ts';

const shared = shareDemo();

describe('a customer’s tasks by keyboard', () => {
  let demo: RunningDemo;
  let user: KeyboardUser;
  let url: string;
  let key: string;
  let serverId: number;

  before(async () => {
    demo = await shared.start();
    user = await startKeyboardUser();
    url = demo.file.operations_url;
  });
  after(async () => {
    await user?.[Symbol.asyncDispose]();
    await shared.stop();
  });
  const api = () => apiOf(demo.file, key);

  test('signing in: the first field has the focus', async () => {
    await user.open(`${url}/client/`);
    await user.page.locator('input[name="email"]:focus').waitFor();
    await user.page.keyboard.type(demo.file.customer.email);
    await user.press('Tab');
    await user.page.keyboard.type(demo.file.customer.password);
    await Promise.all([user.page.waitForURL(`${url}/client/`), user.press('Enter')]);
  });

  test('g k goes to the keys; a full key is created and works', async () => {
    await Promise.all([user.page.waitForURL(/\/client\/developer\//), user.press('g', 'k')]);
    await user.fill(/^Name/, 'by keyboard');
    await user.tabTo(/^Scope/);
    await user.press('F');
    await user.enter(/^Create key$/);
    key = /svc_[a-z0-9]{16}_[A-Za-z0-9_-]{43}/.exec(await user.text())![0];
    assert.equal((await api().readKey()).scope, 'full');
  });

  test('Ctrl K finds the key; its drawer opens, and it is rotated', async () => {
    await user.press('Control+k');
    await user.page.locator('dialog input:focus').waitFor();
    await user.page.keyboard.type('rotate by');
    await user.page.locator('dialog').getByText('Rotate by keyboard').waitFor();
    await Promise.all([user.page.waitForURL(/\/client\/developer\/#rotate-/), user.press('Enter')]);
    await user.enter(/^Rotate this key$/);
    assert.match(await user.text(), /replaced, old key ends in/);
  });

  test('g n goes to the networks; one is created', async () => {
    await Promise.all([user.page.waitForURL(/\/client\/networks\//), user.press('g', 'n')]);
    await user.fill(/^Name/, 'backend');
    await user.enter(/^Create network$/);
    const { networks } = await api().listNetworks();
    assert.ok(networks.some((network) => network.name === 'backend'));
  });

  test('g s goes to the servers; one is deployed and runs', async () => {
    await Promise.all([user.page.waitForURL(`${url}/client/`), user.press('g', 's')]);
    await user.enter(/^Deploy/);
    await user.fill(/^Name/, 'by-keyboard');
    await user.enter(/^Deploy server$/);
    await user.enter(/^Go to the server$/);
    serverId = Number(/servers\/(\d+)/.exec(user.page.url())![1]);
    await user.waitFor(/Reboot/);
    assert.equal((await api().readServer(serverId)).status, 'running');
  });

  test('it is attached to the network', async () => {
    await user.enter(/^Networks$/);
    if (!new RegExp(`/servers/${serverId}/networks`).test(user.page.url())) await user.enter(/^Networks$/);
    await user.tabTo(/^Network$/);
    await user.press('b');
    await user.enter(/^Attach$/);
    await demo.until('the server is on the network', 120_000, async () => {
      const [card] = (await api().readServer(serverId)).private_networks;
      return card?.name === 'backend' && card.state === 'attached';
    });
  });

  test('it is restarted', async () => {
    await user.open(`${url}/client/servers/${serverId}`);
    await user.waitFor(/Reboot/);
    // The button asks first; the one that does it stands in the drawer.
    await user.tabTo(/^Reboot$/);
    await user.press('Enter');
    await user.enter(/^Reboot$/);
    const action = await demo.until('the server was restarted', 120_000, async () => {
      const { actions } = await api().listServerActions(serverId);
      return actions.find((one) => one.command === 'reboot' && one.status === 'success') ?? null;
    });
    assert.equal(action.changed, true);
  });

  test('/ finds a call in the reference, and the call is tried from there', async () => {
    await Promise.all([user.page.waitForURL(/\/developer\/docs\//), user.press('g', 'd')]);
    await user.press('/');
    await user.page.keyboard.type('read a server');
    await Promise.all([user.page.waitForURL(/servers\/#readServer$/), user.press('Enter')]);
    await user.fill(/^Your key/, key);
    await user.page.evaluate("document.querySelector('#readServer .anchor').focus()");
    await user.tabTo(/^Try it$/);
    await user.press('Enter');
    await user.fill(/^id/, String(serverId));
    await user.tabTo(/^Send$/);
    await user.press('Enter');
    const answer = user.page.locator('#readServer [data-answer]');
    await answer.getByText('200').first().waitFor();
    assert.match(await answer.innerText(), /"name": "by-keyboard"/);
  });

  test('without a key nothing is called, and the page says so', async () => {
    const calls: string[] = [];
    user.page.on('request', (request) => calls.push(request.url()));
    await user.page.reload();
    await user.page.evaluate("document.querySelector('#readServer .anchor').focus()");
    await user.tabTo(/^Try it$/);
    await user.press('Enter');
    await user.fill(/^id/, String(serverId));
    await user.tabTo(/^Send$/);
    await user.press('Enter');
    await user.page.getByText('Nothing was sent').waitFor();
    assert.deepEqual(
      calls.filter((one) => one.includes('/api/')),
      [],
    );
  });

  test('it is destroyed after entering its name', async () => {
    await user.open(`${url}/client/servers/${serverId}`);
    await user.tabTo(/^Firewall$/);
    await user.enter(/^Settings$/);
    // The first one is that of a rebuild.
    await user.tabTo(/^Type by-keyboard to confirm/);
    await user.fill(/^Type by-keyboard to confirm/, 'by-keyboard');
    await user.enter(/^Destroy server$/);
    await demo.until('the server is gone', 120_000, async () => {
      return api()
        .readServer(serverId)
        .then(
          () => false,
          (error) => error instanceof NotFoundError,
        );
    });
  });

  test('no pointer was used, and the browser reported no errors', async () => {
    assert.equal(await user.pointerEvents(), 0);
    assert.deepEqual(user.complaints, []);
  });
});
