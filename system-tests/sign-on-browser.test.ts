// Slow: signs on between two consoles in a browser.
/** Single sign-on in a real browser: the links of both consoles, across two sites, with scripts and without. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { systemActor as monitorSystem } from '#monitor/operators/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { launchBrowser } from '#service-kit/testing/browser.ts';
import { createSignOnPair, logins, type SignOnPair } from './testing/sign-on-pair.ts';

let pair: SignOnPair;
let browser: Browser;
let serverId: number;
let tenantId: number;
let address: string;
before(async () => {
  pair = await createSignOnPair();
  browser = await launchBrowser();
  const { operations, monitor, olivia, olga } = pair;
  await operations.signOn.linkAccount(systemActor, { subjectId: olga.id, personId: olivia.id });
  await monitor.monitor.signOn.linkAccount(monitorSystem, { subjectId: olivia.id, personId: olga.id });
  const { tenant } = await operations.createCustomer('Acme');
  const made = await operations.deploy(tenant, 'web-1');
  const [allocation] = made.allocations;
  ({ serverId, address, tenantId } = {
    serverId: made.serverId,
    address: allocation!.address,
    tenantId: tenant.id,
  });
  // As the monitor learns it from the admin API.
  await monitor.monitor.sites.mapCluster(monitorSystem, operations.clusterId, monitor.siteId);
  await monitor.database.pool.query(
    `insert into allocation_targets (allocation_id, billing_account_id, virtual_machine_id, cluster_id, address, assigned_at, is_supported)
     values ($1, $2, $3, $4, $5, now(), true)`,
    [allocation!.id, tenantId, serverId, operations.clusterId, address],
  );
  await monitor.database.pool.query(
    `insert into inventory_vms (cluster_id, vm_id, name, state, updated_at) values ($1, $2, 'web-1', 'running', now())`,
    [operations.clusterId, serverId],
  );
});
after(async () => {
  await browser?.close();
  await pair?.[Symbol.asyncDispose]();
});

async function openPage(javaScriptEnabled = true): Promise<{ page: Page; faults: string[] }> {
  const page = await (await browser.newContext({ javaScriptEnabled })).newPage();
  page.setDefaultTimeout(120_000);
  const faults: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(message.text());
  });
  return { page, faults };
}

async function signIn(page: Page, url: string, { email, password }: { email: string; password: string }) {
  await page.goto(`${url}/sign-in`);
  await page.fill('#field-email', email);
  await page.fill('#field-password', password);
  await Promise.all([page.waitForURL((to) => to.pathname !== '/sign-in'), page.click('button[type=submit]')]);
}

describe('from the operators’ console to the monitor', () => {
  test('a click on "In the monitor" of a server opens the explorer of that server, signed in, without a click more', async () => {
    const { page, faults } = await openPage();
    await signIn(page, pair.operations.url, logins.operations);
    await page.goto(`${pair.operations.url}/console/servers/${serverId}`);
    await page.click('.page-header >> text="In the monitor"');
    await page.waitForURL(`${pair.monitorUrl}/sites/**`);
    const url = new URL(page.url());
    assert.equal(url.pathname, `/sites/${pair.monitor.siteId}/explore`);
    assert.equal(url.searchParams.get('q'), `server:${pair.operations.clusterId}/${serverId}`);
    await page.waitForSelector('text=Olga');
    assert.deepEqual(faults, [], 'nothing that the policy of pages refuses');
    await page.goBack();
    assert.equal(
      page.url(),
      `${pair.operations.url}/console/servers/${serverId}`,
      'back leads to where one was',
    );
    const cookies = await page.context().cookies();
    assert.ok(!cookies.some(({ name }) => /sign_on|ticket/.test(name)), 'nothing of the sign-on is left');
  });

  test('the links of an address and of a customer open their pages', async () => {
    const { page } = await openPage();
    await signIn(page, pair.operations.url, logins.operations);
    await page.goto(`${pair.operations.url}/console/customers/${tenantId}`);
    await page.click('.page-header >> text="In the monitor"');
    await page.waitForURL(`${pair.monitorUrl}/sites/**`);
    assert.equal(new URL(page.url()).searchParams.get('q'), `customer:${tenantId}`);
    await pair.monitor.monitor.sites.setLocalCidrs(monitorSystem, pair.monitor.siteId, [`${address}/32`]);
    await page.goto(`${pair.operations.url}/console/servers/${serverId}`);
    await page.click(`[aria-label="${address} in the monitor"]`);
    await page.waitForURL(`${pair.monitorUrl}/sites/${pair.monitor.siteId}/addresses/${address}`);
  });

  test('works by one button where scripts are off', async () => {
    const { page } = await openPage(false);
    await signIn(page, pair.operations.url, logins.operations);
    await page.goto(`${pair.operations.url}/console/servers/${serverId}`);
    await page.click('.page-header >> text="In the monitor"');
    await page.waitForURL(`${pair.operations.url}/sign-on/ask?**`);
    await page.click('text="Continue"');
    await page.waitForURL(`${pair.monitorUrl}/sites/**`);
    await page.waitForSelector('text=Olga');
  });

  test('a server that the monitor does not know is a page that says why', async () => {
    const { page } = await openPage();
    await signIn(page, pair.operations.url, logins.operations);
    await page.goto(
      `${pair.monitorUrl}/sign-on?to=${encodeURIComponent('/find/server?cluster_id=999&server_id=1')}`,
    );
    await page.waitForSelector('text=Not found in the monitor');
    await page.waitForSelector('text=not mapped to a site');
  });
});

describe('from the monitor to the operators’ console', () => {
  test('a click on "In operations" opens the page of the server, signed in', async () => {
    const { page, faults } = await openPage();
    await signIn(page, pair.monitorUrl, logins.monitor);
    const query = encodeURIComponent(`server:${pair.operations.clusterId}/${serverId}`);
    await page.goto(`${pair.monitorUrl}/sites/${pair.monitor.siteId}/explore?q=${query}`);
    await page.click('text="In operations"');
    await page.waitForURL(`${pair.operations.url}/console/servers/${serverId}`);
    await page.waitForSelector('text=Olivia');
    assert.deepEqual(faults, []);
  });

  test('an address leads to the server that has it now; what is gone, to a page that says so', async () => {
    const { page } = await openPage();
    await signIn(page, pair.monitorUrl, logins.monitor);
    await page.goto(`${pair.monitorUrl}/sites/${pair.monitor.siteId}/addresses/${address}`);
    await page.click('text="In operations"');
    await page.waitForURL(`${pair.operations.url}/console/servers/${serverId}`);
    for (const place of [
      'server?cluster_id=1&server_id=999999',
      'address?address=192.0.2.250',
      'customer?account_id=999999',
    ]) {
      const answer = await page.goto(`${pair.operations.url}/find/${place}`);
      assert.equal(answer?.status(), 404, place);
      await page.waitForSelector('text=Not found in this console');
    }
  });
});

describe('without a sign-on', () => {
  test('pages of both consoles have no link to the other one', async () => {
    const { operations, monitor } = pair;
    const peers = [
      (await operations.signOn.view()).peer!,
      (await monitor.monitor.signOn.view()).peer!,
    ] as const;
    await operations.signOn.savePeer(systemActor, { ...peers[0], isOffered: false });
    await monitor.monitor.signOn.savePeer(monitorSystem, { ...peers[1], isOffered: false });
    const { page } = await openPage();
    await signIn(page, operations.url, logins.operations);
    await page.goto(`${operations.url}/console/servers/${serverId}`);
    assert.equal(await page.locator('text=In the monitor').count(), 0);
    await signIn(page, pair.monitorUrl, logins.monitor);
    await page.goto(`${pair.monitorUrl}/sites/${monitor.siteId}/addresses/${address}`);
    assert.equal(await page.locator('text=In operations').count(), 0);
    await operations.signOn.savePeer(systemActor, peers[0]);
    await monitor.monitor.signOn.savePeer(monitorSystem, peers[1]);
  });
});
