/**
 * What is asked of an explorer, as the values of a URL: `?q=app:github.com&by=server&measure=packets&top=20&compare=previous`.
 *
 * What is left out has its default, so that the shortest URL is a whole question; what can't be read has it too, and a fault.
 */
import { type Dimension, dimensionsOfWord, dimensionTable } from './dimensions.ts';
import { type Filter, type FilterBox, parseFilters, type TextFault } from './filter-text.ts';

/** Values of a parsed URL; a repeated one is a list. */
export type UrlValues = Readonly<Record<string, unknown>>;
export type Parsed<T> = { value: T } | { fault: string };

export const measures = ['bytes', 'packets'] as const;
export type Measure = (typeof measures)[number];

/** What can be asked in one place. */
export interface ExplorerBox extends FilterBox {
  /** What it can be grouped by, in the order in which it is offered. */
  groups: readonly Dimension[];
  /** The most rows that can be asked for. */
  topMax: number;
}

export const topDefault = 10;

export interface Question {
  filters: readonly Filter[];
  /** Null: by nothing, which draws in and out; undefined: the page chooses. */
  by: readonly Dimension[] | null | undefined;
  measure: Measure;
  top: number;
  /** `previous`: also the same length of time before the range. */
  compare: 'previous' | null;
}

export type UrlReader = ReturnType<typeof readUrl>;

export function readUrl(values: UrlValues) {
  const faults: TextFault[] = [];
  /** The text of a value; null: it is left out. */
  const text = (name: string): string | null => {
    const value = values[name];
    const joined = Array.isArray(value) ? value.join(name === 'q' ? ' ' : ',') : value;
    return typeof joined === 'string' && joined.trim() !== '' ? joined.trim() : null;
  };
  return {
    text,
    faults,
    /** The value that a text means; with a fault and the fallback where it means none. */
    take<T>(name: string, fallback: T, parse: (text: string) => Parsed<T>): T {
      const given = text(name);
      if (given === null) return fallback;
      const parsed = parse(given);
      if ('value' in parsed) return parsed.value;
      faults.push({ text: `${name}=${given}`.slice(0, 80), message: parsed.fault });
      return fallback;
    },
  };
}

/** `byMax`: dimensions that may be grouped by together. */
export function readQuestion(url: UrlReader, box: ExplorerBox, byMax = 1): Question {
  const { filters, faults } = parseFilters(url.text('q') ?? '', box);
  url.faults.push(...faults);
  return {
    filters,
    by: url.take<Question['by']>('by', undefined, (text) => parseBy(text, box, byMax)),
    measure: url.take<Measure>('measure', 'bytes', (text) => oneOf(text, measures)),
    top: url.take('top', topDefault, (text) => parseTop(text, box.topMax)),
    compare: url.take<Question['compare']>('compare', null, (text) =>
      text === 'previous' ? { value: text } : { fault: 'Use previous, or leave it out.' },
    ),
  };
}

export function oneOf<T extends string>(text: string, values: readonly T[]): Parsed<T> {
  const value = values.find((one) => one === text);
  if (value !== undefined) return { value };
  return { fault: `Use ${values.join(values.length === 2 ? ' or ' : ', ')}.` };
}

/** A dimension by its name or one of its words; null: nothing of this name is grouped by here. */
export const groupOf = (name: string, { groups }: Pick<ExplorerBox, 'groups'>): Dimension | null =>
  groups.find((one) => one === name.toLowerCase()) ??
  dimensionsOfWord(name).find((one) => groups.includes(one) && !dimensionTable[one].filteredBy) ??
  null;

function parseBy(text: string, box: ExplorerBox, most: number): Parsed<readonly Dimension[] | null> {
  const names = text.split(',').map((one) => one.trim());
  // Where connections have no direction, it is in and out.
  const isOfSides = text === 'direction' && !box.groups.includes('direction');
  if (text === 'none' || isOfSides) return { value: null };
  const by = names.map((name) => groupOf(name, box));
  const unknown = names.find((_, i) => by[i] === null);
  if (unknown !== undefined) return { fault: `There is no ${unknown}. Use ${box.groups.join(', ')}.` };
  if (by.length > most) return { fault: `Group by at most ${most} dimension${most === 1 ? '' : 's'}.` };
  if (new Set(by).size < by.length) return { fault: 'Group by two different dimensions.' };
  return { value: by as Dimension[] };
}

function parseTop(text: string, most: number): Parsed<number> {
  const top = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  return top >= 1 && top <= most ? { value: top } : { fault: `Use a number from 1 to ${most}.` };
}
