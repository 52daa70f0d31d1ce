import type { RoleWords } from '#service-kit/roles/index.ts';

export type MonitorRole = 'web' | 'inbox' | 'feeds' | 'live' | 'loops';

/** What a process of the monitor can be for (`serve --only`). */
export const monitorRoles: RoleWords<MonitorRole> = {
  web: 'console, uploads of sensors, read API, destroy notices',
  inbox: 'stored uploads are turned into facts',
  feeds: 'inventory, minutes, attacks, port scans and vulnerabilities, from and to operations',
  live: 'the live feed to operations',
  loops: 'incidents, roll-ups, alerts, hand-off, vulnerability database, retention',
};
