import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SaxesParser } from 'saxes';
import { XmlCharacters } from './index.ts';

function clean(text: string, size: number): { text: string; replaced: number } {
  const characters = new XmlCharacters();
  let cleaned = '';
  for (let i = 0; i < text.length; i += size) cleaned += characters.clean(text.slice(i, i + size));
  return { text: cleaned + characters.rest(), replaced: characters.replaced };
}

test('what XML forbids is replaced and counted, in pieces of any size, and nothing else changes', () => {
  const allowed = 'a&amp;b&#9;&#xA;&#x1F600;😀\t\r\n\ufffd&#xe000;& &# &#x &#;&#xg;';
  const cases: [string, string, number][] = [
    [allowed, allowed, 0],
    ['0M&#xec;&#x1;', '0M&#xec;\ufffd', 1],
    ['&#0;&#x0000000B;&#xD800;&#xFFFE;&#x110000;', '\ufffd'.repeat(5), 5],
    ['\u0000a\u000bb\u001f\ufffe', '\ufffda\ufffdb\ufffd\ufffd', 4],
    ['x\ud83dy\ude00', 'x\ufffdy\ufffd', 2],
    ['&#x1', '&#x1', 0],
  ];
  for (const [text, expected, replaced] of cases)
    for (const size of [1, 2, 3, 5, 100])
      assert.deepEqual(clean(text, size), { text: expected, replaced }, text);
});

test('a parser takes every character and every reference after it', () => {
  const parser = new SaxesParser();
  parser.on('error', (error) => {
    throw error;
  });
  for (let code = 0; code < 0x11_0200; code += code < 0x300 ? 1 : 251) {
    const raw = code <= 0x10_ffff ? String.fromCodePoint(code) : '';
    const text = `<a b="&#${code};${/[<&"]/.test(raw) ? '' : raw}"/>`;
    parser.write(clean(text, 1000).text).close();
  }
});
