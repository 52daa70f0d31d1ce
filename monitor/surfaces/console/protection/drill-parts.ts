/** Drills on the pages of a site and of an address: the form that starts one, and the list with its stop buttons. */
import type { FastifyRequest } from 'fastify';
import { titleOfClass } from '#contracts/attack-classes.ts';
import { fastTriggerRatio, type ThresholdSet } from '#contracts/sensor-api/detection.ts';
import {
  type Drill,
  type DrillInput,
  drillClasses,
  drillDelaySeconds,
  drillSecondsMax,
  drillState,
  metricNames,
  strongestOf,
} from '#monitor/protection/index.ts';
import {
  actionButton,
  badge,
  type Content,
  code,
  field,
  form,
  formatBitRate,
  formatCount,
  type Html,
  html,
  isoTime,
  type Tone,
  utcTime,
} from '#service-kit/pages/index.ts';
import { type DataColumn, dataTable, linkColumn, textColumn } from '#service-kit/web/index.ts';
import type { Refused } from './threshold-parts.ts';

export const emptyDrill: DrillInput = { class: 'syn_flood', direction: 'inbound', pps: '25k', seconds: '60' };

const states: Readonly<Record<ReturnType<typeof drillState>, Tone>> = {
  waiting: 'info',
  running: 'warn',
  ended: 'neutral',
  stopped: 'neutral',
};

/** The form that starts a drill of an address. */
export function drillForm(options: {
  action: string;
  csrfToken: string;
  refused: Refused | undefined;
}): Content {
  const { action, csrfToken, refused } = options;
  const typed = { ...emptyDrill, ...(refused?.typed as Partial<DrillInput> | undefined) };
  const fault = (name: string) => refused?.fields[name];
  return [
    html`<p class="hint">Sensors add synthetic counters to those of this address and find the attack by its thresholds. No packet is sent. It starts ${drillDelaySeconds} seconds after you order it, when every sensor has fetched its plan. Incidents of a drill are marked as such.</p>`,
    form({ action, csrfToken, submit: 'Start drill', error: refused?.message }, [
      field({
        kind: 'select',
        name: 'class',
        label: 'Class',
        value: typed.class,
        options: drillClasses.map((value) => ({ value, label: titleOfClass(value) })),
        error: fault('class'),
      }),
      field({
        kind: 'select',
        name: 'direction',
        label: 'Direction',
        value: typed.direction,
        options: [
          { value: 'inbound', label: 'Inbound, to this address' },
          { value: 'outbound', label: 'Outbound, from this address' },
        ],
        error: fault('direction'),
      }),
      field({
        name: 'pps',
        label: 'Packets a second',
        required: true,
        value: typed.pps,
        hint: `Such as 25k. From ${fastTriggerRatio} times a threshold on it is found within 3 seconds.`,
        maxLength: 20,
        error: fault('pps'),
      }),
      field({
        kind: 'number',
        name: 'seconds',
        label: 'Seconds',
        required: true,
        value: typed.seconds,
        min: 1,
        max: drillSecondsMax,
        error: fault('seconds'),
      }),
      field({
        kind: 'checkbox',
        name: 'mails_customer',
        label: 'Mail the customer',
        hint: 'As about an attack, and named a drill. Only where operations is new enough, and the customer has not turned attack mails off. If not selected, nothing is mailed.',
        checked: typed.mails_customer !== undefined,
      }),
    ]),
  ];
}

export interface DrillTable {
  /** The page of the site's protection. */
  path: string;
  drills: readonly Drill[];
  /** Of the address; null on the page of all drills. */
  thresholds: ThresholdSet | null;
  /** Null: the viewer may not stop drills. */
  csrfToken: string | null;
  nowMs: number;
}

/** What a drill comes to by the present thresholds. */
function expectation(drill: Drill, thresholds: ThresholdSet): Content {
  const strongest = strongestOf(drill, thresholds[drill.direction]);
  if (!strongest) return 'nothing that counts it is judged: it is not found';
  const ratio = `${strongest.ratio.toFixed(strongest.ratio < 10 ? 2 : 0)} times ${metricNames[strongest.metric]}`;
  if (strongest.ratio < 1) return `${ratio}: below every threshold, it is not found`;
  return `${ratio}: found within ${strongest.ratio >= fastTriggerRatio ? 3 : 6} s`;
}

function drillColumns({ path, drills, thresholds, csrfToken, nowMs }: DrillTable): DataColumn<Drill>[] {
  const hrefOf = (row: Drill) => `${path}/addresses/${encodeURIComponent(row.address)}`;
  const isOpen = (row: Drill) => ['waiting', 'running'].includes(drillState(row, nowMs));
  const columns: DataColumn<Drill>[] = [
    {
      key: 'starts',
      header: 'Starts',
      cell: (row) =>
        html`${utcTime(row.startsAtMs, 'seconds')} <div class="hint">by ${row.startedBy}${row.stoppedBy && html`, stopped by ${row.stoppedBy}`}</div>`,
      field: 'starts_at',
      value: (row) => isoTime(row.startsAtMs),
    },
    textColumn('state', 'State', (row) => drillState(row, nowMs), {
      show: (state) => badge(states[state], state),
    }),
    ...(thresholds === null
      ? [linkColumn('address', 'Address', (row: Drill) => [row.address, hrefOf(row)], { show: code })]
      : []),
    {
      key: 'class',
      header: 'Drill',
      cell: (row) =>
        html`${titleOfClass(row.class)} <div class="hint">${row.direction}, ${formatCount(row.seconds)} s${row.mailsCustomer && ', customer is mailed'}</div>`,
      value: (row) => `${row.direction} ${row.class}`,
    },
    {
      key: 'rate',
      header: 'Rate',
      kind: 'figure',
      cell: (row) =>
        html`${formatCount(row.pps)} packets/s <div class="hint">${formatBitRate(row.bps)}</div>`,
      field: 'pps',
      value: (row) => row.pps,
    },
  ];
  if (thresholds)
    columns.push({
      key: 'expected',
      header: 'By the thresholds',
      kind: 'prose',
      cell: (row) => expectation(row, thresholds),
      value: (row) => String(expectation(row, thresholds)),
    });
  if (csrfToken && drills.some(isOpen))
    columns.push({
      key: 'actions',
      header: 'Change',
      kind: 'actions',
      cell: (row) =>
        isOpen(row)
          ? actionButton({ action: `${hrefOf(row)}/drills/${row.id}/stop`, csrfToken, label: 'Stop' })
          : null,
    });
  return columns;
}

export function drillTable(request: FastifyRequest, options: DrillTable): Html {
  return dataTable<Drill>(request, {
    id: 'drills',
    caption: 'Drills',
    card: { line: ['state', 'class', 'address'] },
    isStacked: true,
    rows: options.drills,
    columns: drillColumns(options),
    fields: [
      { field: 'seconds', value: (row) => row.seconds },
      { field: 'mails_customer', value: (row) => row.mailsCustomer },
      { field: 'started_by', value: (row) => row.startedBy },
      { field: 'stopped_by', value: (row) => row.stoppedBy },
      { field: 'stopped_at', value: (row) => isoTime(row.stoppedAtMs) },
    ],
    empty: {
      title: 'No drills yet',
      text: 'A drill shows whether an attack on an address would be found, and who would be told.',
    },
  });
}
