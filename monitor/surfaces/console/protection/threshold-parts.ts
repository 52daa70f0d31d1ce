/** Thresholds as a table, and as the form that sets those of one level. */
import type { FastifyRequest } from 'fastify';
import { type AttackDirection, attackDirections } from '#contracts/incidents.ts';
import { type Metric, metrics } from '#contracts/sensor-api/detection.ts';
import { type Level, metricNames, type ResolvedSet, type ThresholdTexts } from '#monitor/protection/index.ts';
import {
  type Content,
  field,
  form,
  type Html,
  hiddenField,
  html,
  moment,
  table,
} from '#service-kit/pages/index.ts';
import { dataTable, momentColumn, textColumn } from '#service-kit/web/index.ts';
import { levelText, metricHints, rateText, shownName, typedText, unitOf } from './threshold-text.ts';

/** Why a form was refused, with what was typed. */
export interface Refused {
  message: string;
  /** By name of the field. */
  fields: Readonly<Record<string, string>>;
  status: 409 | 422;
  typed: Readonly<Record<string, unknown>>;
}

const nameOf = (metric: Metric) => metricNames[metric].replace(/^[a-z]/, (letter) => letter.toUpperCase());

const metricCell = (metric: Metric) => html`${nameOf(metric)} <div class="hint">${metricHints[metric]}</div>`;

/** Effective thresholds with the level of each; `levelCell` may link to what sets it. */
export function thresholdTable(
  request: FastifyRequest,
  resolved: ResolvedSet,
  levelCell: (level: Level) => Content = levelText,
): Html {
  const value = (direction: AttackDirection) => (metric: Metric) => {
    const { value, level } = resolved[direction][metric];
    return html`<span${level === 'default' ? html` class="hint"` : ''}>${rateText(metric, value)}</span> <div class="hint">${levelCell(level)}</div>`;
  };
  return dataTable<Metric>(request, {
    id: 'thresholds',
    caption: 'Thresholds of one address',
    card: { line: ['direction', 'certain'] },
    isStacked: true,
    rows: metrics,
    columns: [
      { key: 'metric', header: 'Traffic', kind: 'prose', cell: metricCell, value: (metric) => metric },
      ...attackDirections.map((direction) => ({
        key: direction,
        header: direction === 'inbound' ? 'Inbound' : 'Outbound',
        kind: 'figure' as const,
        cell: value(direction),
        value: (metric: Metric) => resolved[direction][metric].value,
      })),
    ],
    fields: attackDirections.map((direction) => ({
      field: `${direction}_level`,
      value: (metric: Metric) => resolved[direction][metric].level,
    })),
    empty: { title: 'None', text: 'There are no thresholds.' },
  });
}

export interface ThresholdInputs {
  action: string;
  submit: string;
  /** Unique in the page. */
  id: string;
  texts: ThresholdTexts;
  /** What a blank field stands for. */
  inherited: (direction: AttackDirection, metric: Metric) => number | null;
  refused: Refused | undefined;
}

export interface ThresholdForm extends ThresholdInputs {
  csrfToken: string;
  revision: number;
  /** Fields before the thresholds. */
  before?: Content;
}

/** The form of one level. */
export function thresholdForm(options: ThresholdForm): Html {
  const { action, csrfToken, submit, revision, refused } = options;
  return form({ action, csrfToken, submit, error: refused?.message }, [
    hiddenField('revision', revision),
    options.before,
    html`<p class="hint">A rate of one second: a number such as 20000, 20k or 1.5G. Write off for “not judged”. A blank field has the value of the level above, shown in grey.</p>`,
    inputTable(options),
    metrics.flatMap((metric) =>
      attackDirections.map((direction) =>
        hiddenField(shownName(`${direction}.${metric}`), typedText(options.inherited(direction, metric))),
      ),
    ),
    field({
      ...{ id: `${options.id}-multiply`, name: 'multiply', label: 'Multiply all by', kind: 'number' },
      ...{ min: 0.01, max: 100, step: 0.01, autocomplete: 'off' },
      hint: 'Such as 1.5. Saving multiplies every threshold above, typed or in grey. Leave blank to save them as they are.',
    }),
  ]);
}

/** A form that asks about thresholds and saves nothing. */
export function thresholdFilter(options: ThresholdInputs): Html {
  const { action, submit, refused } = options;
  return form({ action, method: 'get', submit, error: refused?.message }, [
    html`<p class="hint">A number such as 20000, 20k or 1.5G, or off for “not judged”. A blank field has the present threshold, shown in grey. Nothing is saved.</p>`,
    inputTable(options),
  ]);
}

/** A form that has other thresholds tried in the background; it saves none. */
export function thresholdOrder(options: ThresholdInputs & { csrfToken: string }): Html {
  const { action, csrfToken, submit, refused } = options;
  return form({ action, csrfToken, submit, error: refused?.message }, [
    html`<p class="hint">A number such as 20000, 20k or 1.5G, or off for “not judged”. A blank field has the present threshold, shown in grey.</p>`,
    inputTable(options),
  ]);
}

function inputTable({ id, texts, inherited, refused }: ThresholdInputs): Html {
  const input = (direction: AttackDirection) => (metric: Metric) =>
    field({
      id: `${id}-${direction}-${metric}`,
      name: `${direction}.${metric}`,
      label: `${nameOf(metric)}, ${direction}`,
      isLabelHidden: true,
      value: texts[direction][metric] ?? '',
      placeholder: typedText(inherited(direction, metric)),
      maxLength: 24,
      error: refused?.fields[`${direction}.${metric}`],
      autocomplete: 'off',
    });
  return table<Metric>({
    caption: 'Thresholds',
    card: { line: ['unit', 'inbound', 'outbound'] },
    isStacked: true,
    rows: metrics,
    columns: [
      { key: 'metric', header: 'Traffic', kind: 'prose', cell: nameOf },
      { key: 'unit', header: 'Unit', cell: unitOf },
      { key: 'inbound', header: 'Inbound', kind: 'figure', cell: input('inbound') },
      { key: 'outbound', header: 'Outbound', kind: 'figure', cell: input('outbound') },
    ],
    empty: { title: 'None', text: 'There are no thresholds.' },
  });
}

/** What blank fields of a level stand for, by what the levels above it give. */
export function inheritedBy(above: ResolvedSet) {
  return (direction: keyof ResolvedSet, metric: keyof ResolvedSet['inbound']) => {
    return above[direction][metric].value;
  };
}

/** Who changed settings last. */
export function changedText(
  { changedAtMs, changedBy }: { changedAtMs: number | null; changedBy: string | null },
  nowMs: number,
): Content {
  if (changedAtMs === null) return 'never changed';
  return html`changed by ${changedBy}, ${moment(changedAtMs, nowMs)}`;
}

/** The columns of a table that say who changed a row and when. */
export function changedColumns<Row extends { changedAtMs: number | null; changedBy: string | null }>(
  nowMs: number,
) {
  return [
    momentColumn('changed', 'Changed', (row: Row) => row.changedAtMs, nowMs, { field: 'changed_at' }),
    textColumn('by', 'By', (row: Row) => row.changedBy, { field: 'changed_by' }),
  ];
}
