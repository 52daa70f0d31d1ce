// Draws <svc-chart> with uPlot: in up and out down around zero, gaps as gaps, expected dashed, attacks as red areas.
// The data lies in a JSON script element beside it, and is asked for again at `data-url` when there is one.
import {
  arrows,
  barDistance,
  barTicks,
  chooseScale,
  exact,
  formatBarTicks,
  formatMoment,
  formatScaled,
  formatTicks,
  lonelyPoints,
  scales,
  short,
  timeSteps,
  withBreaks,
  withTimes,
} from './chart-values.js';
import uPlot from './uplot.js';

function make(tag, className, ...content) {
  const element = document.createElement(tag);
  element.className = className;
  element.append(...content);
  return element;
}

function makeButton(className, ...content) {
  const button = make('button', className, ...content);
  button.type = 'button';
  return button;
}

class Chart extends HTMLElement {
  connectedCallback() {
    this.hidden_ = new Set();
    this.legend = make('div', 'chart-legend');
    this.box = make('div', '');
    this.box.setAttribute('role', 'img');
    this.box.setAttribute('aria-label', `${this.dataset.title}; the table below has the values`);
    this.nothing = make('p', 'chart-nothing', this.dataset.emptyText ?? '');
    this.tip = make('div', 'chart-tip');
    this.tip.hidden = true;
    this.append(this.legend, this.box, this.nothing, this.tip);
    this.redraw = () => this.draw();
    document.addEventListener('themechange', this.redraw);
    this.scheme = matchMedia('(prefers-color-scheme: dark)');
    this.scheme.addEventListener('change', this.redraw);
    this.sizes = new ResizeObserver(() => this.resize());
    this.sizes.observe(this);
    this.reread = () => this.read();
    document.addEventListener('htmx:after:swap', this.reread);
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
    document.removeEventListener('htmx:after:swap', this.reread);
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
      const answer = await fetch(this.dataset.url, { headers: { accept: 'application/json' } });
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
    if (this.plot && width > 0 && width !== this.plot.width)
      this.plot.setSize({ width, height: this.plot.height });
  }

  draw() {
    this.plot?.destroy();
    this.tip.hidden = true;
    const { data } = this;
    const columns = withBreaks(data);
    const visible = columns.slice(1).filter((_, index) => !this.hidden_.has(index));
    const largest = Math.max(0, ...visible.flat().map((value) => Math.abs(value ?? 0)));
    this.nothing.hidden = data.series.some((series) => series.values.some((value) => value !== null));
    this.scale = chooseScale(data.unit, largest);
    // A chart of one meaning keeps one hue for both directions; several lines take the palette in order.
    this.colours = data.series.map((series, index) =>
      series.role === 'attack' ? 'colour-bad' : `series-${this.colourNumber(series, index)}`,
    );
    this.drawLegend();
    this.plot = new uPlot(this.options(), columns, this.box);
  }

  /** In and out keep their two colours; other lines take the palette in order, behind those two where they are. */
  colourNumber(series, index) {
    if (series.role === 'in') return 1;
    if (series.role === 'out') return 2;
    if (series.isExpected) return 1;
    const { series: all } = this.data;
    const first = all.some((other) => other.role !== 'line') ? 2 : 0;
    const before = all.slice(0, index).filter((other) => other.role === 'line' && !other.isExpected).length;
    return ((first + before) % 8) + 1;
  }

