// Draws <svc-chart> with uPlot: out above zero and in below, gaps as gaps, expected dashed, attacks as red areas.
// The data lies in a JSON script element beside it, and is asked for again at `data-url` when there is one.
import { drawLegend, swatch } from './chart-legend.js';
import { drawAreas, drawFlags, drawLines, drawPoles, drawRibbon, drawZero, reasonAt } from './chart-marks.js';
import {
  barDistance,
  barTicks,
  chooseScale,
  drawingOrder,
  exact,
  formatBarTicks,
  formatMoment,
  formatScaled,
  formatTicks,
  lonelyPoints,
  plotColumns,
  scales,
  short,
  timeSteps,
  withBreaks,
  withTimes,
} from './chart-values.js';
import { make } from './elements.js';
import uPlot from './uplot.js';

/** The way back out of a range that was dragged over: the picker of ranges has it. */
const zoomOutLink = () => document.querySelector('a[data-zoom-out]');

const parts = (rgb) =>
  rgb
    .match(/[\d.]+/g)
    .slice(0, 3)
    .map(Number);
const translucent = (rgb, share) => `rgba(${parts(rgb).join(', ')}, ${share})`;
function mixed(rgb, ground, share) {
  const below = parts(ground);
  return `rgb(${parts(rgb)
    .map((value, at) => Math.round(value * share + below[at] * (1 - share)))
    .join(', ')})`;
}

/** Most rows of the crosshair's box; the table below has all. */
const tipRowsMax = 6;

/** When the data beside it may be new. */
const rereadOn = ['htmx:after:swap', 'refreshed'];

class Chart extends HTMLElement {
  connectedCallback() {
    this.hidden_ = new Set();
    this.legend = make('div', 'chart-legend');
    this.box = make('div', '');
    this.box.setAttribute('role', 'img');
    this.box.tabIndex = 0;
    this.box.addEventListener('keydown', (event) => this.steer(event));
    this.nothing = make('p', 'chart-nothing', this.dataset.emptyText ?? '');
    this.tip = make('div', 'chart-tip');
    this.tip.hidden = true;
    this.flags = make('div', 'chart-flags');
    this.ribbon = make('div', 'chart-ribbon');
    this.frame = make('div', 'chart-frame', this.box, this.flags);
    this.append(this.legend, this.frame, this.ribbon, this.nothing, this.tip);
    this.redraw = () => this.draw();
    document.addEventListener('themechange', this.redraw);
    this.scheme = matchMedia('(prefers-color-scheme: dark)');
    this.scheme.addEventListener('change', this.redraw);
    this.sizes = new ResizeObserver(() => this.resize());
    this.sizes.observe(this);
    this.reread = () => this.read();
    for (const type of rereadOn) document.addEventListener(type, this.reread);
    const seconds = Number(this.dataset.refreshSeconds);
    if (this.dataset.url && seconds > 0)
      this.timer = setInterval(() => void this.refresh(), Math.max(2, seconds) * 1000);
    this.read();
  }

  disconnectedCallback() {
    clearInterval(this.timer);
    this.sizes.disconnect();
    this.scheme.removeEventListener('change', this.redraw);
    document.removeEventListener('themechange', this.redraw);
    for (const type of rereadOn) document.removeEventListener(type, this.reread);
    this.plot?.destroy();
    this.plot = undefined;
    this.replaceChildren();
  }

  read() {
    const text = document.getElementById(this.dataset.source)?.textContent;
    if (!text || text === this.text) return;
    this.text = text;
    this.data = withTimes(JSON.parse(text));
    this.draw();
  }

  async refresh() {
    if (document.hidden || this.isPaused) return;
    let data;
    try {
      const headers = { accept: 'application/json', 'x-refresh': '1' };
      const answer = await fetch(this.dataset.url, { headers });
      if (answer.status === 401) document.dispatchEvent(new Event('signedout'));
      if (answer.ok) data = withTimes(await answer.json());
    } catch {
      // Said below, in the legend.
    }
    // Paused while the answer was on its way.
    if (this.isPaused) return;
    this.isStale = data === undefined;
    if (data) this.data = data;
    this.draw();
  }

  /** A token's colour in the present scheme: `light-dark()` is only resolved in a property that takes a colour. */
  colour(name) {
    const probe = this.appendChild(make('i', name));
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
  }

