/** A small chart beside a figure: out above and in below a line, each to the scale of the larger, gaps as gaps. */
import { attributes, type Html, html } from './html.ts';

const width = 132;
const height = 32;

/** `null` where nothing was measured; both lists are of one length. */
export interface SparkValues {
  in: readonly (number | null)[];
  out: readonly (number | null)[];
}

/** Says nothing that the row's figures don't, but for `label`, which names what is drawn and over which time. */
export function spark(values: SparkValues, label: string): Html {
  const largest = Math.max(
    1,
    ...values.in.map((value) => value ?? 0),
    ...values.out.map((value) => value ?? 0),
  );
  const path = (list: readonly (number | null)[], sign: 1 | -1) => areas(list, sign / largest);
  return html`<svg viewBox="0 0 ${width} ${height}" preserveAspectRatio="none"${attributes({ class: 'spark', role: 'img', 'aria-label': label, width, height })}><path class="series-1" d="${path(values.in, -1)}"></path><path class="series-2" d="${path(values.out, 1)}"></path><rect class="spark-zero" y="${height / 2}" width="${width}" height="1"></rect></svg>`;
}

/** The course of one value, above its line. */
export function sparkLine(values: readonly (number | null)[], label: string): Html {
  const largest = Math.max(1, ...values.map((value) => value ?? 0));
  const full = areas(values, 2 / largest, height - 1);
  return html`<svg viewBox="0 0 ${width} ${height}" preserveAspectRatio="none"${attributes({ class: 'spark', role: 'img', 'aria-label': label, width, height })}><path class="series-1" d="${full}"></path><rect class="spark-zero" y="${height - 1}" width="${width}" height="1"></rect></svg>`;
}

/** One closed area for each unbroken run of values, a step of its own for a value between two gaps. */
function areas(list: readonly (number | null)[], scale: number, middle = height / 2): string {
  const step = width / Math.max(1, list.length);
  const half = height / 2;
  let path = '';
  let isOpen = false;
  list.forEach((value, index) => {
    const x = round(index * step);
    if (value === null) {
      if (isOpen) path += `V${middle}Z`;
      isOpen = false;
      return;
    }
    const y = round(middle - value * scale * (half - 1));
    path += isOpen ? `V${y}H${round(x + step)}` : `M${x} ${middle}V${y}H${round(x + step)}`;
    isOpen = true;
  });
  return isOpen ? `${path}V${middle}Z` : path;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
