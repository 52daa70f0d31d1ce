/** What a chart is made of: the data of a time series and what is drawn around it. */
import type { Tone } from './tone.ts';

/** How values are written: rates in bits per second, sizes in bytes, money in quanta of 0.0001, and so on. */
export type ChartUnit = 'bit/s' | 'bytes' | 'packets/s' | 'count' | 'percent' | 'ms' | 'money';

export interface ChartSeries {
  label: string;
  /** One value for each time, never negative; `null` where nothing was measured. */
  values: readonly (number | null)[];
  /**
   * `out` is drawn above zero and `in` below it; `attack` in red, below where the chart has `in`; `line` (default)
   * as it is, in a colour of its own.
   */
  role?: 'in' | 'out' | 'attack' | 'line';
  /** What was expected rather than seen: a dashed line. */
  isExpected?: boolean;
  /** The values of the period before, moved to these times: a dotted ghost. Never part of a stack. */
  isPrevious?: boolean;
  /** A number of the palette, 1 to 13 (`coloursOf`), so that a name keeps its colour at every rank. */
  colour?: number | undefined;
  /** Where the name in the legend leads; its swatch then hides and shows the line. */
  href?: string | undefined;
}

/** A level over the whole range, such as the 95th percentile. */
export interface ChartLine {
  label: string;
  value: number;
  /** On which side of zero it is, and in which colour; default as a `line`. */
  role?: 'in' | 'out' | 'line';
}

/** Why a time has no values, or only a part of them: the ribbon under the chart. */
export interface ChartReason {
  fromMs: number;
  toMs: number;
  /** In words, such as "sensor not running". */
  text: string;
  /** `warn` (default) for what should not be; `neutral` for what is in order, such as a minute in progress. */
  tone?: 'warn' | 'neutral';
}

/** Something that happened: a flag on the time axis. */
export interface ChartFlag {
  timeMs: number;
  text: string;
  /** The page that says more. */
  href?: string | undefined;
  tone?: Tone;
}

export interface ChartArea {
  fromMs: number;
  /** Left out while it lasts. */
  toMs?: number | undefined;
  label: string;
  /** `bad` (default) for attacks. */
  tone?: 'bad' | 'warn';
}

export interface ChartData {
  /** Start of each interval, UTC milliseconds, rising. Gaps may also be missing times, when `stepMs` is given. */
  timesMs: readonly number[];
  /** The usual distance of two times: where more is missing, the line is broken. */
  stepMs?: number | undefined;
  series: readonly ChartSeries[];
  /** The range that was asked for: the axis shows all of it, also where nothing was measured. */
  range?: { fromMs: number; toMs: number } | undefined;
  areas?: readonly ChartArea[] | undefined;
  /** What is said beside the values of a time, such as why there are none. */
  notes?: ReadonlyMap<number, string | undefined> | undefined;
  /**
   * `bars` for what is counted per day or month, where a line between two values would say nothing; `stacked` for parts of
   * a whole, the first at the bottom. Default `lines`.
   */
  shape?: 'lines' | 'bars' | 'stacked' | undefined;
  lines?: readonly ChartLine[] | undefined;
  /** In order of time; where several cover one time, the first one is told. */
  reasons?: readonly ChartReason[] | undefined;
  flags?: readonly ChartFlag[] | undefined;
}
