// What chart.js knows of values and times: units and their steps, ticks in UTC, gaps, sides of zero, stacks.

export const scales = {
  'bit/s': { steps: ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s'] },
  bytes: { steps: ['B', 'kB', 'MB', 'GB', 'TB', 'PB'] },
  'packets/s': { steps: ['pps', 'kpps', 'Mpps', 'Gpps'] },
  count: { steps: ['', 'thousand', 'million', 'billion'] },
  percent: { steps: ['%'], factor: 100 },
  ms: { steps: ['ms'] },
  money: { steps: ['USD'], factor: 1 / 10_000 },
};

/** Distances of two ticks in time, none below the minute that everything is counted in. */
export const timeSteps = [
  1, 5, 10, 15, 30, 60, 120, 180, 240, 360, 720, 1440, 2880, 5760, 10_080, 14_400, 43_200,
].map((minutes) => minutes * 60_000);

/** In the reader's format, as the page's figures are. */
const numberFormat = (options) => new Intl.NumberFormat(navigator.languages, options);
export const short = numberFormat({ maximumSignificantDigits: 3 });
export const exact = numberFormat({ maximumFractionDigits: 1 });

/** The step of the unit that a chart's largest value asks for. */
export function chooseScale(unit, largest) {
  const { steps, factor = 1 } = scales[unit] ?? scales.count;
  let step = 0;
  let size = largest * factor;
  while (size >= 1000 && step < steps.length - 1) {
    size /= 1000;
    step += 1;
  }
  return { label: steps[step], factor: factor / 1000 ** step };
}

export function formatScaled(unit, value) {
  const scale = chooseScale(unit, Math.abs(value));
  const size = Math.abs(value) * scale.factor;
  const digits =
    size === 0 || (scale.factor >= 1 && Number.isInteger(size)) ? 0 : size < 10 ? 2 : size < 100 ? 1 : 0;
  const fixed = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return `${numberFormat(fixed).format(size)} ${scale.label}`.trim();
}

const twoDigits = (number) => String(number).padStart(2, '0');

/** Steps below a minute are told by their second. */
export function formatMoment(ms, stepMs = 60_000) {
  const digits = stepMs !== null && stepMs < 60_000 ? 19 : 16;
  return `${new Date(ms).toISOString().slice(0, digits).replace('T', ' ')} UTC`;
}

/** Day where a tick begins one or ticks are days apart, else the time of day; all in UTC. */
export function formatTicks(_plot, ticks, _axis, _space, incrementMs) {
  return ticks.map((ms) => {
    const date = new Date(ms);
    const isDay = incrementMs >= 86_400_000 || date.getUTCHours() + date.getUTCMinutes() === 0;
    const day = `${date.toLocaleString('en-GB', { month: 'short', timeZone: 'UTC' })} ${date.getUTCDate()}`;
    const time = `${twoDigits(date.getUTCHours())}:${twoDigits(date.getUTCMinutes())}`;
    return isDay ? day : time;
  });
}

const monthMs = 28 * 86_400_000;

/** Times of bars to write below them: each, or each second, third …, so that there are at most so many. */
export function barTicks(data, most) {
  const times = barTimes(data);
  const every = Math.max(1, Math.ceil(times.length / Math.max(1, Math.floor(most))));
  return times.filter((_time, index) => index % every === 0);
}

/** Those of the whole range, also where a bar is missing, such as days to come. */
function barTimes({ timesMs, range, stepMs }) {
  if (!range || !stepMs || timesMs.length === 0) return timesMs;
  const before = Math.floor((timesMs[0] - range.fromMs) / stepMs);
  const firstMs = timesMs[0] - before * stepMs;
  const count = Math.ceil((range.toMs - firstMs) / stepMs);
  return Array.from({ length: count }, (_, index) => firstMs + index * stepMs);
}

/** A bar of a month is named by its month, one of a day by its day; hours mean something for shorter ones only. */
export function formatBarTicks(data, ticks) {
  const distance = barDistance(data);
  if (distance < 86_400_000) return formatTicks(null, ticks, 0, 0, distance);
  return ticks.map((ms) => {
    const date = new Date(ms);
    const month = date.toLocaleString('en-GB', { month: 'short', timeZone: 'UTC' });
    return distance < monthMs ? `${month} ${date.getUTCDate()}` : `${month} ${date.getUTCFullYear()}`;
  });
}

/** Regular times travel as start, step and count. */
export function withTimes(data) {
  const { times } = data;
  const timesMs = Array.isArray(times)
    ? times
    : Array.from({ length: times.count }, (_, index) => times.startMs + index * times.stepMs);
  return { ...data, timesMs };
}

/** Puts a break where whole steps are missing, so that a gap is never bridged. Values are as they were sent. */
export function withBreaks(data) {
  const times = [];
  const values = data.series.map(() => []);
  data.timesMs.forEach((time, index) => {
    const before = data.timesMs[index - 1];
    if (data.stepMs && before !== undefined && time - before > data.stepMs * 1.5) {
      times.push(before + data.stepMs);
      for (const column of values) column.push(null);
    }
    times.push(time);
    data.series.forEach((series, at) => {
      values[at].push(series.values[index] ?? null);
    });
  });
  return { times, values };
}

const isBeside = (series) => series.isPrevious || series.isExpected;

/** What is drawn later covers what was drawn before: ghosts lie under lines, and over stacks, whose areas are opaque. */
export function drawingOrder(data) {
  const all = data.series.map((_series, index) => index);
  const beside = all.filter((index) => isBeside(data.series[index]));
  const main = all.filter((index) => !isBeside(data.series[index]));
  return data.shape === 'stacked' ? [...main.reverse(), ...beside] : [...beside, ...main];
}

/** Out is above zero, in below; what attacks is on the side of what comes in. */
export function sideOf(data, role) {
  if (role === 'attack') return data.series.some((series) => series.role === 'in') ? -1 : 1;
  return role === 'in' ? -1 : 1;
}

/** Columns for the plot, in the order of drawing: on their side of zero, parts of a stack on top of one another. */
export function plotColumns(data, values, isHidden) {
  const signed = values.map((column, index) => {
    const side = sideOf(data, data.series[index].role);
    return column.map((value) => (value === null ? null : side * value));
  });
  if (data.shape === 'stacked') stack(data, signed, isHidden);
  return drawingOrder(data).map((index) => signed[index]);
}

/** Adds up in place. A part without a value adds nothing; a time without any value stays a gap. */
function stack(data, columns, isHidden) {
  const parts = data.series.map((series, index) => (isBeside(series) || isHidden(series) ? -1 : index));
  const shown = parts.filter((index) => index >= 0);
  (columns[0] ?? []).forEach((_value, time) => {
    if (shown.every((index) => columns[index][time] === null)) return;
    const sums = { 1: 0, [-1]: 0 };
    for (const index of shown) {
      const side = sideOf(data, data.series[index].role);
      sums[side] += columns[index][time] ?? 0;
      columns[index][time] = sums[side];
    }
  });
}

/** The distance of two bars: the step, or the least distance of two times where steps differ, as months do. */
export function barDistance(data) {
  const distances = data.timesMs.slice(1).map((time, index) => time - data.timesMs[index]);
  return data.stepMs ?? (distances.length > 0 ? Math.min(...distances) : monthMs);
}

/** Points that no line reaches: a value between two gaps would not be seen otherwise. */
export function lonelyPoints(plot, seriesIndex) {
  const values = plot.data[seriesIndex];
  const lonely = [];
  for (let index = 0; index < values.length; index += 1) {
    if (
      values[index] !== null &&
      (values[index - 1] ?? null) === null &&
      (values[index + 1] ?? null) === null
    ) {
      lonely.push(index);
    }
  }
  return lonely;
}