  resize() {
    const width = this.box.clientWidth;
    if (!this.plot || width === 0 || width === this.plot.width) return;
    this.plot.setSize({ width, height: this.plot.height });
  }

  draw() {
    this.plot?.destroy();
    this.tip.hidden = true;
    const { data } = this;
    const { times, values } = withBreaks(data);
    this.values = values;
    const isHidden = (series) => this.hidden_.has(series.label);
    const columns = plotColumns(data, values, isHidden);
    const order = drawingOrder(data);
    const visible = columns.filter((_, at) => !isHidden(data.series[order[at]]));
    const levels = (data.lines ?? []).map((line) => line.value);
    const largest = visible.reduce(
      (most, column) => column.reduce((size, value) => Math.max(size, Math.abs(value ?? 0)), most),
      Math.max(0, ...levels),
    );
    this.nothing.hidden = data.series.some((series) => series.values.some((value) => value !== null));
    this.scale = chooseScale(data.unit, largest);
    this.colours = data.series.map((series) =>
      series.role === 'attack' ? 'colour-bad' : `series-${series.colour ?? (series.role === 'out' ? 2 : 1)}`,
    );
    this.box.setAttribute(
      'aria-label',
      `${this.dataset.title}: ${data.summary}; the table below has the values`,
    );
    drawLegend(this);
    this.plot = new uPlot(this.options(order), [times, ...columns], this.box);
    this.plot.over.addEventListener('dblclick', () => zoomOutLink()?.click());
  }

  options(order) {
    const height = Number(getComputedStyle(this).getPropertyValue('--plot-height'));
    const axis = { stroke: this.colour('colour-text'), font: `12px ${getComputedStyle(this).fontFamily}` };
    const grid = { stroke: this.colour('colour-grid'), width: 1 };
    return {
      width: Math.max(200, this.box.clientWidth),
      height,
      ms: 1,
      tzDate: (ms) => uPlot.tzDate(new Date(ms), 'Etc/UTC'),
      padding: [8, 20, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        drag: { x: this.dataset.zoom !== undefined, y: false, setScale: false },
        points: { size: 6 },
        // The crosshair is in step over all charts of the page; dragging stays with its own.
        sync: {
          key: 'page',
          setSeries: false,
          scales: ['x', null],
          filters: { pub: (type) => type === 'mousemove' || type === 'mouseleave' },
        },
      },
      scales: {
        x: { time: true, range: (_plot, least, most) => this.timeRange(least, most) },
        y: { range: (_plot, least, most) => this.valueRange(least, most) },
      },
      axes: [
        {
          ...axis,
          grid: { show: false },
          ticks: { ...grid, size: 4 },
          size: 28,
          gap: 4,
          space: 64,
          ...(this.data.isBars && barDistance(this.data) >= 60_000
            ? {
                // A bar to come may begin behind the edge, where its label would be cut.
                splits: (plot, _axis, _least, most) =>
                  barTicks(this.data, plot.bbox.width / devicePixelRatio / 64).filter((ms) => ms <= most),
                values: (_plot, ticks) => formatBarTicks(this.data, ticks),
              }
            : { incrs: timeSteps, values: formatTicks }),
        },
        {
          ...axis,
          grid,
          ticks: { show: false },
          size: 48,
          gap: 6,
          // Close enough that the larger side of zero has a tick at any height of its values.
          space: height < 200 ? 22 : 36,
          // Nothing was measured, so there is no height to tell.
          values: (_plot, ticks) =>
            this.nothing.hidden ? ticks.map((tick) => short.format(Math.abs(tick * this.scale.factor))) : [],
        },
      ],
      series: [{}, ...order.map((index) => this.lineOptions(this.data.series[index], index))],
      hooks: {
        drawClear: [(plot) => drawAreas(plot, this.data.areas ?? [], (name) => this.colour(name))],
        drawAxes: [(plot) => drawZero(plot, this.colour('colour-zero'))],
        draw: [(plot) => this.drawAround(plot)],
        setCursor: [(plot) => this.moveTip(plot)],
        setSelect: [(plot) => this.zoom(plot)],
      },
    };
  }

