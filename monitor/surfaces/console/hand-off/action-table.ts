/** Actions of a site, a rule or an incident. */
import type { FastifyRequest } from 'fastify';
import type { Action } from '#monitor/hand-off/index.ts';
import { askButton, type Content, formatCount, html, isoTime, link } from '#service-kit/pages/index.ts';
import { type DataColumn, dataTable } from '#service-kit/web/index.ts';
import type { Viewer } from '../guard.ts';
import { clockText, incidentHref } from '../parts/incident-text.ts';
import { actionBadge, endText, isCounting, targetText } from './rule-text.ts';

interface ActionTable {
  siteId: number;
  actions: readonly Action[];
  viewer: Viewer;
  nowMs: number;
  /** Leaves the column of addresses and incidents out. */
  isOfIncident?: boolean;
}

/** Of what a command wrote. */
const outputShown = 300;

export function actionTable(request: FastifyRequest, table: ActionTable): Content {
  const { actions, viewer, nowMs, siteId } = table;
  const path = `/sites/${siteId}/protection/hand-off`;
  const columns: DataColumn<Action>[] = [
    {
      key: 'address',
      header: 'Address',
      kind: 'code',
      cell: (row) =>
        row.incidentId === null || table.isOfIncident
          ? row.address
          : link(incidentHref({ siteId, id: row.incidentId }), row.address),
      value: (row) => row.address,
    },
    {
      key: 'rule',
      header: 'Rule',
      cell: (row) =>
        row.isRuleRemoved ? `${row.ruleName} (removed)` : link(`${path}/rules/${row.ruleId}`, row.ruleName),
      value: (row) => row.ruleName,
    },
    {
      key: 'state',
      header: 'State',
      cell: (row) => actionBadge(row, nowMs),
      value: (row) => `${row.state}${row.isDryRun ? ' (dry run)' : ''}`,
    },
    {
      key: 'started',
      header: 'Started',
      field: 'started_at',
      cell: (row) => timeText(row.startedAtMs, nowMs),
      value: (row) => isoTime(row.startedAtMs),
    },
    {
      key: 'ended',
      header: 'Ends',
      field: 'ended_at',
      cell: (row) => (row.endedAtMs === null ? endText(row, nowMs) : timeText(row.endedAtMs, nowMs)),
      value: (row) => isoTime(row.endedAtMs),
    },
    {
      key: 'result',
      header: 'Result',
      kind: 'prose',
      cell: (row) => resultOf(row, viewer),
      value: (row) => [row.lastError, viewer.canChange ? row.output : ''].filter(Boolean).join(': '),
    },
    ...(viewer.canChange
      ? [
          {
            key: 'actions',
            header: 'Actions',
            kind: 'actions' as const,
            cell: (row: Action) => buttonsOf(row, table, `${path}/actions/${row.id}`),
          },
        ]
      : []),
  ];
  return dataTable<Action>(request, {
    id: 'actions',
    caption: 'Actions',
    card: { line: ['state', 'rule', 'started'] },
    rows: actions,
    isStacked: true,
    columns,
    empty: { title: 'No actions yet', text: 'What rules do, or would have done in a dry run, appears here.' },
  });
}

const timeText = (ms: number | null, nowMs: number) => (ms === null ? '' : clockText(ms, nowMs));

/** The error, and what the command wrote; that only operators see. */
function resultOf({ lastError, output, stoppedBy, dropBy, attempts }: Action, viewer: Viewer): Content {
  const text = viewer.canChange ? output.trim() : '';
  return [
    lastError !== null &&
      html`<p>${lastError}${attempts > 0 && `; ${formatCount(attempts)} failed ${attempts === 1 ? 'attempt' : 'attempts'}`}</p>`,
    text !== '' && html`<p class="hint">${text.slice(0, outputShown)}${text.length > outputShown && '…'}</p>`,
    dropBy !== null && html`<p class="hint">dropping since ${dropBy} let it</p>`,
    stoppedBy !== null && html`<p class="hint">ended by ${stoppedBy}</p>`,
  ];
}

