/** How long events are kept: those of attacks a year. */
import type { KeptTable } from '#monitor/retention/index.ts';

export const keptEvents: readonly KeptTable[] = [
  {
    table: 'events',
    column: 'occurred_at',
    keptFor: '3 months',
    isPartitioned: false,
    only: "kind <> 'ddos_detected'",
  },
  {
    table: 'events',
    column: 'occurred_at',
    keptFor: '1 year',
    isPartitioned: false,
    only: "kind = 'ddos_detected'",
  },
];
