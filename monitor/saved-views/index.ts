/**
 * Views of the explorer under a name: what its URL says, for everyone who sees the site.
 *
 * Saving under a name that is there takes its place. A view is no right: who opens it reads what they may read.
 */
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { createViewKeeper, type NamedView } from '#service-kit/saved-views/index.ts';
import * as store from './store.ts';

export type { SavedView } from './store.ts';

const keeper = createViewKeeper((max) => `A site has at most ${max} saved views. Remove one first.`);

export function createSavedViews(deps: { db: () => Queryable }) {
  const { db } = deps;
  return {
    list: (siteId: number) => store.listViews(db(), siteId),
    /** `query` is that of the explorer's URL; what is no part of a view is left out. Throws `saved_views.invalid`. */
    async save(actor: Actor, siteId: number, input: NamedView): Promise<store.SavedView> {
      requireOperator(actor);
      const createdBy = actor.kind === 'person' ? `operator ${actor.id}` : 'system';
      const view = { ...keeper.prepare(input), createdBy };
      const id = await keeper.save(db(), actor, view, { siteId }, (trx, max) =>
        store.saveView(trx, { ...view, siteId, max }),
      );
      return { id, ...view };
    },
    /** False: the site has no such view. */
    async remove(actor: Actor, siteId: number, id: number): Promise<boolean> {
      requireOperator(actor);
      const detailsOf = () => ({ siteId });
      return keeper.remove(db(), actor, id, detailsOf, (trx) => store.removeView(trx, siteId, id));
    },
  };
}
