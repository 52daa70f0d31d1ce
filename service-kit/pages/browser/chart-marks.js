// What stands around a chart's plot: the ribbon of reasons below it and the flags on its time axis.
import { formatMoment, formatScaled } from './chart-values.js';
import { make } from './elements.js';

/** Part of the plot's width between two times, as left edge and width in pixels; null outside of it. */
function place(plot, fromMs, toMs) {
  const width = plot.over.clientWidth;
  const left = Math.max(0, plot.valToPos(fromMs, 'x'));
  const right = Math.min(width, plot.valToPos(toMs, 'x'));
  return right <= 0 || left >= width || right < left ? null : { left, width: Math.max(3, right - left) };
}

/** The reason that holds at a time: the first one of those that cover its step. */
export function reasonAt(data, ms) {
  const end = ms + (data.stepMs ?? 60_000);
  return (data.reasons ?? []).find((reason) => reason.fromMs < end && reason.toMs > ms);
}

/** A span of time; of some hours on a chart of a day or less the dates are plain from its axis. */
function between(data, { fromMs, toMs }) {
  const isShort =
    data.range && data.range.toMs - data.range.fromMs <= 26 * 3_600_000 && toMs - fromMs < 12 * 3_600_000;
  // With seconds where it is less than a minute.
  const [from, to] = [fromMs, toMs]
    .map((ms) => formatMoment(ms, toMs - fromMs))
    .map((text) => (isShort ? text.slice(11) : text));
  const isSameDay = isShort || from.slice(0, 10) === to.slice(0, 10);
  return `${from.replace(' UTC', '')} to ${isSameDay && !isShort ? to.slice(11) : to}`;
}

/** Hatched stretches under the plot, and below them what they are, on one line. */
export function drawRibbon(box, plot, data) {
  box.replaceChildren();
  const reasons = (data.reasons ?? []).filter((one) => place(plot, one.fromMs, one.toMs));
  box.hidden = reasons.length === 0;
  if (box.hidden) return;
  const strip = make('div', 'ribbon-strip');
  strip.style.marginLeft = `${plot.over.offsetLeft}px`;
  strip.style.width = `${plot.over.clientWidth}px`;
  for (const reason of reasons) {
    const part = make('span', `ribbon-part ribbon-${reason.tone}`);
    const { left, width } = place(plot, reason.fromMs, reason.toMs);
    part.style.left = `${left}px`;
    part.style.width = `${width}px`;
    part.title = `${reason.text}, ${between(data, reason)}`;
    strip.append(part);
  }
  // The crosshair follows over the ribbon as well, so that its box says the reason.
  strip.addEventListener('mousemove', (event) => {
    const left = event.clientX - strip.getBoundingClientRect().left;
    plot.setCursor({ left, top: 10 }, true, true);
  });
  strip.addEventListener('mouseleave', () => plot.setCursor({ left: -10, top: -10 }, true, true));
  box.append(strip, words(box, data, reasons));
}

/** A single stretch with its reason and its time; several with their number, and what each is on demand. */
function words(box, data, reasons) {
  const item = (name, { tone }, text) => make(name, '', make('span', `ribbon-swatch ribbon-${tone}`), text);
  const told = (reason) => `${reason.text}, ${between(data, reason)}`;
  if (reasons.length === 1) return make('p', 'ribbon-words', item('span', reasons[0], told(reasons[0])));
  const missing = reasons.filter(({ tone }) => tone === 'warn');
  const [what, of] = missing.length > 0 ? ['Data missing', missing] : ['No data expected', reasons];
  const line = item('summary', of[0], `${what}: ${of.length === 1 ? told(of[0]) : `${of.length} periods`}`);
  const list = make(
    'ul',
    '',
    ...reasons.slice(-reasonsMax).map((reason) => item('li', reason, told(reason))),
  );
  const details = make('details', 'ribbon-words', line, list);
  details.open = box.isOpen === true;
  details.addEventListener('toggle', () => {
    box.isOpen = details.open;
  });
  return details;
}

/** The latest that are listed; the table below has all. */
const reasonsMax = 40;

/** A flag nearer than this to the one before joins it; the flag of several, with their number, is wider. */
const room = { single: 16, several: 24 };

/** The axis ends with the start of the last step; what happened in that step stands there. */
function flagTime(plot, { range }, { timeMs }) {
  return range && timeMs < range.toMs ? Math.min(timeMs, plot.scales.x.max) : timeMs;
}

