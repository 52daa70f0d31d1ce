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
