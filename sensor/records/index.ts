/**
 * The kinds of records that a sensor sends: how urgent each is, what its loss means, and how it moves to the right clock.
 *
 * The spool takes the list and knows no kind by itself. `docs/adding-a-record.md` says how to add one.
 */
import type { RecordKind } from '#sensor/spool/index.ts';
import { epochRecords } from './epochs.ts';
import { gapRecords } from './gaps.ts';
import { incidentRecords } from './incidents.ts';
import { inventoryRecords } from './inventory.ts';
import { minuteRecords } from './minutes.ts';
import { probeRecords } from './probes.ts';

export { epochRecords, inventoryRecords, probeRecords };

export const recordKinds: readonly RecordKind[] = [
  minuteRecords,
  gapRecords,
  inventoryRecords,
  probeRecords,
  incidentRecords,
  epochRecords,
];
