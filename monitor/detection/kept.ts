/** How long it is kept what detectors said. */
import type { KeptTable } from '#monitor/retention/index.ts';

export const keptDetection: readonly KeptTable[] = [
  { table: 'detector_minutes', column: 'minute', keptFor: '3 months', isPartitioned: true },
  { table: 'detector_addresses', column: 'minute', keptFor: '3 months', isPartitioned: true },
  { table: 'detector_epochs', column: 'last_used_at', keptFor: '3 months', isPartitioned: false },
];
