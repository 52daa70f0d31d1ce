/** The four looks of a page: 1440 and 390 px wide, light and dark; and what a glance at a picture misses. */
import { join } from 'node:path';
import type { Page } from 'playwright-core';

export const widths = [1440, 390] as const;
export const schemes = ['light', 'dark'] as const;
export type Width = (typeof widths)[number];

/** The most that a page and all it loads may weigh as they were sent. */
const bytesMax = 150 * 1024;

export interface Picture {
  path: string;
  name: string;
  width: Width;
  scheme: (typeof schemes)[number];
}

export const sizeOf = (width: Width) => ({ width, height: width === 390 ? 844 : 900 });

/** `/sites/3/traffic?range=1h` becomes `sites-3-traffic-range-1h`. */
export function nameOf(url: string): string {
  const { pathname, search } = new URL(url);
  const name = `${pathname}${search}`.replace(/[^a-z0-9]+/gi, '-').replace(/^-|-$/g, '');
  return name.slice(0, 120) || 'index';
}

/** Notes what the browser complains of, and what pages weigh, from now on. */
function watch(page: Page): { remarks: string[]; weight: () => Promise<number> } {
  const remarks: string[] = [];
  const sizes: Promise<number>[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) remarks.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => remarks.push(`script: ${error.message}`));
  page.on('response', (response) => {
    const size = response.request().sizes();
    sizes.push(size.then((all) => all.responseBodySize).catch(() => 0));
  });
  return {
    remarks,
    weight: async () => (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0),
  };
}

/** Opens a page at this width. */
export async function open(page: Page, url: string, width: Width): Promise<string[]> {
  const { remarks, weight } = watch(page);
  await page.setViewportSize(sizeOf(width));
  await page.goto(url, { waitUntil: 'networkidle' });
  const bytes = await weight();
  if (bytes > bytesMax) remarks.push(`weighs ${Math.round(bytes / 1024)} KiB, more than 150`);
  return remarks;
}

/** Photographs the page that is open at this width, in both schemes; with what is wrong with it in them. */
export async function photograph(
  page: Page,
  of: { name: string; width: Width; folder: string; isViewportOnly: boolean },
): Promise<{ pictures: Picture[]; remarks: string[] }> {
  const pictures: Picture[] = [];
  const remarks: string[] = [];
  await page.setViewportSize(sizeOf(of.width));
  for (const scheme of schemes) {
    await page.emulateMedia({ colorScheme: scheme });
    const path = join(of.folder, `${of.name}-${of.width}-${scheme}.png`);
    await page.screenshot({ path, fullPage: !of.isViewportOnly });
    pictures.push({ path, name: of.name, width: of.width, scheme });
    remarks.push(...((await page.evaluate(findPaleText)) as string[]).map((text) => `${scheme}: ${text}`));
  }
  const wide = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'));
  if (wide > 0) remarks.push(`the page is ${wide} px wider than its window`);
  return { pictures, remarks };
}

/**
 * Text whose colour stands out too little from what is behind it: under 4.5 to 1, large text 3 to 1 (WCAG 2.2, 1.4.3). Runs in
 * the page. Text over pictures and gradients is left out, as are marks beside text and
 * what is disabled.
 */
const findPaleText = `(() => {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 1;
  const context = canvas.getContext('2d', { willReadFrequently: true });
  const known = new Map();
  const parse = (text) => {
    if (known.has(text)) return known.get(text);
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = text;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
    known.set(text, [r, g, b, a / 255]);
    return known.get(text);
  };
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1];
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (style.backgroundImage !== 'none') return null;
      const colour = parse(style.backgroundColor);
      layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((under, layer) => over(layer, under), parse(getComputedStyle(document.documentElement).colorScheme.includes('dark') && matchMedia('(prefers-color-scheme: dark)').matches ? '#000' : '#fff'));
  };
  const found = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim();
    const element = walker.currentNode.parentElement;
    if (text === '' || element === null || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (element.closest('[disabled], [aria-disabled="true"], [aria-hidden="true"], svg, script, style, noscript, option')) continue;
    const box = element.getBoundingClientRect();
    if (box.width <= 1 || box.height <= 1) continue;
    const style = getComputedStyle(element);
    const back = behind(element);
    if (back === null) continue;
    const [a, b] = [light(over(parse(style.color), back)), light(back)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    if (ratio >= least - 0.01) continue;
    const key = element.tagName.toLowerCase() + (element.className ? '.' + String(element.className).split(' ').join('.') : '');
    if (!found.has(key)) found.set(key, 'pale text (' + ratio.toFixed(1) + ' to 1) ' + key + ': ' + text.slice(0, 40));
  }
  return [...found.values()];
})()`;
