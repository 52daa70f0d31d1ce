import type { CaptureRow } from './facts.ts';

/** Says of each minute's rows, the chosen one first, why that one counts. */
export function explainRows(rows: readonly Omit<CaptureRow, 'reason'>[]): CaptureRow[] {
  const byMinute = Map.groupBy(rows, (row) => row.minute);
  return rows.map((row) => ({
    ...row,
    reason: row.isChosen ? reasonOf(row, byMinute.get(row.minute)!) : null,
  }));
}

function reasonOf(
  chosen: Omit<CaptureRow, 'reason'>,
  told: readonly Omit<CaptureRow, 'reason'>[],
): CaptureRow['reason'] {
  const all = told.filter((row) => !row.isForeign);
  if (all.length === 1) return 'only';
  const bytes = (row: Omit<CaptureRow, 'reason'>) => row.rxBytes + row.txBytes;
  const strong = all.filter((row) => bytes(row) === bytes(chosen));
  if (strong.length === 1) return 'most_bytes';
  const long = strong.filter((row) => row.observedMs === chosen.observedMs);
  if (long.length === 1) return 'longest';
  const atUplink = long.filter((row) => row.role === chosen.role);
  return atUplink.length === 1 && chosen.role === 'uplink' ? 'uplink' : 'first';
}
