import { type ImportState, inventoryStaleMs } from '#monitor/inventory/index.ts';
import type { ConnectionView } from '#monitor/operations-client/index.ts';
import { banner, html, link, moment } from '#service-kit/pages/index.ts';

/** Banner for an old inventory; matches stay as they were (NET-2.1.2). */
export function inventoryBanner(view: ConnectionView | null, state: ImportState, nowMs: number) {
  const last = state.lastSuccessAtMs;
  if (view?.isEnabled && last !== null && nowMs - last < inventoryStaleMs) return '';
  return banner({
    tone: 'warn',
    title:
      last === null
        ? 'The inventory has never been imported'
        : html`The inventory is old: imported ${moment(last, nowMs)}`,
    text: view?.isEnabled
      ? (state.lastError ?? 'The next import updates it. Until then, matches stay unchanged.')
      : 'The connection to operations is not enabled. Matches stay unchanged.',
    actions: link('/operations', 'Operations connection'),
  });
}
