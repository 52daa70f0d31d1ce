/** Contact sheets: many pictures on one, each with its name, so that every page can be looked at in few glances. */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser } from 'playwright-core';
import { type Picture, schemes, widths } from './looks.ts';

/** Pages of a sheet, each in light and dark: wide ones below each other, those of phones beside each other. */
const pagesOnSheet = { 1440: 2, 390: 3 } as const;
const pictureWidth = { 1440: 770, 390: 256 } as const;
/** What is below it is left out: long pages go on as they began. */
const heightMax = { 1440: 760, 390: 1500 } as const;
const columns = { 1440: 2, 390: 6 } as const;

const escaped = (text: string) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

/** Writes the sheets of these pictures into the folder; their paths. */
export async function makeSheets(
  browser: Browser,
  pictures: readonly Picture[],
  folder: string,
): Promise<string[]> {
  const paths: string[] = [];
  for (const width of widths) {
    const names = [...new Set(pictures.filter((picture) => picture.width === width).map(({ name }) => name))];
    const pathOf = (name: string, scheme: string) =>
      pictures.find((one) => one.width === width && one.name === name && one.scheme === scheme)?.path;
    const count = pagesOnSheet[width];
    for (let at = 0; at < names.length; at += count) {
      const cells = names.slice(at, at + count).flatMap((name) =>
        schemes.flatMap((scheme) => {
          const path = pathOf(name, scheme);
          if (path === undefined) return [];
          const image = `<img src="${pathToFileURL(path)}" width="${pictureWidth[width]}">`;
          return [`<figure><figcaption>${escaped(name)}</figcaption><div>${image}</div></figure>`];
        }),
      );
      const html = `<!doctype html><meta charset="utf-8"><style>
        body { margin: 0; display: grid; grid-template-columns: repeat(${columns[width]}, ${pictureWidth[width]}px); gap: 4px;
          background: #888; font: 12px sans-serif; width: max-content }
        figure { margin: 0 } figcaption { overflow-wrap: anywhere; height: 15px; overflow: hidden }
        div { max-height: ${heightMax[width]}px; overflow: hidden } img { display: block }
      </style>${cells.join('')}`;
      const source = join(folder, 'sheet.html');
      await writeFile(source, html);
      const page = await browser.newPage({ viewport: { width: 1560, height: 400 } });
      await page.goto(pathToFileURL(source).href, { waitUntil: 'load' });
      const path = join(folder, `sheet-${width}-${String(paths.length + 1).padStart(3, '0')}.png`);
      const box = await page.locator('body').boundingBox();
      await page.screenshot({
        path,
        fullPage: true,
        clip: { x: 0, y: 0, width: box!.width, height: box!.height },
      });
      await page.close();
      paths.push(path);
    }
  }
  return paths;
}
