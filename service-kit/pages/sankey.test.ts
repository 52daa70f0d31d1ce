/** What only a browser can tell of the picture of flows: which drawing is displayed, where its texts are, what a key reaches. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { assetUrl } from './index.ts';
import { type ServedGallery, serveGallery } from './testing/serve-gallery.ts';

let gallery: ServedGallery;
before(async () => {
  gallery = await serveGallery();
});
after(() => gallery?.stop());

const open: ServedGallery['open'] = (...of) => gallery.open(...of);

/** The drawing of flows that is displayed: its links, texts and what is wrong with their places. */
const flowsSeen = `(() => {
  const box = document.querySelector('#flows .sankey');
  const drawings = [...box.querySelectorAll('svg')].filter((one) => one.checkVisibility());
  const room = box.getBoundingClientRect();
  const texts = [...drawings[0].querySelectorAll('text')].map((one) => [one.textContent, one.getBoundingClientRect()]);
  const meets = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3;
  return {
    drawings: drawings.length,
    scrolls: box.scrollWidth - box.clientWidth,
    outside: texts.filter(([, at]) => at.left < room.left - 1 || at.right > room.right + 1).map(([text]) => text),
    covered: texts.filter(([, at], i) => texts.some(([, other], j) => j > i && meets(at, other))).map(([text]) => text),
    low: [...drawings[0].querySelectorAll('a')].filter((one) => one.getBoundingClientRect().height < 44).length,
    links: [...drawings[0].querySelectorAll('a')].map((one) => one.getAttribute('aria-label')),
  };
})()`;

interface FlowsSeen {
  drawings: number;
  scrolls: number;
  outside: string[];
  covered: string[];
  low: number;
  links: string[];
}

describe('the picture of flows', () => {
  for (const width of [1440, 760, 390, 320])
    test(`is one drawing without sideways scrolling at ${width} px, whose links alone are read out and reached by keyboard`, async () => {
      await using opened = await open('/dev/gallery', { viewport: { width, height: 844 } });
      const { page } = opened;
      const { links, low, ...seen } = await page.evaluate<FlowsSeen>(flowsSeen);
      assert.deepEqual(seen, { drawings: 1, scrolls: 0, outside: [], covered: [] });
      const isNarrow = width < 800;
      assert.equal(links.length, isNarrow ? 13 : 15);
      if (width === 390) assert.equal(low, 0, 'room for a finger');
      const picture = page.locator('#flows .sankey');
      assert.equal(await picture.getByRole('link').count(), links.length);
      await picture.focus();
      const reached: (string | null)[] = [];
      while (reached.length < links.length) {
        await page.keyboard.press('Tab');
        reached.push(await page.evaluate<string | null>("document.activeElement.getAttribute('aria-label')"));
      }
      assert.deepEqual(reached, links);
      await page.keyboard.press('Tab');
      assert.equal(await page.evaluate("document.activeElement.closest('.sankey')"), null);
    });

  test('lights the flows of the name that has the focus, on a phone too', async () => {
    await using opened = await open('/dev/gallery', { viewport: { width: 390, height: 844 } });
    const { page } = opened;
    await page.addScriptTag({ url: `${gallery.url}${assetUrl('explore.js')}`, type: 'module' });
    await page.locator('#flows .sankey').getByRole('link', { name: 'Peer 203.0.113.9,' }).focus();
    const lit = await page.locator('#flows .sankey-narrow path.is-lit title').allTextContents();
    assert.equal(lit.length, 5);
    for (const text of lit) assert.match(text, / to 203\.0\.113\.9, /);
  });
});
