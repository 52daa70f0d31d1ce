/** Thresholds as a table, and as the form that sets those of one level. */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { CodedError } from '#common/errors/index.ts';
import { type AttackDirection, attackDirections } from '#contracts/incidents.ts';
import { type Metric, metrics } from '#contracts/sensor-api/detection.ts';
import {
  isBitRate,
  type Level,
  metricNames,
  parseRate,
  type ResolvedSet,
  type ThresholdChoices,
  type ThresholdTexts,
} from '#monitor/protection/index.ts';
import {
  type Content,
  field,
  form,
  formatBitRate,
  formatCount,
  type Html,
  hiddenField,
  html,
  moment,
  table,
} from '#service-kit/pages/index.ts';
import { dataTable, momentColumn, textColumn } from '#service-kit/web/index.ts';
import { faultText } from '../frame.ts';

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

interface ThresholdInputs {
  action: string;
  submit: string;
  /** Unique in the page. */
  id: string;
  texts: ThresholdTexts;
  /** What a blank field stands for. */
  inherited: (direction: AttackDirection, metric: Metric) => number | null;
  refused: Refused | undefined;
}

interface ThresholdForm extends ThresholdInputs {
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
    card: { line: ['inbound', 'outbound'] },
    isStacked: true,
    rows: metrics,
    columns: [
      {
        ...{ key: 'metric', header: 'Traffic', kind: 'prose' },
        cell: (metric) => html`${nameOf(metric)} <span class="hint">${unitOf(metric)}</span>`,
      },
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

// Thresholds in words: what a metric counts, its rate with its unit, and the level that a value comes from.

const metricHints: Readonly<Record<Metric, string>> = {
  pps: 'packets a second of any kind',
  bps: 'bits a second of any kind',
  syn_pps: 'openings without a completed handshake',
  udp_pps: 'UDP datagrams',
  udp_bps: 'bits in UDP datagrams',
  icmp_pps: 'ICMP and ICMPv6',
  fragment_pps: 'IP fragments',
  amplification_bps: 'UDP from ports that are used for amplification',
  amplification_spread_bps: 'the same, while more than 20 sources send',
  connections_per_second: 'completed connections that carry almost nothing',
};

/** `50,000 packets/s`, `900 Mbit/s`, `not judged`. */
export function rateText(metric: Metric, value: number | null): string {
  if (value === null) return 'not judged';
  if (!isBitRate(metric)) return `${formatCount(value)} ${unitOf(metric)}`;
  if (value >= 1e9 && value % 1e8 === 0) return `${formatCount(value / 1e9)} Gbit/s`;
  if (value % 1e6 === 0) return `${formatCount(value / 1e6)} Mbit/s`;
  return value % 1 === 0 ? `${formatCount(value)} bit/s` : formatBitRate(value);
}

const levelNames: Readonly<Record<Level, string>> = {
  default: 'default',
  site: 'this site',
  group: 'group',
  server: 'server',
  address: 'address',
};

export function levelText(level: Level): string {
  return levelNames[level];
}

const units = [
  ['T', 1e12],
  ['G', 1e9],
  ['M', 1e6],
  ['k', 1e3],
] as const;

/** A rate as a form takes it: `900M`, `off`. */
function typedText(value: number | null): string {
  if (value === null) return 'off';
  const unit = units.find(([, factor]) => value >= factor && Number.isInteger((value / factor) * 1000));
  return unit ? `${value / unit[1]}${unit[0]}` : String(value);
}

/** What a level sets, as the fields of its form. */
export function textsOf(choices: ThresholdChoices): ThresholdTexts {
  const of = (direction: (typeof attackDirections)[number]) =>
    Object.fromEntries(
      Object.entries(choices[direction]).map(([metric, value]) => [metric, typedText(value)]),
    );
  return { inbound: of('inbound'), outbound: of('outbound') };
}

/** Names of the fields of a form: `inbound.pps`. */
export const thresholdFields = attackDirections.flatMap((direction) =>
  metrics.map((metric) => `${direction}.${metric}`),
);

/** What a threshold of this metric counts. */
function unitOf(metric: Metric): string {
  if (metric === 'connections_per_second') return 'connections/s';
  return isBitRate(metric) ? 'bit/s' : 'packets/s';
}

/** Name of the field that holds what a blank field was shown to stand for. */
const shownName = (field: string) => `shown.${field}`;

/** The fields of a posted form; with `multiply` each rate times that, typed or shown. */
export function readTexts(body: Readonly<Record<string, unknown>>): ThresholdTexts {
  const factor = body.multiply ? Number(body.multiply) : 1;
  const multiplied = (field: string, typed: string) => {
    const shown = body[shownName(field)];
    const rate = parseRate(typed.trim() === '' && typeof shown === 'string' ? shown : typed);
    return rate === null ? typed : typedText(Math.max(1, Math.round(rate * factor)));
  };
  const of = (direction: (typeof attackDirections)[number]) =>
    Object.fromEntries(
      metrics.map((metric) => {
        const field = `${direction}.${metric}`;
        const text = body[field];
        const typed = typeof text === 'string' ? text : '';
        return [metric, factor === 1 ? typed : multiplied(field, typed)];
      }),
    );
  return { inbound: of('inbound'), outbound: of('outbound') };
}

// Bodies of the forms of protection settings, and refusals of them.

export const Revision = { revision: Type.String({ pattern: '^[0-9]{1,15}$' }) };

const text = Type.Optional(Type.String({ maxLength: 100 }));
/** Fields of a threshold form. */
export const thresholdProperties = {
  ...Object.fromEntries(
    thresholdFields.flatMap((name) => [name, shownName(name)]).map((name) => [name, text]),
  ),
  multiply: Type.Optional(
    Type.String({ pattern: '^(0\\.(0[1-9]|[1-9]\\d?)|[1-9]\\d{0,2}(\\.\\d{1,2})?)?$' }),
  ),
};

/** The refusal of a form; any other error is thrown. */
export function refusalOf(error: unknown, typed: Refused['typed']): Refused {
  const message = faultText(error, 'protection.invalid', 'protection.changed');
  const { code, details } = error as CodedError;
  const fields = (details.fields ?? {}) as Record<string, string>;
  const hasFields = Object.keys(fields).length > 0;
  return {
    message: hasFields ? 'Nothing was saved. Correct the marked fields.' : message,
    fields,
    status: code === 'protection.changed' ? 409 : 422,
    typed,
  };
}