function buttonsOf(action: Action, { viewer: { csrfToken }, nowMs }: ActionTable, path: string): Content {
  if (action.needsApproval && action.state === 'waiting')
    return [
      askButton(
        {
          ...{ id: `approve-${action.id}`, label: 'Start', title: `Act on ${action.address}?` },
          ...{ action: `${path}/approve`, csrfToken },
        },
        'No server on the node that reports the attack has this address. Start it only if you know whose it is.',
      ),
      endButton(action, csrfToken, path),
    ];
  if (isCounting(action, nowMs) && !action.isDryRun)
    return [dropButton(action, csrfToken, path), endButton(action, csrfToken, path)];
  if (action.state === 'waiting' || action.state === 'active') return endButton(action, csrfToken, path);
  if (action.state === 'ending' && action.attempts > 0)
    return askButton(
      {
        ...{
          id: `give-up-${action.id}`,
          label: 'Stop retrying',
          title: 'Stop retrying?',
          openKind: 'button' as const,
        },
        ...{ action: `${path}/give-up`, csrfToken },
      },
      `What was done for ${action.address} may stay in force outside of the monitor. Undo it there.`,
    );
  return '';
}

const dropButton = (action: Action, csrfToken: string, path: string): Content =>
  askButton(
    {
      ...{ id: `drop-${action.id}`, label: 'Drop now' },
      title: `Drop the attack ${action.attack.direction === 'outbound' ? 'by' : 'on'} ${action.address}?`,
      ...{ action: `${path}/drop`, csrfToken },
    },
    'What the filter counts is dropped at the hypervisor from now on. Traffic with addresses that conversed with the server before the attack passes; other traffic that looks like the attack does not.',
  );

const endButton = (action: Action, csrfToken: string, path: string): Content =>
  askButton(
    {
      id: `end-${action.id}`,
      label: 'End now',
      title: `End the action on ${action.address}?`,
      action: `${path}/end`,
      csrfToken,
    },
    'It is undone without the hold time, also while the attack goes on. The rule does not act on this attack again.',
  );

// What hand-off did against an incident, as lines of its timeline.

export interface TimelineEntry {
  atMs: number;
  kind: string;
  text: string;
}

export function timelineOf(actions: readonly Action[]): TimelineEntry[] {
  return actions.flatMap((action) => {
    const { createdAtMs, startedAtMs, endedAtMs, state, lastError, isDryRun, ruleName } = action;
    const name = `${isDryRun ? 'Hand-off, dry run' : 'Hand-off'}: ${ruleName}`;
    const does = `${isDryRun ? 'would ' : ''}${targetText(action)}`;
    const entries: TimelineEntry[] = [];
    const note = (kind: string, atMs: number, text: string) => entries.push({ kind, atMs, text });
    if (action.dropAtMs !== null && startedAtMs !== null && action.dropAtMs <= (endedAtMs ?? Infinity))
      note('hand_off_dropping', Math.max(startedAtMs, action.dropAtMs), `${name} drops at the hypervisor`);
    if (startedAtMs !== null) note('hand_off_started', startedAtMs, `${name} began (${does})`);
    else if (state === 'waiting')
      note('hand_off_waiting', createdAtMs, `${name} has not begun${lastError ? `: ${lastError}` : ''}`);
    if (state === 'failed') note('hand_off_failed', endedAtMs!, `${name} failed: ${lastError ?? 'given up'}`);
    else if (endedAtMs !== null && startedAtMs !== null) note('hand_off_ended', endedAtMs, `${name} ended`);
    else if (state === 'ending' && lastError !== null)
      note('hand_off_ending', action.releasedAtMs ?? createdAtMs, `${name} can not end: ${lastError}`);
    return entries;
  });
}
