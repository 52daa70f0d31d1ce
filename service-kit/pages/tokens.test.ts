import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';

const css = readFileSync(new URL('./browser/styles/tokens.css', import.meta.url), 'utf8');
const colours = new Map(
  [...css.matchAll(/--([a-z0-9-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);/g)].map((match) => [
    match[1]!,
    { light: match[2]!, dark: match[3]! },
  ]),
);
const schemes = ['light', 'dark'] as const;

/** Relative luminance as WCAG 2 defines it. */
function luminance(hex: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

function assertContrast(text: string, grounds: readonly string[], least: number): void {
  for (const ground of grounds) {
    for (const scheme of schemes) {
      const [front, back] = [colours.get(text)?.[scheme], colours.get(ground)?.[scheme]];
      assert.ok(front && back, `no token ${front ? ground : text}`);
      const found = contrast(front, back);
      assert.ok(found >= least, `${text} on ${ground}, ${scheme}: ${found.toFixed(2)} is below ${least}`);
    }
  }
}

describe('tokens', () => {
  const grounds = ['n1', 'n2', 'n3', 'n4', 'n5'];

  test('text reads at 4.5:1 on every ground of both schemes', () => {
    for (const text of ['n10', 'n11', 'n12']) assertContrast(text, grounds, 4.5);
    for (const text of ['accent', 'accent-strong'])
      assertContrast(text, ['n1', 'n2', 'n3', 'accent-surface'], 4.5);
    assertContrast('on-accent', ['accent', 'accent-strong'], 4.5);
  });

  test('each state reads at 4.5:1 on its own surface and on the page', () => {
    for (const state of ['info', 'good', 'warn', 'bad']) {
      assertContrast(`${state}-text`, [`${state}-surface`, 'n1', 'n2', 'n3'], 4.5);
      assertContrast('n11', [`${state}-surface`], 4.5);
      assertContrast('n12', [`${state}-surface`], 4.5);
      assertContrast('accent', [`${state}-surface`], 4.5);
    }
    for (const text of ['n10', 'n11']) assertContrast(text, ['accent-surface'], 4.5);
  });

  test('control borders, ornaments and chart lines are seen at 3:1', () => {
    for (const part of [
      'n8',
      'n9',
      'chart-attack',
      ...Array.from({ length: 13 }, (_, at) => `chart-${at + 1}`),
    ]) {
      assertContrast(part, ['n2'], 3);
    }
  });

  test('no file but the tokens names a colour', () => {
    const folder = new URL('./browser/styles/', import.meta.url);
    const names = [
      'ground',
      'shell',
      'page',
      'controls',
      'tables',
      'feedback',
      'text',
      'navigation',
      'charts',
      'alone',
      'phone',
    ];
    for (const name of names) {
      const text = readFileSync(new URL(`${name}.css`, folder), 'utf8').replace(/\/\*[\s\S]*?\*\//g, '');
      assert.doesNotMatch(text, /#[0-9a-f]{3,8}\b|rgba?\(|hsla?\(/i, `${name}.css`);
    }
  });
});