  lineOptions(series, index) {
    const stroke = this.colour(this.colours[index]);
    const isBeside = series.isExpected || series.isPrevious;
    const isFilled = !isBeside && series.role !== 'line';
    if (this.data.isBars && !isBeside) return this.barOptions(series, index, stroke);
    if (this.data.shape === 'stacked' && !isBeside) return this.stackOptions(series, stroke);
    return {
      label: series.label,
      show: !this.hidden_.has(series.label),
      stroke: series.isPrevious ? translucent(stroke, 0.7) : stroke,
      width: series.isPrevious ? 1.25 : 1.5,
      spanGaps: false,
      ...(series.isExpected && { dash: [5, 4] }),
      ...(series.isPrevious && { dash: [2, 3] }),
      ...(isFilled && { fill: translucent(stroke, 0.14), fillTo: 0 }),
      points: { show: true, size: 5, width: 0, fill: stroke, filter: lonelyPoints },
    };
  }

  /** Opaque, because each part is drawn over the sum that it is a part of. */
  stackOptions(series, stroke) {
    return {
      label: series.label,
      show: !this.hidden_.has(series.label),
      stroke,
      width: 1,
      spanGaps: false,
      fill: mixed(stroke, this.colour('colour-ground'), 0.72),
      fillTo: 0,
      points: { show: true, size: 5, width: 0, fill: stroke, filter: lonelyPoints },
    };
  }

  /** Bars of several lines stand side by side; in and out share their place above and below zero. */
  barOptions(series, _index, stroke) {
    const sides = this.data.series.filter((one) => one.role === 'line' && !one.isExpected);
    const isAlone = this.data.shape === 'stacked' || series.role !== 'line' || sides.length < 2;
    return {
      label: series.label,
      show: !this.hidden_.has(series.label),
      stroke,
      width: 0,
      fill: stroke,
      fillTo: 0,
      paths: uPlot.paths.bars({
        size: [isAlone ? 0.7 : 0.35, 40],
        align: isAlone ? 0 : sides.indexOf(series) === 0 ? -1 : 1,
        radius: 0.1,
      }),
      points: { show: false },
    };
  }

  timeRange(least, most) {
    if (!this.data.isBars) return this.lineRange(least, most);
    // A bar stands around its time, so the first and the last need half a step beside them.
    const half = barDistance(this.data) / 2;
    const [from, to] = this.lineRange(least, most);
    return [from - half, to + half];
  }

  /** The range that was asked for, up to the last step; a step that sticks out of it on a side is shown too. */
  lineRange(least, most) {
    const { range, stepMs, timesMs } = this.data;
    const step = stepMs ?? 60_000;
    if (range) {
      const [first = range.fromMs, last = range.fromMs] = [timesMs[0], timesMs.at(-1)];
      const from = first > range.fromMs - step ? Math.min(first, range.fromMs) : range.fromMs;
      const end = Math.max(from, range.toMs - step);
      return [from, last < range.toMs ? Math.max(last, end) : end];
    }
    if (least === null || most === null) return [Date.now() - step, Date.now()];
    return least === most ? [least - step, most + step] : [least, most];
  }

  valueRange(least, most) {
    if (least === null || most === null || (least === 0 && most === 0)) return [0, 1];
    const room = (Math.max(0, most) - Math.min(0, least)) * 0.06;
    return [least < 0 ? least - room : 0, most > 0 ? most + room : 0];
  }

  /** Levels and poles in the plot; the ribbon and the flags are elements of their own around it. */
  drawAround(plot) {
    const { lines = [], flags = [] } = this.data;
    drawRibbon(this.ribbon, plot, this.data);
    drawFlags(this.flags, plot, this.data);
    if (flags.length > 0) drawPoles(plot, this.data, this.colour('colour-zero'));
    if (lines.length > 0) drawLines(plot, lines, (line) => this.colour(this.levelColour(line)));
  }

  levelColour(line) {
    return line.role === 'in' ? 'series-1' : line.role === 'out' ? 'series-2' : 'colour-text';
  }

