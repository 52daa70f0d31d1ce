/** How long actions are kept: as long as incidents. What is not ended stays. */
import type { KeptTable } from '#monitor/retention/index.ts';

export const keptHandOff: readonly KeptTable[] = [
  { table: 'hand_off_actions', column: 'ended_at', keptFor: '1 year', isPartitioned: false },
];
