import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { accentTokens, contrast } from './provider.ts';

const css = readFileSync(new URL('./browser/styles/tokens.css', import.meta.url), 'utf8');
const colours = new Map(
  [...css.matchAll(/--([a-z0-9-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);/g)].map((match) => [
    match[1]!,
    { light: match[2]!, dark: match[3]! },
  ]),
);
const schemes = ['light', 'dark'] as const;

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

  const states = ['info', 'good', 'warn', 'bad'];
  const assertAccent = () => {
    for (const text of ['accent', 'accent-strong'])
      assertContrast(
        text,
        ['n1', 'n2', 'n3', 'accent-surface', ...states.map((one) => `${one}-surface`)],
        4.5,
      );
    assertContrast('on-accent', ['accent', 'accent-strong'], 4.5);
    for (const text of ['n10', 'n11']) assertContrast(text, ['accent-surface'], 4.5);
  };

  test('text reads at 4.5:1 on every ground of both schemes', () => {
    for (const text of ['n10', 'n11', 'n12']) assertContrast(text, grounds, 4.5);
    assertContrast('console-text', ['console'], 4.5);
    assertAccent();
  });

  test('a provider’s colour reads as well as ours, whichever it is', () => {
    const ours = new Map(colours);
    for (const colour of [
      '#ffd400',
      '#b3261e',
      '#000000',
      '#ffffff',
      '#00e5ff',
      '#7f7f7f',
      '#3300ff',
      '#39ff14',
    ]) {
      for (const [name, token] of Object.entries(accentTokens(colour))) colours.set(name, token);
      assertAccent();
    }
    for (const [name, token] of ours) colours.set(name, token);
    assert.equal(accentTokens('#b3261e').accent!.light, '#b3261e', 'a colour that reads stays as it is');
  });

  test('each state reads at 4.5:1 on its own surface and on the page', () => {
    for (const state of states) {
      assertContrast(`${state}-text`, [`${state}-surface`, 'n1', 'n2', 'n3'], 4.5);
      assertContrast('n11', [`${state}-surface`], 4.5);
      assertContrast('n12', [`${state}-surface`], 4.5);
    }
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
    for (const name of readdirSync(folder).filter((one) => one !== 'tokens.css')) {
      const text = readFileSync(new URL(name, folder), 'utf8').replace(/\/\*[\s\S]*?\*\//g, '');
      assert.doesNotMatch(text, /#[0-9a-f]{3,8}\b|rgba?\(|hsla?\(/i, name);
    }
  });
});
