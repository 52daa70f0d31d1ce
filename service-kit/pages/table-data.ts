/**
 * Tables as files: the rows that a page shows, as CSV for spreadsheets and as values for JSON.
 *
 * Numbers stand bare, their unit is in the field's name; what is not known is an empty cell, never 0.
 */
import { type Content, html } from './html.ts';

/** A value as it is, without its way of being written; times as ISO 8601 in UTC. */
export type DataValue = string | number | boolean | null | undefined;

/** One field of a row in a file. */
export interface DataField<Row> {
  /** Its name with its unit: `inbound_bytes`, `last_seen`. */
  field: string;
  value: (row: Row) => DataValue;
}

/** RFC 4180 with a header line of the fields' names. */
export function tableCsv<Row>(fields: readonly DataField<Row>[], rows: readonly Row[]): string {
  return csvLines([
    fields.map(({ field }) => field),
    ...rows.map((row) => fields.map((field) => field.value(row))),
  ]);
}

/** Lines of RFC 4180. Names come from strangers, so nothing in them is a formula for a spreadsheet. */
export function csvLines(rows: readonly (readonly DataValue[])[]): string {
  return rows.map((row) => `${row.map(csvCell).join(',')}\r\n`).join('');
}

// A spreadsheet skips spaces and control characters before it looks for a formula. Where lists are separated by semicolons or
// tabs it ends a cell at each of them, also inside quotes that stand further on in its cell: what comes then begins anew.
const formula = /(?<=^|[;\t\r\n])(?=[\s\p{Cc}]*[=+\-@＝＋－＠])/gu;
const number = /^-?\d+(\.\d+)?$/;

function csvCell(value: DataValue): string {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'string' || number.test(value)) return String(value);
  const text = value.replace(formula, "'");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  return /[",;\u0000-\u001f]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The rows as objects; what is not known is `null`. */
export function tableValues<Row>(
  fields: readonly DataField<Row>[],
  rows: readonly Row[],
): Record<string, string | number | boolean | null>[] {
  return rows.map((row) => Object.fromEntries(fields.map(({ field, value }) => [field, value(row) ?? null])));
}

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', '#39': "'" };

/** The text of a cell, for a column that gives files no value of its own; a time as ISO 8601, what is unknown as null. */
export function textOfCell(cell: Content): string | null {
  const markup = String(html`${cell}`)
    .replace(/<span class="unknown">.*?<\/span>/g, '')
    .replace(/<(\w+)[^>]* aria-hidden="true"[^>]*>.*?<\/\1>/gs, '')
    .replace(/<time datetime="([^"]*)".*?<\/time>(?:<span class="zone"> UTC<\/span>)?/g, '$1');
  const text = markup
    .replace(/<[^>]*>/g, ' ')
    .replace(/&(lt|gt|amp|quot|#39);/g, (_, name) => entities[name]!);
  return text.replace(/\s+/g, ' ').trim() || null;
}

/** A time as files write it; `null` stays unknown. */
export function isoTime(ms: number | null | undefined): string | null {
  return ms === null || ms === undefined ? null : new Date(ms).toISOString();
}
