/**
 * An operator's tasks by keyboard, in a real browser on the real monitor: find a MAC, read the site's traffic and
 * applications, and download a table. At the end one task with the pointer: dragging over a chart.
 */
import assert from 'node:assert/strict';
import { text as textOf } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { captureMinute, createSpool, host, usageRow } from '#monitor/testing/index.ts';
import { type MonitorServer, startMonitorServer } from '#monitor/testing/server.ts';
import { type KeyboardUser, startKeyboardUser } from './testing/keyboard.ts';

describe('an operator’s tasks by keyboard', () => {
  let server: MonitorServer;
  let user: KeyboardUser;
  let site: string;

  before(async () => {
    server = await startMonitorServer();
    const { monitor, siteId } = server;
    site = `${server.url}/sites/${siteId}`;
    const { token } = await monitor.sensors.createToken(systemActor, siteId);
    const made = await monitor.sensors.enrol({
      token,
      host_name: 'hv-1',
      node: 'n1',
      sensor_version: '0.1.0',
    });
    const sensor = (await monitor.sensors.authenticate(made!.credential))!;
    const newest = Math.floor(Date.now() / 60_000) * 60 - 120;
    const minutes = Array.from({ length: 40 }, (_, ago) =>
      captureMinute({
        minute: newest - ago * 60,
        hosts: [host('192.0.2.10', 9_000_000 + ago * 1e5, 900_000, 'br0|52:54:00:00:00:0a')],
        usage: [usageRow(), usageRow({ server: '198.51.100.8', serverBytes: 500 })],
      }),
    );
    const upload = createSpool().upload(minutes);
    await monitor.inbox.receive(sensor, compressUpload(encodeUpload(upload)), 'zstd');
    await monitor.inbox.drain();
    user = await startKeyboardUser();
    const [name, value] = (await server.signIn('viewer')).cookie.split('=') as [string, string];
    await user.page.context().addCookies([{ name, value, url: server.url }]);
  });
  after(async () => {
    await user?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });

  const device = () => user.page.locator('.suggestions a', { hasText: '52:54:00:00:00:0a' });

  test('what is typed before the script of the search has come is suggested too', async () => {
    const held = Promise.withResolvers<void>();
    const script = /htmx\.js/;
    await user.page.route(script, async (route) => {
      await held.promise;
      await route.continue();
    });
    await user.open(server.url);
    await user.press('/');
    await user.page.keyboard.type('52-54-00');
    held.resolve();
    await device().waitFor();
    await user.page.unroute(script);
  });

  test('the suggestions are those of the last text, also where earlier answers have not come', async () => {
    const held = Promise.withResolvers<void>();
    const early = /\/search\/suggestions\?q=5.?$/;
    await user.page.route(early, async (route) => {
      await held.promise;
      await route.continue().catch(() => undefined);
    });
    await user.open(server.url);
    await user.press('/');
    for (const text of ['5', '2', '-54-00']) {
      const asked = user.page.waitForRequest(/\/search\/suggestions/);
      await user.page.keyboard.type(text);
      await asked;
    }
    await device().waitFor();
    held.resolve();
    await user.page.unroute(early);
  });

  test('/ and a part of a MAC, in any notation: the suggestion leads to the device', async () => {
    await user.open(server.url);
    await user.press('/');
    await user.page.keyboard.type('52-54-00');
    await device().waitFor();
    await user.press('ArrowDown');
    await Promise.all([user.page.waitForURL(/\/devices\/\d+$/), user.press('Enter')]);
    assert.match(await user.text(), /192\.0\.2\.10/);
  });

  test('g t goes to the site’s traffic; a shorter range, and the sources of a number', async () => {
    await Promise.all([user.page.waitForURL(`${site}/traffic`), user.press('g', 't')]);
    await user.enter(/^6 h$/);
    assert.match(user.page.url(), /range=6h/);
    await user.enter(/^sources$/);
    await user.enter(/^192\.0\.2\.10, the captures/);
    assert.match(await user.text(), /the only capture with it/);
  });

  test('g a goes to the applications; a row expands in place, and its connections appear on focus', async () => {
    await Promise.all([user.page.waitForURL(`${site}/applications`), user.press('g', 'a')]);
    await user.tabTo(/^▸ example\.net$/);
    await user.press('Enter');
    await user.page.locator('.facets').waitFor();
    assert.match(await user.text(), /Destinations\s*2/);
    await user.tabTo(/^192\.0\.2\.10 to 198\.51\.100\.7/);
    const tip = user.page.locator('.has-tip:focus .tip li');
    await tip.first().waitFor();
    assert.equal(await tip.count(), 2);
  });

  test('the table is a file', async () => {
    await user.tabTo(/^Applications by bytes as CSV$/);
    const [file] = await Promise.all([user.page.waitForEvent('download'), user.press('Enter')]);
    assert.match(file.suggestedFilename(), /applications.*\.csv$/);
    const [header, row] = (await textOf(await file.createReadStream())).split('\r\n');
    assert.match(header!, /^name,service,evidence,in_bytes,out_bytes/);
    assert.match(row!, /^example\.net,tcp\/443,tls_sni,\d+,\d+/);
  });

  test('no clicks, and no errors in the browser', async () => {
    assert.equal(await user.pointerEvents(), 0);
    assert.deepEqual(user.complaints, []);
  });

  test('dragging over a chart selects that range, which is in the URL', async () => {
    await user.open(`${site}/traffic?range=1h`);
    const plot = user.page.locator('#site-traffic .u-over');
    await plot.waitFor();
    const { x, y, width } = (await plot.boundingBox())!;
    await user.page.mouse.move(x + width * 0.5, y + 40);
    await user.page.mouse.down();
    await user.page.mouse.move(x + width * 0.75, y + 60, { steps: 5 });
    await Promise.all([user.page.waitForURL(/range=custom/), user.page.mouse.up()]);
    const query = new URL(user.page.url()).searchParams;
    const minutes = (Date.parse(query.get('to')!) - Date.parse(query.get('from')!)) / 60_000;
    // The chart begins at its first value, some 42 minutes ago.
    assert.ok(minutes >= 9 && minutes <= 13, `${minutes} of 42 minutes`);
    assert.deepEqual(user.complaints, []);
  });
});
