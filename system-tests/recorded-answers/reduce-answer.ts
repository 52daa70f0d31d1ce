/** An answer as lines that a reader can compare: what it says, without what differs from run to run. */
import { createHash } from 'node:crypto';

/** Texts of this run, and what stands for each. */
export type Replacements = readonly (readonly [RegExp | string, string])[];

const hashOf = (text: string | Uint8Array) =>
  createHash('sha256').update(text).digest('base64url').slice(0, 8);

/** Longer answers keep their first lines, and a hash for each block of the others. */
const linesMax = 400;
const blockLines = 50;

export async function reduceAnswer(answer: Response, replacements: Replacements): Promise<string> {
  const type = answer.headers.get('content-type')?.split(';')[0] ?? '';
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const head = [answer.status, type, answer.headers.get('location')].filter(Boolean).join(' ');
  return shorten(replace(`${head}\n${reduceBody(type, bytes)}`, replacements));
}

/** Any other text, such as a command's output. */
export const reduceText = (text: string, replacements: Replacements): string =>
  shorten(replace(text, replacements));

function reduceBody(type: string, bytes: Uint8Array): string {
  const text = new TextDecoder().decode(bytes);
  if (text === '') return '';
  if (type === 'text/html') return wordsOf(text);
  if (type.endsWith('json')) return reduceJson(text);
  // Figures of metrics are those of this process, their order that of its first requests, and which garbage was collected is chance.
  if (text.includes('nodejs_'))
    return text
      .replace(/^([a-z_\d]+(\{.*\})?) .*$/gm, '$1')
      .split('\n')
      .filter((line) => !/^[a-z_]+_gc_duration_seconds_/.test(line))
      .sort()
      .join('\n');
  if (type.startsWith('text/')) return text.replaceAll('\r\n', '\n');
  return `${bytes.length} bytes ${hashOf(bytes)}`;
}

/** A line for each value; long lists of numbers and texts by their beginning and a hash. */
function reduceJson(text: string): string {
  const reduce = (_: string, value: unknown) =>
    Array.isArray(value) && value.length > 9 && value.every((one) => one === null || typeof one !== 'object')
      ? `${value.length} values, ${hashOf(JSON.stringify(value))}: ${value.slice(0, 4).join(', ')} …`
      : value;
  return JSON.stringify(JSON.parse(text), reduce, 1);
}

function shorten(text: string): string {
  const lines = text.split('\n');
  const kept = lines.slice(0, linesMax);
  for (let at = linesMax; at < lines.length; at += blockLines) {
    const block = lines.slice(at, at + blockLines);
    kept.push(`lines ${at + 1} to ${at + block.length}: ${hashOf(block.join('\n'))}`);
  }
  return kept.join('\n');
}

const replace = (text: string, replacements: Replacements): string =>
  replacements.reduce((all, [what, by]) => all.replaceAll(what, by), text);

const lineTags =
  /^(address|article|aside|br|button|dd|details|div|dl|dt|fieldset|figcaption|figure|footer|form|h\d|header|hr|label|legend|li|main|nav|ol|option|p|pre|script|section|select|summary|svg|table|t(body|d|foot|h|head|r)|title|ul)$/;
const shownAttributes = {
  a: ['href'],
  form: ['method', 'action'],
  input: [
    'type',
    'name',
    'value',
    'placeholder',
    'checked',
    'required',
    'disabled',
    'pattern',
    'min',
    'max',
    'maxlength',
  ],
  button: ['name', 'value', 'formaction', 'disabled'],
  select: ['name', 'required', 'disabled'],
  option: ['value', 'selected', 'disabled'],
  textarea: ['name', 'required', 'disabled', 'maxlength'],
} as const;

/** What a page shows, in which tone, and leads to, a line for each piece; charts by their data, images by their label and a hash. */
export function wordsOf(page: string): string {
  const plain = page
    .replace(/<!.*?>|<style.*?<\/style>|<script(?![^>]*application\/json).*?<\/script>/gs, '')
    .replace(/<svg[^>]*role="img"[^>]*>.*?<\/svg>/gs, (image) => {
      return ` [image ${/aria-label="([^"]*)"/.exec(image)?.[1] ?? ''} ${hashOf(image)}] `;
    });
  let words = '';
  let isData = false;
  for (const [, isEnd, tag = '', given = '', text = ''] of plain.matchAll(
    /<(\/?)([a-z][a-z0-9-]*)([^>]*)>|([^<]+)/g,
  )) {
    if (text !== '') words += isData ? reduceJson(text) : text.replace(/\s+/g, ' ');
    else {
      isData = tag === 'script' && isEnd === '';
      if (lineTags.test(tag)) words += '\n';
      if (isEnd === '') words += attributesOf(tag, given);
    }
  }
  return words
    .split('\n')
    .map((line) => plainText(line.trim()))
    .filter((line) => line !== '')
    .join('\n');
}

function attributesOf(tag: string, given: string): string {
  const shown = shownAttributes[tag as keyof typeof shownAttributes] ?? [];
  const said = [...given.matchAll(/([a-z-]+)(?:="([^"]*)")?/g)].flatMap(([, name = '', value = '']) => {
    if (name === 'aria-label' || name === 'title') return value === '' ? [] : [`"${value}"`];
    if (name === 'class') return value.match(/\btone-\w+/) ?? [];
    if (!(shown as readonly string[]).includes(name)) return [];
    return [value === '' ? name : `${name}=${value}`];
  });
  return said.length === 0
    ? ''
    : ` [${tag} ${said.join(' ')}] `.replace(/(name=(?:csrf_token|form_id) value=)[^\]\s]+/, '$1…');
}

function plainText(text: string): string {
  const characters: Record<string, string> = { lt: '<', gt: '>', quot: '"', '#39': "'", amp: '&' };
  return text.replace(/&(lt|gt|quot|#39|amp);/g, (_, name: string) => characters[name]!);
}