  options() {
    const height = this.classList.contains('size-small') ? 140 : 240;
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
          ...(this.data.shape === 'bars' && barDistance(this.data) >= 60_000
            ? {
                splits: (plot) => barTicks(this.data, plot.bbox.width / devicePixelRatio / 64),
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
          space: 36,
          // Nothing was measured, so there is no height to tell.
          values: (_plot, ticks) =>
            this.nothing.hidden ? ticks.map((tick) => short.format(Math.abs(tick * this.scale.factor))) : [],
        },
      ],
      series: [{}, ...this.data.series.map((series, index) => this.lineOptions(series, index))],
      hooks: {
        drawClear: [(plot) => this.drawAreas(plot)],
        drawAxes: [(plot) => this.drawZero(plot)],
        setCursor: [(plot) => this.moveTip(plot)],
        setSelect: [(plot) => this.zoom(plot)],
      },
    };
  }

  lineOptions(series, index) {
    const stroke = this.colour(this.colours[index]);
    const isFilled = !series.isExpected && series.role !== 'line';
    if (this.data.shape === 'bars' && !series.isExpected) return this.barOptions(series, index, stroke);
    return {
      label: series.label,
      show: !this.hidden_.has(index),
      stroke,
      width: 1.5,
      spanGaps: false,
      ...(series.isExpected && { dash: [5, 4] }),
      ...(isFilled && { fill: stroke.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.14)'), fillTo: 0 }),
      points: { show: true, size: 5, width: 0, fill: stroke, filter: lonelyPoints },
    };
  }

  /** Bars of several lines stand side by side; in and out share their place above and below zero. */
  barOptions(series, index, stroke) {
    const sides = this.data.series.filter((one) => one.role === 'line' && !one.isExpected);
    const isAlone = series.role !== 'line' || sides.length < 2;
    return {
      label: series.label,
      show: !this.hidden_.has(index),
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
    if (this.data.shape !== 'bars') return this.lineRange(least, most);
    // A bar stands around its time, so the first and the last need half a step beside them.
    const half = barDistance(this.data) / 2;
    const [from, to] = this.lineRange(least, most);
    return [from - half, to + half];
  }

  lineRange(least, most) {
    const { range, stepMs } = this.data;
    const step = stepMs ?? 60_000;
    if (range) return [range.fromMs, range.toMs - step > range.fromMs ? range.toMs - step : range.toMs];
    if (least === null || most === null) return [Date.now() - step, Date.now()];
    return least === most ? [least - step, most + step] : [least, most];
  }

  valueRange(least, most) {
    if (least === null || most === null || (least === 0 && most === 0)) return [0, 1];
    const room = (Math.max(0, most) - Math.min(0, least)) * 0.06;
    return [least < 0 ? least - room : 0, most > 0 ? most + room : 0];
  }

  drawAreas(plot) {
    const { ctx, bbox } = plot;
    for (const area of this.data.areas ?? []) {
      const from = Math.max(bbox.left, plot.valToPos(area.fromMs, 'x', true));
      const until = area.toMs === null ? bbox.left + bbox.width : plot.valToPos(area.toMs, 'x', true);
      const to = Math.min(bbox.left + bbox.width, until);
      if (to <= from) continue;
      const colour = this.colour(area.tone === 'warn' ? 'colour-warn' : 'colour-bad');
      ctx.save();
      ctx.fillStyle = colour;
      ctx.globalAlpha = 0.16;
      ctx.fillRect(from, bbox.top, Math.max(2, to - from), bbox.height);
      ctx.globalAlpha = 1;
      ctx.fillRect(from, bbox.top, Math.max(2, to - from), 2 * devicePixelRatio);
      ctx.restore();
    }
  }

  drawZero(plot) {
    if (plot.scales.y.min >= 0) return;
    const { ctx, bbox } = plot;
    const y = Math.round(plot.valToPos(0, 'y', true)) + 0.5;
    ctx.save();
    ctx.strokeStyle = this.colour('colour-zero');
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.restore();
  }

  /** The page for the range that was dragged over, in whole steps; a slip of the hand is none. */
  zoom({ select: { left, width }, posToVal }) {
    if (width < 8) return;
    const step = Math.max(60_000, this.data.stepMs ?? 60_000);
    const from = Math.floor(posToVal(left, 'x') / step) * step;
    const to = Math.max(from + 300_000, Math.ceil(posToVal(left + width, 'x') / step) * step);
    const url = new URL(location.href);
    url.searchParams.set('range', 'custom');
    url.searchParams.set('from', `${new Date(from).toISOString().slice(0, 16)}Z`);
    url.searchParams.set('to', `${new Date(to).toISOString().slice(0, 16)}Z`);
    location.assign(url);
  }

  drawLegend() {
    const unit = make('span', 'chart-unit', this.scale.label);
    const items = this.data.series.map((series, index) => {
      const label = `${series.isExpected ? '' : arrows[series.role]}${series.label}`;
      const button = makeButton('', this.swatch(index), label);
      button.setAttribute('aria-pressed', String(!this.hidden_.has(index)));
      button.addEventListener('click', () => {
        if (!this.hidden_.delete(index)) this.hidden_.add(index);
        this.draw();
        this.legend.querySelectorAll('button')[index]?.focus();
      });
      return button;
    });
    const areas = [...new Map((this.data.areas ?? []).map((area) => [area.label, area])).values()].map(
      (area) => {
        const swatch = make('span', `chart-swatch is-area colour-${area.tone === 'warn' ? 'warn' : 'bad'}`);
        return make('span', 'chart-area-label', swatch, area.label);
      },
    );
    const stale = make('span', 'chart-stale', '▲ Not refreshed: the server did not answer');
    const pause = this.dataset.pause === undefined ? [] : [this.pauseButton()];
    this.legend.replaceChildren(unit, ...(this.isStale ? [stale] : []), ...items, ...areas, ...pause);
  }

  /** Stops the moving of the chart, and shows the newest data again at once when it goes on. */
  pauseButton() {
    const button = makeButton('chart-pause', this.isPaused ? '▶ Resume' : '❚❚ Pause');
    button.addEventListener('click', () => {
      this.isPaused = !this.isPaused;
      this.draw();
      this.legend.querySelector('.chart-pause')?.focus();
      if (!this.isPaused) void this.refresh();
    });
    return button;
  }

  swatch(index) {
    const kind = this.data.series[index].isExpected ? ' is-expected' : '';
    return make('span', `chart-swatch ${this.colours[index]}${kind}`);
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
    const said = [formatMoment(ms, this.data.stepMs), area?.label, this.data.notes[ms]];
    const time = make('p', '', said.filter(Boolean).join(' · '));
    const values = document.createElement('table');
    this.data.series.forEach((series, index) => {
      if (this.hidden_.has(index)) return;
      const value = plot.data[index + 1][idx];
      const row = values.insertRow();
      row.insertCell().append(this.swatch(index), series.label);
      row.insertCell().textContent =
        value === null || value === undefined ? 'no data' : formatScaled(this.data.unit, value);
      row.insertCell().textContent =
        value === null || value === undefined ? '' : this.exactText(Math.abs(value));
    });
    this.tip.replaceChildren(time, values);
    this.tip.hidden = false;
    const at = plot.over.offsetLeft + left;
    const room = this.clientWidth - at;
    const width = this.tip.offsetWidth;
    this.tip.style.top = `${this.box.offsetTop + 6}px`;
    this.tip.style.left = `${Math.max(0, room > width + 16 ? at + 12 : at - width - 12)}px`;
  }

  exactText(value) {
    if (this.data.unit === 'percent' || this.data.unit === 'ms' || this.data.unit === 'count') return '';
    if (this.data.unit === 'money') return `${(value / 10_000).toFixed(4)} USD`;
    const base = scales[this.data.unit].steps[0];
    return value < 1000 ? '' : `${exact.format(value)} ${base}`;
  }
}

customElements.define('svc-chart', Chart);
