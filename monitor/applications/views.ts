import type { Direction, SiteRange, ViewRange } from '#monitor/facts/index.ts';

/** The console's views (NET-2.2.1); the first is the default. */
export const applicationViews = {
  outbound: { label: 'Internet / Outbound', direction: 'outbound' },
  inbound: { label: 'Inbound', direction: 'inbound' },
  internal: { label: 'LAN / Internal', direction: 'internal' },
  all: { label: 'All', direction: null },
} as const satisfies Record<string, { label: string; direction: Direction | null }>;

export type ApplicationView = keyof typeof applicationViews;

/** A view's range in the form of the facts. */
export function viewRange(siteId: number, view: ApplicationView, fromMs: number, toMs: number): ViewRange {
  const range: SiteRange = { siteId, fromMinute: fromMs / 1000, toMinute: toMs / 1000 };
  return { ...range, direction: applicationViews[view].direction };
}