/** A flag for each event, or for several that stand too close; each leads to what happened. */
export function drawFlags(box, plot, data) {
  box.replaceChildren();
  const groups = [];
  for (const flag of [...(data.flags ?? [])].sort((a, b) => a.timeMs - b.timeMs)) {
    const left = plot.valToPos(flagTime(plot, data, flag), 'x');
    if (left < 0 || left > plot.over.clientWidth) continue;
    const last = groups.at(-1);
    const taken = last?.flags.length > 1 ? room.several : room.single;
    if (last && left - last.left < taken) last.flags.push(flag);
    else groups.push({ left, flags: [flag] });
  }
  box.style.left = `${plot.over.offsetLeft}px`;
  box.style.width = `${plot.over.clientWidth}px`;
  box.style.top = `${plot.over.offsetTop + plot.over.clientHeight}px`;
  for (const { left, flags } of groups) {
    const flag = flags.length === 1 ? single(flags[0]) : several(flags);
    flag.style.left = `${left}px`;
    box.append(flag);
  }
}

const textOf = (flag) => `${formatMoment(flag.timeMs)}: ${flag.text}`;
const tones = ['bad', 'warn', 'info', 'good', 'neutral'];

function single(flag) {
  const mark = make(flag.href ? 'a' : 'span', `chart-flag flag-${flag.tone}`);
  if (flag.href) mark.href = flag.href;
  // Its name too: a span may have no aria-label.
  mark.title = textOf(flag);
  return mark;
}

/** The list below the chart has all flags; a flag of several shows theirs and opens that list. */
function several(flags) {
  const tone = tones.find((one) => flags.some((flag) => flag.tone === one));
  const mark = make('button', `chart-flag flag-${tone} is-many`, String(flags.length));
  mark.type = 'button';
  mark.title = flags.map(textOf).join('\n');
  mark.setAttribute('aria-label', `${flags.length} events: ${flags.map(textOf).join('; ')}`);
  mark.addEventListener('click', () => {
    const list = mark.closest('figure')?.querySelector('.chart-flag-list')?.closest('details');
    if (!list) return;
    list.open = true;
    list.querySelector('summary').focus();
    list.scrollIntoView({ block: 'nearest' });
  });
  return mark;
}

/** Levels, such as the 95th percentile, as thin lines over the whole plot. */
export function drawLines(plot, lines, colourOf) {
  const { ctx, bbox } = plot;
  for (const line of lines) {
    const y = Math.round(plot.valToPos(line.role === 'in' ? -line.value : line.value, 'y', true)) + 0.5;
    if (y < bbox.top || y > bbox.top + bbox.height) continue;
    ctx.save();
    ctx.strokeStyle = colourOf(line);
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([8 * devicePixelRatio, 3 * devicePixelRatio, 2 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.restore();
  }
}

/** What the legend says of a level: its name and its value. */
export function lineLabel(unit, line) {
  return `${line.label} ${formatScaled(unit, line.value)}`;
}

/** Poles of the flags, through the whole plot. */
export function drawPoles(plot, data, colour) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const flag of data.flags) {
    const x = Math.round(plot.valToPos(flagTime(plot, data, flag), 'x', true)) + 0.5;
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

/** Times of an attack or a gap, as a shade with a mark on top. */
export function drawAreas(plot, areas, colourOf) {
  const { ctx, bbox } = plot;
  for (const area of areas) {
    const from = Math.max(bbox.left, plot.valToPos(area.fromMs, 'x', true));
    const until = area.toMs === null ? bbox.left + bbox.width : plot.valToPos(area.toMs, 'x', true);
    const to = Math.min(bbox.left + bbox.width, until);
    if (to <= from) continue;
    const colour = colourOf(area.tone === 'warn' ? 'colour-warn' : 'colour-bad');
    ctx.save();
    ctx.fillStyle = colour;
    ctx.globalAlpha = 0.16;
    ctx.fillRect(from, bbox.top, Math.max(2, to - from), bbox.height);
    ctx.globalAlpha = 1;
    ctx.fillRect(from, bbox.top, Math.max(2, to - from), 2 * devicePixelRatio);
    ctx.restore();
  }
}

/** The line between what goes out and what comes in. */
export function drawZero(plot, colour) {
  if (plot.scales.y.min >= 0) return;
  const { ctx, bbox } = plot;
  const y = Math.round(plot.valToPos(0, 'y', true)) + 0.5;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.restore();
}
