import { inventoryStaleMs } from '#monitor/inventory/index.ts';
import { html, link, moment, notice } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from './index.ts';

/** Says that matches may be old; they stay as they were (NET-2.1.2). */
export async function inventoryNotice(deps: Pick<ConsoleDeps, 'connection' | 'inventory'>, nowMs: number) {
  const [view, state] = await Promise.all([deps.connection.view(), deps.inventory.state()]);
  const last = state.lastSuccessAtMs;
  if (view?.isEnabled && last !== null && nowMs - last < inventoryStaleMs) return '';
  return notice({
    tone: 'warn',
    title:
      last === null
        ? 'The inventory has never been imported'
        : html`The inventory is old: imported ${moment(last, nowMs)}`,
    text: view?.isEnabled
      ? (state.lastError ?? 'The next import brings it up to date. Matches stay as they are until then.')
      : 'The connection to operations is not enabled. Matches stay as they are.',
    actions: link('/operations', 'Operations connection'),
  });
}
