/** An operator in a real browser: signs in, finds a server by its name, and powers it off. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password } from '#operations/testing/dated-world.ts';
import { openPage } from '#service-kit/pages/testing/open-page.ts';
import { launchBrowser } from '#service-kit/testing/browser.ts';

test('an operator signs in, finds a server by keyboard, and powers it off', async () => {
  await using world = await createWorld();
  const { tenant } = await world.createCustomer('Watched');
  const { serverId } = await world.deploy(tenant, 'watched-server');
  const email = 'operator@staff.test';
  const person = { email, name: 'Operator', password, staffRole: 'operator' } as const;
  await world.accounts.createPerson(systemActor, person);
  await using browser = await launchBrowser();
  await using opened = await openPage(browser, `${world.url}/console/`);
  const { page } = opened;
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill(password);
  await Promise.all([page.waitForURL('**/console/'), page.keyboard.press('Enter')]);
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox').fill('watched-s');
  await page.getByRole('option', { name: /^watched-server/ }).waitFor();
  await Promise.all([page.waitForURL(`**/console/servers/${serverId}`), page.keyboard.press('Enter')]);
  await page.getByRole('button', { name: 'Power off' }).click();
  const drawer = page.locator('#ask-stop');
  await drawer.waitFor();
  await Promise.all([
    page.waitForResponse((answer) => answer.request().method() === 'POST' && answer.status() === 303),
    drawer.getByRole('button', { name: 'Power off' }).click(),
  ]);
  await world.jobs.drain();
  const [action] = await world.servers.listActions(systemActor, tenant.id, serverId, 1);
  assert.deepEqual([action?.command, action?.status], ['stop', 'success']);
  await page.goto(`${world.url}/console/servers/${serverId}`);
  await page.getByText('Stopped since').first().waitFor();
  assert.deepEqual(opened.complaints, []);
});