  /** Arrows move the crosshair and, with Shift, choose a range; Enter asks for that range, Escape goes back out. */
  steer(event) {
    const { plot } = this;
    const times = plot.data[0];
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step !== undefined && times.length > 0) {
      const at = plot.cursor.idx ?? times.length - 1;
      const next = Math.min(times.length - 1, Math.max(0, at + step));
      this.anchor = event.shiftKey && this.dataset.zoom !== undefined ? (this.anchor ?? at) : undefined;
      const [from, to] = [this.anchor ?? next, next].map((index) => plot.valToPos(times[index], 'x'));
      const select = {
        left: Math.min(from, to),
        width: Math.abs(to - from),
        top: 0,
        height: plot.over.clientHeight,
      };
      plot.setSelect(select, false);
      plot.setCursor({ left: to, top: 10 }, true, true);
    } else if (event.key === 'Enter' && this.anchor !== undefined) this.zoom(plot);
    else if (event.key === 'Escape') zoomOutLink()?.click();
    else return;
    event.preventDefault();
  }

  /** The page for the range that was dragged over, in whole steps; a slip of the hand is none. */
  zoom({ select: { left, width }, posToVal }) {
    if (width < 8) return;
    const step = Math.max(60_000, this.data.stepMs ?? 60_000);
    const from = Math.floor(posToVal(left, 'x') / step) * step;
    const to = Math.max(from + 300_000, Math.ceil(posToVal(left + width, 'x') / step) * step);
    const url = new URL(location.href);
    const query = url.searchParams;
    const present =
      query.get('range') === 'custom' ? `${query.get('from')}~${query.get('to')}` : query.get('range');
    const way = (query.get('out') ?? '').split(',').filter(Boolean);
    query.set('out', [...way, present ?? 'default'].slice(-8).join(','));
    query.set('range', 'custom');
    query.set('from', `${new Date(from).toISOString().slice(0, 16)}Z`);
    query.set('to', `${new Date(to).toISOString().slice(0, 16)}Z`);
    location.assign(url);
  }

  /** The crosshair's box: the exact value of each line with its unit. */
  moveTip(plot) {
    const { idx, left } = plot.cursor;
    if (idx === null || idx === undefined || left < 0) {
      this.tip.hidden = true;
      return;
    }
    const ms = plot.data[0][idx];
    const area = (this.data.areas ?? []).find(
      (one) => ms >= one.fromMs && (one.toMs === null || ms < one.toMs),
    );
    const why = reasonAt(this.data, ms)?.text;
    const said = [formatMoment(ms, this.data.stepMs), area?.label, this.data.notes[ms] ?? why];
    const time = make('p', '', said.filter(Boolean).join(' · '));
    const values = document.createElement('table');
    const all = this.data.series
      .map((series, index) => ({ series, index, value: this.values[index][idx] ?? null }))
      .filter(({ series }) => !this.hidden_.has(series.label))
      .sort((a, b) => (b.value ?? -1) - (a.value ?? -1));
    for (const { series, index, value } of all.slice(0, tipRowsMax)) {
      const row = values.insertRow();
      row.insertCell().append(swatch(this, index), this.nameInTip(series));
      row.insertCell().textContent = value === null ? 'no data' : formatScaled(this.data.unit, value);
      row.insertCell().textContent = value === null ? '' : this.exactText(Math.abs(value));
    }
    if (all.length > tipRowsMax)
      values.insertRow().insertCell().textContent = `and ${all.length - tipRowsMax} more`;
    this.tip.replaceChildren(time, values);
    this.tip.hidden = false;
    const at = plot.over.offsetLeft + left;
    const room = this.clientWidth - at;
    const width = this.tip.offsetWidth;
    this.tip.style.top = `${this.frame.offsetTop + 6}px`;
    const beside = room > width + 16 ? at + 12 : at - width - 12;
    this.tip.style.left = `${Math.max(0, Math.min(beside, this.clientWidth - width))}px`;
  }

  /** A name that has a line on both sides of zero says which one a value is of. */
  nameInTip({ label, role }) {
    const sides = new Set(this.data.series.filter((one) => one.label === label).map((one) => one.role));
    return sides.size > 1 ? `${label} ${role}` : label;
  }

  exactText(value) {
    if (this.data.unit === 'percent' || this.data.unit === 'ms' || this.data.unit === 'count') return '';
    if (this.data.unit === 'money') return `${(value / 10_000).toFixed(4)} USD`;
    const base = scales[this.data.unit].steps[0];
    return value < 1000 ? '' : `${exact.format(value)} ${base}`;
  }
}

customElements.define('svc-chart', Chart);
