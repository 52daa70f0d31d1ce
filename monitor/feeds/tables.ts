/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = [
  'allocation_targets',
  'feed_cursors',
  'feed_set_aside',
  'feed_states',
  'minute_verdicts',
] as const;
