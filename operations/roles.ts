import type { RoleWords } from '#service-kit/roles/index.ts';

export type OperationsRole = 'web' | 'jobs' | 'loops';

/** What a process of operations can be for (`serve --only`). */
export const operationsRoles: RoleWords<OperationsRole> = {
  web: 'portal, console, customer API and admin API',
  jobs: 'jobs of servers, networks and firewalls, such as provisioning',
  loops: 'billing, readings, mails, webhooks, destroy notices, retention',
};
