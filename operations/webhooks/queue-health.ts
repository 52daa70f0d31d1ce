import type { QueueHealth } from './store.ts';

/** Deliveries that wait longer than this lack workers or a database, not receivers. */
const lateSeconds = 60;

/** Whether customers are told too late, because of us. */
export const isQueueLate = (health: Pick<QueueHealth, 'oldestSeconds'>): boolean =>
  health.oldestSeconds > lateSeconds;
