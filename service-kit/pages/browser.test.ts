// Slow: drives a real browser through the gallery of all components.
/** What only a browser can tell: scripts run under our policy, keys and theme work, nothing is wider than a phone. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { table } from './table.ts';
import { type ServedGallery, serveGallery } from './testing/serve-gallery.ts';

let gallery: ServedGallery;
before(async () => {
  gallery = await serveGallery();
});
after(() => gallery?.stop());

const open: ServedGallery['open'] = (...of) => gallery.open(...of);

const ground = (page: Page) => page.evaluate<string>('getComputedStyle(document.body).backgroundColor');

describe('pages in a browser', () => {
  test('the gallery runs under the policy without a complaint, charts drawn', async () => {
    await using opened = await open('/dev/gallery?toast=1');
    await opened.page.locator('#traffic svc-chart canvas').waitFor();
    await opened.page.locator('#applications svc-chart canvas').waitFor();
    assert.deepEqual(opened.complaints, []);
  });

  test('an inline script is refused, and the test sees it', async () => {
    await using opened = await open('/dev/gallery');
    await opened.page.evaluate(
      "document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.ran = 1' }))",
    );
    assert.equal(await opened.page.evaluate('window.ran'), undefined);
    assert.match(opened.complaints.join(), /policy refused|violates/);
  });

  test('the theme switch changes the scheme at once and on the next page', async () => {
    await using opened = await open('/dev/gallery');
    const { page } = opened;
    const light = await ground(page);
    await page.getByRole('button', { name: 'Dark' }).click();
    const dark = await ground(page);
    assert.notEqual(dark, light);
    assert.equal(await page.getByRole('button', { name: 'Dark' }).getAttribute('aria-pressed'), 'true');
    await page.goto(`${gallery.url}/dev/gallery/sign-in`);
    assert.equal(await ground(page), dark);
    await page.goto(`${gallery.url}/dev/gallery`);
    await page.getByRole('button', { name: 'Auto' }).click();
    assert.equal(await ground(page), light);
    assert.deepEqual(opened.complaints, []);
  });

  test('a time is written in the reader’s format, and in UTC wherever the reader is', async () => {
    await using opened = await open('/dev/gallery', { locale: 'de-DE', timezoneId: 'Asia/Tokyo' });
    const time = opened.page.locator('time[data-form="minutes"]').first();
    const at = Date.parse((await time.getAttribute('datetime'))!);
    const german = new Intl.DateTimeFormat('de-DE', {
      dateStyle: 'medium',
      timeStyle: 'short',
      timeZone: 'UTC',
    });
    assert.equal(await time.textContent(), german.format(at));
    assert.match(german.format(at), /^\d\d\.\d\d\.\d{4}, \d\d:\d\d$/);
  });

  test('figures and money are written in the reader’s format once, and nothing else that has digits', async () => {
    await using opened = await open('/dev/gallery', { locale: 'de-DE' });
    const { page } = opened;
    const given = [
      ...[
        '<b class="figure">1,234,567</b>',
        '<b class="figure">99.95 %</b>',
        '<b class="figure">−$1,234.50</b>',
      ],
      ...['<p>Costs $0.0125 of $1,000.00.</p>', '<p>OpenSSH 8.9, 1,234 of them</p>', '<code>$1.50</code>'],
      ...['<b class="figure">192.0.2.10</b>', '<b class="figure">12</b>', '<b class="figure">8.9p1</b>'],
    ];
    const shown = await page.evaluate<string[]>(`(() => {
      const place = document.querySelector('main');
      place.innerHTML = ${JSON.stringify(given.join(''))};
      for (const _ of [1, 2]) document.dispatchEvent(new Event('refreshed'));
      return [...place.children].map(({ textContent }) => textContent);
    })()`);
    assert.deepEqual(
      shown.map((text) => text.replaceAll('\u00a0', ' ')),
      [
        ...['1.234.567', '99,95 %', '−1.234,50 $', 'Costs 0,0125 $ of 1.000,00 $.'],
        ...['OpenSSH 8.9, 1,234 of them', '$1.50', '192.0.2.10', '12', '8.9p1'],
      ],
    );
  });

  test('a phone shows eight rows of a long list until it is asked for all, a wide window all of them', async () => {
    const rows = Array.from({ length: 11 }, (_, at) => ({ name: `row ${at}` }));
    const list = table({
      ...{ caption: 'Long', rows, card: { line: [] }, empty: { title: 'None', text: '' } },
      columns: [{ key: 'name', header: 'Name', cell: ({ name }: { name: string }) => name }],
    });
    for (const [width, shown] of [
      [390, 8],
      [1440, 11],
    ] as const) {
      await using opened = await open('/dev/gallery', { viewport: { width, height: 900 } });
      const { page } = opened;
      await page.evaluate(
        `document.querySelector('main').insertAdjacentHTML('afterbegin', ${JSON.stringify(String(list))})`,
      );
      const visible = page.locator('main > .table-frame tbody > tr:visible');
      assert.equal(await visible.count(), shown, `${width}`);
      if (width === 390) await page.getByText('Show all 11').click();
      assert.equal(await visible.count(), 11);
    }
  });

  test('/ focuses the search, and types a slash inside a field', async () => {
    await using opened = await open('/dev/gallery');
    const { page } = opened;
    await page.keyboard.press('/');
    assert.equal(await page.evaluate("document.activeElement.matches('[data-search]')"), true);
    await page.keyboard.type('a/g');
    assert.equal(await page.locator('[data-search]').inputValue(), 'a/g');
  });

  test('g and a letter goes to a place', async () => {
    await using opened = await open('/dev/gallery');
    await opened.page.keyboard.press('g');
    await opened.page.keyboard.press('s');
    await opened.page.waitForURL('**/dev/gallery/sign-in');
  });

  test('arrows move through the rows of a table', async () => {
    await using opened = await open('/dev/gallery');
    const { page } = opened;
    const focused = () => page.evaluate<string>('document.activeElement.textContent');
    await page.locator('#servers .table-scroll').focus();
    await page.keyboard.press('ArrowDown');
    assert.equal(await focused(), 'web-1');
    await page.keyboard.press('ArrowDown');
    assert.equal(await focused(), 'web-2');
    await page.keyboard.press('End');
    assert.equal(await focused(), 'backup');
    await page.keyboard.press('ArrowUp');
    assert.match(await focused(), /^database/);
  });

  test('an error that repeats a long input does not widen the page', async () => {
    await using opened = await open('/dev/gallery', { viewport: { width: 390, height: 844 } });
    const wider = await opened.page.evaluate<number>(`(() => {
      const error = [...document.querySelectorAll('.field-error')].find((one) => one.checkVisibility());
      error.textContent = 'Not a prefix: ' + 'x'.repeat(300);
      return Math.max(document.documentElement.scrollWidth - innerWidth, error.scrollWidth - error.clientWidth);
    })()`);
    assert.equal(wider, 0);
  });

  test('back from a refused form its drawer is open, with what was entered', async () => {
    await using opened = await open('/dev/gallery');
    const { page } = opened;
    const drawer = page.locator('#drawer-key');
    // As when a minute passes: the browser restores the time that the form of the range had before.
    await page.getByRole('button', { name: 'Custom', exact: true }).first().click();
    await page.locator('#range-from').fill('2026-01-01T00:00');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Open a drawer' }).click();
    await drawer.locator('input[type="text"]').first().fill('entered');
    await page.goto(`${gallery.url}/dev/gallery/error/422`);
    assert.match(await page.locator('.error-page').innerText(), /Name has more than 100 characters\./);
    await page.getByRole('button', { name: 'Back', exact: true }).click();
    // A page that the browser had kept is not loaded again.
    await page.waitForURL('**/dev/gallery', { waitUntil: 'commit' });
    await drawer.waitFor({ state: 'visible' });
    assert.equal(await drawer.locator('input[type="text"]').first().inputValue(), 'entered');
  });

  test('a confirmation opens its button only for the right name', async () => {
    await using opened = await open('/dev/gallery');
    const box = opened.page.locator('[data-confirm]');
    const button = box.getByRole('button', { name: 'Destroy server' });
    assert.equal(await button.isDisabled(), true);
    await box.locator('input[type="text"]').fill('web-2');
    assert.equal(await button.isDisabled(), true);
    await box.locator('input[type="text"]').fill('web-1');
    assert.equal(await button.isDisabled(), false);
  });

  test('the crosshair tells the exact values with their units', async () => {
    await using opened = await open('/dev/gallery');
    const { page } = opened;
    const plot = page.locator('#traffic .u-over');
    await plot.waitFor();
    await plot.hover({ position: { x: 700, y: 60 } });
    const said = (await page.locator('#traffic .chart-tip').textContent()) ?? '';
    assert.match(said, /\d{4}-\d\d-\d\d \d\d:\d\d UTC/);
    assert.match(said, /In[\d.]+ Mbit\/s[\d,.]+ bit\/s/);
  });

  test('the crosshair is in step over all charts of a page, and tells the reason of a gap', async () => {
    await using opened = await open('/dev/gallery?range=6h');
    const { page } = opened;
    await page.locator('#explained .ribbon-part').first().waitFor();
    const part = page.locator('#explained .ribbon-part[title^="sensor not running"]');
    await part.hover();
    const tip = page.locator('#explained .chart-tip');
    assert.match((await tip.textContent()) ?? '', /sensor not running/);
    const timeOf = async (id: string) =>
      /\d{4}-\d\d-\d\d \d\d:\d\d/.exec((await page.locator(`#${id} .chart-tip p`).textContent()) ?? '')?.[0];
    assert.equal(await timeOf('stacked'), await timeOf('explained'));
    assert.deepEqual(opened.complaints, []);
  });

  test('dragging over a chart puts the range in the URL, a double click goes back out', async () => {
    await using opened = await open('/dev/gallery?range=6h');
    const { page } = opened;
    const plot = page.locator('#explained .u-over');
    await plot.waitFor();
    await plot.scrollIntoViewIfNeeded();
    const box = (await plot.boundingBox())!;
    await page.mouse.move(box.x + 300, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + 500, box.y + 40);
    await page.mouse.up();
    await page.waitForURL(/range=custom/);
    const query = new URL(page.url()).searchParams;
    assert.equal(query.get('out'), '6h');
    assert.match(query.get('from') ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\dZ$/);
    await page.locator('#explained .u-over').dblclick({ position: { x: 100, y: 30 } });
    await page.waitForURL((url) => url.searchParams.get('range') === '6h' && !url.searchParams.has('out'));
    assert.deepEqual(opened.complaints, []);
  });

  test('by keyboard arrows move the crosshair, and with Shift choose a range that Enter asks for', async () => {
    await using opened = await open('/dev/gallery?range=6h');
    const { page } = opened;
    const box = page.locator('#explained [role="img"]');
    await box.waitFor();
    assert.match((await box.getAttribute('aria-label')) ?? '', /: least .+, most .+ gaps?; the table below/);
    await box.focus();
    await page.keyboard.press('ArrowLeft');
    const tip = page.locator('#explained .chart-tip');
    const before = (await tip.locator('p').textContent()) ?? '';
    for (let step = 0; step < 30; step += 1) await page.keyboard.press('Shift+ArrowLeft');
    assert.notEqual(await tip.locator('p').textContent(), before);
    await page.keyboard.press('Enter');
    await page.waitForURL(/range=custom/);
    assert.deepEqual(opened.complaints, []);
  });

  test('the crosshair’s box has six rows, the largest first', async () => {
    await using opened = await open('/dev/gallery?range=6h');
    const { page } = opened;
    const plot = page.locator('#stacked .u-over');
    await plot.waitFor();
    await plot.hover({ position: { x: 300, y: 60 } });
    const rows = await page.locator('#stacked .chart-tip td:nth-child(3)').allTextContents();
    const sizes = rows.map((text) => Number(text.replaceAll(/[^\d.]/g, '')));
    assert.ok(rows.length > 1 && rows.length <= 6);
    assert.deepEqual(
      sizes,
      sizes.toSorted((a, b) => b - a),
    );
  });

  test('several gaps are one line, and each is told on demand', async () => {
    await using opened = await open('/dev/gallery?range=24h');
    const { page } = opened;
    const words = page.locator('#explained .ribbon-words');
    await words.waitFor();
    assert.match((await words.locator('summary').textContent()) ?? '', /^Data missing: /);
    assert.equal(await words.locator('li').first().isVisible(), false);
    await words.locator('summary').click();
    assert.equal(await words.locator('li').first().isVisible(), true);
  });

  test('a flag leads to what happened; several at one place open the list of all', async () => {
    await using opened = await open('/dev/gallery?range=24h');
    const { page } = opened;
    const flags = page.locator('#explained .chart-flag');
    await flags.first().waitFor();
    assert.equal(await flags.first().getAttribute('href'), '/dev/gallery');
    assert.match((await flags.first().getAttribute('title')) ?? '', /UTC: Server deployed$/);
    await page.locator('#explained .chart-flag.is-many').press('Enter');
    assert.equal(await page.locator('#explained .chart-flag-list').isVisible(), true);
  });

  test('a flag of the last step stands at the end of the axis, no flag covers the number of several, and one without a link has no aria-label', async () => {
    await using opened = await open('/dev/gallery?range=24h');
    const { page } = opened;
    await page.locator('#explained .chart-flag').first().waitFor();
    const shown = await page.evaluate<{
      width: number;
      flags: [left: number, text: string, label: string | null][];
    }>(`(() => {
      const chart = document.querySelector('#explained svc-chart');
      const source = document.getElementById(chart.dataset.source);
      const data = JSON.parse(source.textContent);
      const { min, max } = chart.plot.scales.x;
      const msOfPixel = (max - min) / chart.plot.over.clientWidth;
      const at = (pixel) => ({ timeMs: min + pixel * msOfPixel, text: 'Rebooted', tone: 'neutral', href: null });
      // Two together, one that stands clear of a flag and not of a number, one beside it, and one in the last step.
      const flags = [at(100), at(110), at(120), at(130), { ...at(0), timeMs: data.range.toMs - 1 }];
      source.textContent = JSON.stringify({ ...data, flags });
      document.dispatchEvent(new Event('refreshed'));
      return new Promise((shown) => requestAnimationFrame(() => shown({
        width: chart.plot.over.clientWidth,
        flags: [...document.querySelectorAll('#explained .chart-flag')]
          .map((flag) => [Math.round(parseFloat(flag.style.left)), flag.textContent, flag.getAttribute('aria-label')]),
      })));
    })()`);
    const [several] = shown.flags;
    assert.match(several![2]!, /^3 events: /);
    assert.deepEqual(shown.flags, [
      [100, '3', several![2]],
      [130, '', null],
      [shown.width, '', null],
    ]);
  });

  test('a step that sticks out of the range is in the plot, as the last hour of 24 h does', async () => {
    await using opened = await open('/dev/gallery');
    const { page } = opened;
    await page.locator('#traffic svc-chart canvas').waitFor();
    const shown = (timesMs: number[], fromMs: number, toMs: number) =>
      page.evaluate<[number, number]>(`(() => {
        const chart = document.querySelector('#traffic svc-chart');
        const source = document.getElementById(chart.dataset.source);
        const data = JSON.parse(source.textContent);
        const [series] = data.series;
        source.textContent = JSON.stringify({ ...data, times: ${JSON.stringify(timesMs)}, stepMs: 60, shape: 'stacked',
          range: { fromMs: ${fromMs}, toMs: ${toMs} }, series: [{ ...series, values: ${JSON.stringify(timesMs)} }] });
        document.dispatchEvent(new Event('refreshed'));
        return new Promise((shown) =>
          requestAnimationFrame(() => shown([chart.plot.scales.x.min, chart.plot.scales.x.max])));
      })()`);
    assert.deepEqual(await shown([60, 120, 180, 240], 85, 265), [60, 240]);
    assert.deepEqual(await shown([60, 120, 180, 240], 60, 300), [60, 240]);
    assert.deepEqual(await shown([120, 180], 60, 300), [60, 240]);
    assert.deepEqual(opened.complaints, []);
  });

  test('a name hides its line by its swatch and leads on by its text; out is above zero, in below', async () => {
    await using opened = await open('/dev/gallery?range=6h');
    const { page } = opened;
    const show = page.locator('#stacked').getByRole('button', { name: 'Show example.com' });
    await show.click();
    assert.equal(await show.getAttribute('aria-pressed'), 'false');
    assert.equal(
      await page
        .locator('#stacked .chart-legend')
        .getByRole('link', { name: 'example.com' })
        .getAttribute('href'),
      '/dev/gallery',
    );
    const places = await page.evaluate<number[]>(
      "['In', 'Out'].map((label) => { const { plot } = document.querySelector('#traffic svc-chart'); const at = plot.series.findIndex((one) => one.label === label); return Math.sign(plot.data[at].find((value) => value !== null)); })",
    );
    assert.deepEqual(places, [-1, 1]);
    assert.doesNotMatch((await page.locator('#traffic .chart-legend').textContent()) ?? '', /[↑↓]/);
  });

  test('a refreshed part and a chart renew themselves; drawings stay, and what was unfolded', async () => {
    await using opened = await open('/dev/gallery', {}, (page) => page.clock.install());
    const { page } = opened;
    await page.locator('#traffic canvas').waitFor();
    await page.evaluate("document.querySelector('#servers tbody th a').textContent = 'old'");
    await page.locator('#applications summary').click();
    const answers = [
      page.waitForResponse('**/dev/gallery'),
      page.waitForResponse('**/dev/gallery/chart.json'),
    ];
    await page.clock.runFor(61_000);
    await Promise.all(answers);
    await page.locator('#servers tbody th a', { hasText: 'web-1' }).waitFor();
    assert.equal(await page.locator('#traffic canvas').count(), 1);
    assert.equal(await page.locator('#applications canvas').count(), 1);
    assert.equal(await page.locator('#applications details').getAttribute('open'), '');
    assert.deepEqual(opened.complaints, []);
  });

  test('without JavaScript the values stand open in place of the chart, and nothing dead is shown', async () => {
    await using opened = await open('/dev/gallery', { javaScriptEnabled: false });
    const { page } = opened;
    assert.equal(await page.locator('#traffic .chart-values table').isVisible(), true);
    assert.equal(await page.locator('#traffic svc-chart').isVisible(), false);
    assert.equal(await page.locator('.theme-switch').isVisible(), false);
    assert.equal(await page.locator('[data-copy]').first().isVisible(), false);
    await page.getByRole('button', { name: 'Open a drawer' }).click();
    assert.equal(await page.locator('#drawer-key').isVisible(), true);
  });

  test('nothing is wider than a phone, and the navigation unfolds there', async () => {
    await using opened = await open('/dev/gallery', { viewport: { width: 390, height: 844 } });
    const { page } = opened;
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390);
    assert.equal(await page.locator('#navigation').isVisible(), false);
    await page.getByRole('button', { name: 'Menu' }).click();
    assert.equal(await page.locator('#navigation').isVisible(), true);
    for (const path of [
      '/dev/gallery/sign-in?failed',
      '/dev/gallery/error/404',
      '/dev/gallery/error/500?inside',
    ]) {
      await page.goto(`${gallery.url}${path}`);
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390, path);
    }
  });
});

