/**
 * Tables as files: the rows that a page shows, as CSV for spreadsheets and as values for JSON.
 *
 * Numbers stand bare, their unit is in the field's name; what is not known is an empty cell, never 0.
 */

/** A value as it is, without its way of being written; times as ISO 8601 in UTC. */
export type DataValue = string | number | boolean | null | undefined;

/** One field of a row in a file. */
export interface DataField<Row> {
  /** Its name with its unit: `inbound_bytes`, `last_seen`. */
  field: string;
  value: (row: Row) => DataValue;
}

/** RFC 4180 with a header line. Names come from strangers, so what a spreadsheet would run as a formula is quoted. */
export function tableCsv<Row>(fields: readonly DataField<Row>[], rows: readonly Row[]): string {
  const header = fields.map((field) => field.field).join(',');
  const lines = rows.map((row) => fields.map((field) => csvCell(field.value(row))).join(','));
  return `${[header, ...lines].join('\r\n')}\r\n`;
}

function csvCell(value: DataValue): string {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'string') return String(value);
  // Spreadsheets skip leading spaces and control characters before they look for a formula.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  const text = /^[\u0000-\u0020\u00a0]*[=+\-@＝＋－＠]/.test(value) ? `'${value}` : value;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  return /[",\u0000-\u001f]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The rows as objects; what is not known is `null`. */
export function tableValues<Row>(
  fields: readonly DataField<Row>[],
  rows: readonly Row[],
): Record<string, string | number | boolean | null>[] {
  return rows.map((row) => Object.fromEntries(fields.map(({ field, value }) => [field, value(row) ?? null])));
}

/** A time as files write it; `null` stays unknown. */
export function isoTime(ms: number | null | undefined): string | null {
  return ms === null || ms === undefined ? null : new Date(ms).toISOString();
}
