/** What hand-off did against an incident, as lines of its timeline. */
import type { Action } from '#monitor/hand-off/index.ts';
import { targetText } from './rule-text.ts';

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
