/**
 * Writes text to standard output in pieces, and waits for a slow reader instead of buffering.
 *
 * `process.stdout` would buffer everything in memory for a slow reader, and loading it takes a tenth of the start-up
 * time.
 */
import { writeSync } from 'node:fs';

const pieceLength = 65_536;
const fullPipeWaitMs = 2;

export type TextOutput = ReturnType<typeof createTextOutput>;

/** The reader closed the pipe, for example `| head`. */
export class OutputClosedError extends Error {}

/** Output to a file descriptor. Throws `OutputClosedError` after its reader closed it. */
export function createTextOutput(descriptor: number) {
  let parts: string[] = [];
  let length = 0;

  function writeAll(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) at += writeSome(descriptor, bytes, at);
  }

  function flush(): void {
    const bytes = Buffer.from(parts.join(''));
    parts = [];
    length = 0;
    writeAll(bytes);
  }

  return {
    write(text: string) {
      parts.push(text);
      length += text.length;
      if (length >= pieceLength) flush();
    },
    /** Writes bytes; they are used before this returns. */
    writeBytes(bytes: Uint8Array) {
      if (length > 0) flush();
      writeAll(bytes);
    },
    /** Writes the rest. */
    end() {
      if (length > 0) flush();
    },
  };
}

function writeSome(descriptor: number, bytes: Uint8Array, at: number): number {
  try {
    return writeSync(descriptor, bytes, at);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EPIPE') throw new OutputClosedError('the output was closed');
    if (code !== 'EAGAIN') throw error;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, fullPipeWaitMs);
    return 0;
  }
}

/** Text tables: aligned columns that fit the terminal, with colours on request. */

export interface Column {
  title: string;
  /** Numbers are right-aligned. */
  isNumber?: boolean;
  /** May be shortened to this many characters on a narrow terminal. */
  shrinksTo?: number;
  /** Shortened at the start, because the end matters more: ports of addresses, domains of names. */
  keepsEnd?: boolean;
  style?: Style;
}

export type Style = 'strong' | 'quiet' | 'name' | 'warn';

export interface TextLook {
  /** Columns of the terminal; null for no limit. */
  width: number | null;
  isColored: boolean;
}

const codes: Readonly<Record<Style, string>> = { strong: '1', quiet: '2', name: '36', warn: '33' };
const gap = '  ';

/** The text in a style, if colours are enabled. */
export function paint(text: string, style: Style, look: TextLook): string {
  return look.isColored && text !== '' ? `\x1b[${codes[style]}m${text}\x1b[0m` : text;
}

/** Lines of a table: header and rows. Reads the rows twice, first for the widths. */
export function* renderTable(
  columns: readonly Column[],
  rows: Iterable<readonly string[]>,
  look: TextLook,
): Generator<string> {
  const widths = fitWidths(columns, rows, look.width);
  const line = (cells: readonly string[], style: (column: Column) => Style | undefined) =>
    cells
      .map((cell, i) => {
        const column = columns[i]!;
        const width = widths[i]!;
        const cut = shorten(cell, width, column.keepsEnd ?? false);
        const isLast = i === cells.length - 1 && !column.isNumber;
        const padded = column.isNumber ? cut.padStart(width) : isLast ? cut : cut.padEnd(width);
        const wanted = style(column);
        return wanted ? paint(padded, wanted, look) : padded;
      })
      .join(gap)
      .trimEnd();
  yield line(
    columns.map((column) => column.title),
    () => 'quiet',
  );
  for (const row of rows) yield line(row, (column) => column.style);
}

function shorten(cell: string, width: number, keepsEnd: boolean): string {
  if (cell.length <= width) return cell;
  return keepsEnd ? `…${cell.slice(1 - width)}` : `${cell.slice(0, width - 1)}…`;
}

/** The widths of the cells. When the table is too wide, the widest column that may shrink is shortened first. */
function fitWidths(
  columns: readonly Column[],
  rows: Iterable<readonly string[]>,
  width: number | null,
): number[] {
  const widths = columns.map((column) => column.title.length);
  for (const row of rows) {
    for (const [i, cell] of row.entries()) if (cell.length > widths[i]!) widths[i] = cell.length;
  }
  if (width === null) return widths;
  let excess = widths.reduce((sum, one) => sum + one + gap.length, -gap.length) - width;
  while (excess > 0) {
    let widest = -1;
    for (const [i, column] of columns.entries()) {
      const canShrink = column.shrinksTo !== undefined && widths[i]! > column.shrinksTo;
      if (canShrink && (widest < 0 || widths[i]! > widths[widest]!)) widest = i;
    }
    if (widest < 0) return widths;
    widths[widest]! -= 1;
    excess -= 1;
  }
  return widths;
}

/** Whole numbers with a thousands separator. */
export function formatCount(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** An amount with a decimal prefix (powers of 1,000). */
export function formatAmount(value: number, unit: string): string {
  const prefixes = ['', 'k', 'M', 'G', 'T', 'P'];
  let scaled = value;
  let step = 0;
  while (scaled >= 999.95 && step < prefixes.length - 1) {
    scaled /= 1000;
    step += 1;
  }
  return `${step === 0 ? Math.round(scaled) : scaled.toFixed(1)} ${prefixes[step]}${unit}`;
}

/** Formats times of frames. */

export interface InstantOfFrame {
  seconds: number;
  nanoseconds: number;
}

/** RFC 3339 in UTC, with microseconds, or nanoseconds if any. */
export function formatInstant(instant: InstantOfFrame | null): string | null {
  if (!instant) return null;
  const digits = String(instant.nanoseconds).padStart(9, '0');
  const fraction = digits.endsWith('000') ? digits.slice(0, 6) : digits;
  return `${new Date(instant.seconds * 1000).toISOString().slice(0, -5)}.${fraction}Z`;
}

/** Start of a UTC minute, unix seconds, as `2026-01-31T12:00:00Z`. */
export function formatMinute(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z');
}

/** Unix milliseconds, with microseconds as a fraction, as text. */
export function formatMs(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  const micros = Math.min(999_999, Math.round((ms - seconds * 1000) * 1000));
  return formatInstant({ seconds, nanoseconds: micros * 1000 })!;
}