describe('assets', () => {
  test('an asset of this release is kept for ever, one asked by another hash is not kept', async () => {
    const page = await (await fetch(`${gallery.url}/dev/gallery/sign-in`)).text();
    const path = /href="(\/assets\/[^"]+pages\.css)"/.exec(page)?.[1] ?? '';
    const current = await fetch(`${gallery.url}${path}`);
    assert.equal(current.status, 200);
    assert.equal(current.headers.get('cache-control'), 'public, max-age=31536000, immutable');
    assert.equal(current.headers.get('content-encoding'), 'gzip');
    assert.match(await current.text(), /--accent/);
    const older = await fetch(`${gallery.url}/assets/older/pages.css`, {
      headers: { 'accept-encoding': 'identity' },
    });
    assert.equal(older.headers.get('cache-control'), 'no-store');
    assert.equal(older.headers.get('content-encoding'), null);
    assert.equal((await fetch(`${gallery.url}/assets/older/..%2f..%2fpackage.json`)).status, 404);
  });

  test('a page with charts that refreshes itself loads less than 64 KiB of files as they are sent', async () => {
    const page = await (await fetch(`${gallery.url}/dev/gallery`)).text();
    const [, hash = ''] = /assets\/([^/]+)\/pages\.css/.exec(page) ?? [];
    const left = [...page.matchAll(/\/assets\/[^/"]+\/([\w.-]+)"/g)].map(([, name = '']) => name);
    const sizes = new Map<string, number>();
    // What the page names, and what those files import in turn.
    for (let name = left.pop(); name !== undefined; name = left.pop()) {
      if (sizes.has(name)) continue;
      const answer = await fetch(`${gallery.url}/assets/${hash}/${name}`);
      assert.equal(answer.headers.get('content-encoding'), 'gzip', name);
      sizes.set(name, Number(answer.headers.get('content-length')));
      const text = await answer.text();
      if (!name.endsWith('.js')) continue;
      for (const [, imported = ''] of text.matchAll(/(?:from |import |import\()'\.\/([\w.-]+)'/g))
        left.push(imported);
    }
    for (const name of ['pages.css', 'uplot.js', 'chart.js', 'refresh.js', 'palette.js', 'htmx.js'])
      assert.ok(sizes.has(name), name);
    const all = [...sizes.values()].reduce((sum, size) => sum + size, 0);
    assert.ok(all < 64 * 1024, `${all} bytes: ${JSON.stringify(Object.fromEntries(sizes))}`);
  });
});
