import type { Queryable } from '#service-kit/postgres/index.ts';
import { type ApplicationStep, type ApplicationUse, sumApplicationSteps, sumApplications } from './store.ts';

/** The console's views (NET-2.2.1); the first is the default. */
export const applicationViews = {
  outbound: { label: 'Internet / Outbound', scope: 'internet', direction: 'outbound' },
  inbound: { label: 'Inbound', scope: 'internet', direction: 'inbound' },
  internal: { label: 'LAN / Internal', scope: 'internal', direction: 'internal' },
  all: { label: 'All', scope: null, direction: null },
} as const;

export type ApplicationView = keyof typeof applicationViews;

/** Applications of a range by bytes, each scope and direction of a minute counted at the vantage that owns it. */
export function listApplications(
  db: Queryable,
  options: { siteId: number; view: ApplicationView; fromMs: number; toMs: number; limit: number },
): Promise<ApplicationUse> {
  const { scope, direction } = applicationViews[options.view];
  return sumApplications(db, { ...options, scope, direction });
}

/** Bytes over time of these names and of the rest, counted as in the list. */
export function listApplicationSteps(
  db: Queryable,
  options: {
    siteId: number;
    view: ApplicationView;
    fromMs: number;
    toMs: number;
    stepSeconds: number;
    names: readonly string[];
  },
): Promise<ApplicationStep[]> {
  const { scope, direction } = applicationViews[options.view];
  return sumApplicationSteps(db, { ...options, scope, direction });
}
