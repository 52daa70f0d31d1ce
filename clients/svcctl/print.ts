/** Answers as people read them: a table for a list, one line a field for a single thing. */

type Item = Readonly<Record<string, unknown>>;

/** What a terminal would obey instead of showing. */
const unshown = /[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
const gap = '  ';

export const clean = (text: string) => text.replaceAll(unshown, '\u{fffd}');

/** At most `width` columns of text wide: columns that don't fit are left out, the last ones first. */
export function renderTable(items: readonly Item[], width: number): string {
  if (items.length === 0) return 'none\n';
  const names = [...new Set(items.flatMap((item) => Object.keys(item)))].filter((name) =>
    items.some((item) => isShown(item[name])),
  );
  const columns = names.map((name) => {
    const cells = [name.replaceAll('_', ' ').toUpperCase(), ...items.map((item) => cellOf(item[name]))];
    return { cells, width: Math.max(...cells.map(widthOf)) };
  });
  let used = -gap.length;
  const fitting = columns.filter((column, index) => {
    const isFitting = index < 2 || used + gap.length + column.width <= width;
    if (isFitting) used += gap.length + column.width;
    return isFitting;
  });
  const lines = Array.from({ length: items.length + 1 }, (_, row) =>
    fitting
      .map((column) => column.cells[row]! + ' '.repeat(column.width - widthOf(column.cells[row]!)))
      .join(gap)
      .trimEnd(),
  );
  return `${lines.join('\n')}\n`;
}

/** A table for the list among the members, else a line for each field. */
export function renderAnswer(answer: unknown, width: number): string {
  if (answer === null || typeof answer !== 'object')
    return answer === undefined ? '' : `${clean(String(answer))}\n`;
  const rows = flatten(answer as Item, '');
  const longest = Math.max(0, ...rows.map(([name]) => widthOf(name)));
  return rows
    .map(([name, value]) =>
      Array.isArray(value)
        ? `${name}:\n${indent(renderTable(value as Item[], width - 2))}`
        : `${name.padEnd(longest)}  ${cellOf(value)}\n`,
    )
    .join('');
}

/** Nested fields by their path; a list of things stays whole. */
function flatten(item: Item, before: string): [string, unknown][] {
  return Object.entries(item).flatMap(([name, value]): [string, unknown][] => {
    const path = `${before}${name}`;
    if (Array.isArray(value)) return value.some(isObject) ? [[path, value]] : [[path, value.join(', ')]];
    if (isObject(value) && Object.keys(value).length > 0) return flatten(value, `${path}.`);
    return [[path, value]];
  });
}

const isObject = (value: unknown): value is Item =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

/** Things that a table's cell can hold: a value, a thing with a name, a short list of values. */
function isShown(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0 && !value.some((one) => isObject(one) && !nameOf(one));
  return value !== null && value !== undefined && (!isObject(value) || nameOf(value) !== undefined);
}

function nameOf(item: Item): unknown {
  return item.slug ?? item.name ?? item.address ?? item.cycle ?? item.status ?? item.id;
}

function cellOf(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-';
  if (Array.isArray(value)) return value.map(cellOf).join(', ') || '-';
  if (isObject(value))
    return Object.keys(value).length === 0 ? '-' : cellOf(nameOf(value) ?? JSON.stringify(value));
  return clean(String(value));
}

/** Columns of a terminal that the text takes: East Asian wide characters take two. */
function widthOf(text: string): number {
  let width = 0;
  for (const character of text)
    width += /\p{M}/u.test(character)
      ? 0
      : /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\u{1f300}-\u{1faff}]/u.test(
            character,
          )
        ? 2
        : 1;
  return width;
}

const indent = (text: string) => text.replaceAll(/^(?=.)/gm, '  ');
