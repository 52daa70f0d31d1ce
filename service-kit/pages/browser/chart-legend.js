// The legend of a chart: its unit, a button for each name that hides and shows its lines, levels, areas, the pause.
import { lineLabel } from './chart-marks.js';
import { make, makeButton } from './elements.js';

export function drawLegend(chart) {
  const unit = make('span', 'chart-unit', chart.scale.label);
  const labels = [...new Set(chart.data.series.map((series) => series.label))];
  const items = labels.map((label) => legendItem(chart, label));
  const levels = (chart.data.lines ?? []).map((line) => {
    const swatch = make('span', `chart-swatch is-level ${chart.levelColour(line)}`);
    return make('span', 'chart-area-label', swatch, lineLabel(chart.data.unit, line));
  });
  const areas = [...new Map((chart.data.areas ?? []).map((area) => [area.label, area])).values()].map(
    (area) => {
      const swatch = make('span', `chart-swatch is-area colour-${area.tone === 'warn' ? 'warn' : 'bad'}`);
      return make('span', 'chart-area-label', swatch, area.label);
    },
  );
  const stale = make('span', 'chart-stale', '▲ Not refreshed: the server did not answer');
  const pause = chart.dataset.pause === undefined ? [] : [pauseButton(chart)];
  chart.legend.replaceChildren(
    unit,
    ...(chart.isStale ? [stale] : []),
    ...items,
    ...levels,
    ...areas,
    ...pause,
  );
}

/** A press hides and shows everything of this name. A name that leads somewhere is a link behind its swatch. */
function legendItem(chart, label) {
  const index = chart.data.series.findIndex((series) => series.label === label);
  const { href } = chart.data.series[index];
  const button = makeButton('', swatch(chart, index), ...(href ? [] : [label]));
  button.setAttribute('aria-pressed', String(!chart.hidden_.has(label)));
  if (href) button.setAttribute('aria-label', `Show ${label}`);
  button.addEventListener('click', () => {
    const at = [...chart.legend.querySelectorAll('button')].indexOf(button);
    if (!chart.hidden_.delete(label)) chart.hidden_.add(label);
    chart.draw();
    chart.legend.querySelectorAll('button')[at]?.focus();
  });
  if (!href) return button;
  const name = make('a', 'link-quiet', label);
  name.href = href;
  return make('span', 'chart-legend-name', button, name);
}

/** Stops the moving of the chart, and shows the newest data again at once when it goes on. */
function pauseButton(chart) {
  const button = makeButton('chart-pause', chart.isPaused ? '▶ Resume' : '❚❚ Pause');
  button.addEventListener('click', () => {
    chart.isPaused = !chart.isPaused;
    chart.draw();
    chart.legend.querySelector('.chart-pause')?.focus();
    if (!chart.isPaused) void chart.refresh();
  });
  return button;
}

export function swatch(chart, index) {
  const { isExpected, isPrevious } = chart.data.series[index];
  const kind = isExpected ? ' is-expected' : isPrevious ? ' is-previous' : '';
  return make('span', `chart-swatch ${chart.colours[index]}${kind}`);
}
