// Slow: boots a Linux in software, whose console a browser shows.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import type { ConsoleKind } from '#contracts/capabilities.ts';
import { whyNoLibvirt } from '#operations/hypervisors/testing/libvirt-world.ts';
import { writeLinuxImage } from '#operations/hypervisors/testing/linux-image.ts';
import { createWorld, password, type World } from '#operations/testing/create-world.ts';
import { launchBrowser } from '#service-kit/testing/browser.ts';
import { until } from '#service-kit/testing/until.ts';

const patientMs = 120_000;
let world: World;
let browser: Browser;
let folder: string;
let kinds: ConsoleKind[] = ['text'];

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-console-'));
  world = await createWorld({
    hypervisor: (usual) => ({
      ...usual,
      get consoleKinds() {
        return kinds;
      },
      openConsole: async (name, kind) =>
        kind === 'text' ? usual.openConsole(name, kind) : connect(join(folder, 'vnc.sock')),
    }),
  });
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
  await world?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

/** Signs in, and opens the console from the server's page. */
async function openConsole(name: string): Promise<{ page: Page; faults: string[] }> {
  const { tenant, email } = await world.createCustomer(name);
  const { serverId } = await world.deploy(tenant, name.toLowerCase());
  const page = await (await browser.newContext()).newPage();
  page.setDefaultTimeout(patientMs);
  const faults: string[] = [];
  page.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
  page.on('pageerror', (error) => faults.push(String(error)));
  await page.goto(`${world.url}/sign-in`);
  await page.fill('#field-email', email);
  await page.fill('#field-password', password);
  await page.click('button[type=submit]');
  await page.waitForURL(/\/client\//);
  await page.goto(`${world.url}/client/servers/${serverId}`);
  await page.click('button:text-is("Console")');
  await page.getByText('Connected.').waitFor();
  return { page, faults };
}

test('the portal shows the terminal of a server, and what is typed', async () => {
  kinds = ['text'];
  const { page, faults } = await openConsole('Teresa');
  await page.getByText('login:').waitFor();
  await page.keyboard.type('kR7wq2Vn9tYbXc4Mx');
  await page.keyboard.press('Backspace');
  await page.keyboard.press('Enter');
  await page.getByText(/login: kR7wq2Vn9tYbXc4M$/m).waitFor();
  assert.deepEqual(faults, []);
});

test('the portal shows the screen of a Linux, which takes its keyboard, and says when it has ended', {
  skip: whyNoLibvirt(),
}, async (t) => {
  kinds = ['vnc', 'text'];
  const [image, disk] = [join(folder, 'linux.qcow2'), join(folder, 'disk.qcow2')];
  writeLinuxImage(image, 'linux');
  execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', '-b', image, '-F', 'qcow2', disk]);
  const guest = spawn(
    'qemu-system-x86_64',
    [
      ...['-m', '96', '-accel', 'tcg', '-nic', 'none', '-no-reboot', '-monitor', 'none'],
      ...['-drive', `file=${disk},if=virtio`, '-serial', 'stdio', '-vnc', `unix:${folder}/vnc.sock`],
    ],
    { stdio: ['ignore', 'pipe', 'ignore'] },
  );
  const ended = once(guest, 'exit');
  t.after(() => guest.kill('SIGKILL'));
  let said = '';
  guest.stdout.on('data', (piece: Buffer) => {
    said += piece;
  });
  await until('the guest has booted', patientMs, () => said.includes('guest is up'));
  const { page, faults } = await openConsole('Valerie');
  await until('the screen is painted', patientMs, () =>
    page.evaluate<boolean>(`(() => {
      const canvas = document.querySelector('.console-screen canvas');
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      return data.some((value, index) => index % 4 !== 3 && value > 100);
    })()`),
  );
  await page.keyboard.type('poweroff -f', { delay: 20 });
  await page.keyboard.press('Enter');
  await ended;
  await page.getByText('The console is closed.').waitFor();
  assert.deepEqual(faults, []);
});
