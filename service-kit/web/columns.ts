/**
 * Columns by what they hold: a row is read once, for the cell of the page and for the value of the files. `more` names the unit, the
 * field in files, or that the column can be sorted by.
 */
import {
  age,
  type Column,
  type Content,
  type DataValue,
  formatCount,
  isoTime,
  link,
  moment,
  utcTime,
} from '#service-kit/pages/index.ts';
import type { DataColumn } from './data-table.ts';

type More = Pick<Column<never>, 'unit' | 'field' | 'sortable'>;
type Time = number | null | undefined;

/** Text as it is, or as `show` writes it. */
export const textColumn = <Row, Value extends DataValue>(
  key: string,
  header: string,
  of: (row: Row) => Value,
  more: More & { kind?: 'code' | 'prose'; show?: (value: Value) => Content } = {},
): DataColumn<Row> => {
  const { show, ...rest } = more;
  return { key, header, ...rest, cell: show ? (row) => show(of(row)) : of, value: of };
};

/** Text that leads to a page: the text, and where. */
export const linkColumn = <Row, Value extends DataValue>(
  key: string,
  header: string,
  of: (row: Row) => readonly [text: Value, href: string],
  more: More & { kind?: 'code'; show?: (value: Value) => Content } = {},
): DataColumn<Row> => {
  const { show = (text: Value) => text, ...rest } = more;
  const cell = (row: Row) => {
    const [text, href] = of(row);
    return link(href, show(text));
  };
  return { key, header, ...rest, cell, value: (row) => of(row)[0] };
};

/** A figure as `show` writes it. */
export const figureColumn = <Row, Value extends DataValue>(
  key: string,
  header: string,
  of: (row: Row) => Value,
  show: (value: Value) => Content,
  more: More = {},
): DataColumn<Row> => ({ key, header, kind: 'figure', ...more, cell: (row) => show(of(row)), value: of });

export const countColumn = <Row>(
  key: string,
  header: string,
  of: (row: Row) => number | null | undefined,
  more: More = {},
): DataColumn<Row> => figureColumn(key, header, of, formatCount, more);

/** A time as the clock says it. */
export const timeColumn = <Row>(
  key: string,
  header: string,
  ofMs: (row: Row) => Time,
  more: More & { precision?: 'minutes' | 'seconds' | 'day' } = {},
): DataColumn<Row> => {
  const { precision, ...rest } = more;
  return {
    ...{ key, header, kind: 'time', ...rest },
    cell: (row) => utcTime(ofMs(row), precision),
    value: (row) => isoTime(ofMs(row)),
  };
};

/** How long ago something was. */
export const ageColumn = <Row>(
  key: string,
  header: string,
  ofMs: (row: Row) => Time,
  nowMs: number,
  more: More = {},
): DataColumn<Row> => ({
  ...{ key, header, kind: 'figure', ...more },
  cell: (row) => age(ofMs(row), nowMs),
  value: (row) => isoTime(ofMs(row)),
});

/** When something was, and how long ago. */
export const momentColumn = <Row>(
  key: string,
  header: string,
  ofMs: (row: Row) => Time,
  nowMs: number,
  more: More = {},
): DataColumn<Row> => ({
  ...{ key, header, ...more },
  cell: (row) => moment(ofMs(row), nowMs),
  value: (row) => isoTime(ofMs(row)),
});
