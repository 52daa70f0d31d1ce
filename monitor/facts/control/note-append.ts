/** What an engine does first in an append. */
import { share } from '#monitor/placements/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { FactUpload } from '../contract/facts.ts';
import { dayOf, type EngineIdentity, noteChanges } from './engine-use-store.ts';

/** Throws `facts.moved` where another engine holds the facts; marks the uploads' days for a move. */
export async function noteAppend(
  trx: Queryable,
  own: EngineIdentity,
  uploads: readonly FactUpload[],
): Promise<void> {
  // Until the end of the transaction no move begins, and none ends.
  await share(trx);
  const days = uploads.flatMap(({ origin: { siteId }, minutes }) =>
    minutes.map(({ minute }) => ({ siteId, day: dayOf(minute) })),
  );
  await noteChanges(trx, own, days);
}
