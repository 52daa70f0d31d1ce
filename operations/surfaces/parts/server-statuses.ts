import type { ServerStatus } from '#operations/views/index.ts';

/** Those of a server that is on its way to another one. */
export const changingStatuses: readonly ServerStatus[] = [
  'queued',
  'provisioning',
  'starting',
  'stopping',
  'rebooting',
  'deleting',
];
