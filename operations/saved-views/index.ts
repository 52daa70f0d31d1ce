/**
 * Views of the traffic explorer under a name: what its URL says, for the person who saved it, or for all operators.
 *
 * Saving under a name that is there takes its place. A view is no right: who opens it reads what they may read. One that was not
 * saved for all operators is read by its person alone, and customers never read one of the console.
 */
import { type Actor, forbidden, requireOperator } from '#operations/accounts/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { createViewKeeper, type NamedView } from '#service-kit/saved-views/index.ts';
import * as store from './store.ts';

export type { SavedView } from './store.ts';

/** The limit is of one person, and of all operators together. */
const keeper = createViewKeeper((max) => `There are ${max} saved views. Remove one first.`);

/** What of the query is no part of a view is left out. */
export interface SaveViewInput extends NamedView {
  /** For all operators; operators only. */
  isShared: boolean;
}

export type SavedViews = ReturnType<typeof createSavedViews>;

export function createSavedViews(deps: { db: () => Queryable }) {
  const { db } = deps;
  return {
    /** Those that the actor reaches on the surface where they act. */
    list: async (actor: Actor) => store.listViews(db(), ownerOf(actor)),
    /** Throws `saved_views.invalid`, `accounts.forbidden`. */
    async save(actor: Actor, input: SaveViewInput): Promise<store.SavedView> {
      const owner = ownerOf(actor);
      if (owner.surface === 'console' || input.isShared) requireOperator(actor);
      const { isShared } = input;
      const view = keeper.prepare(input);
      const id = await keeper.save(db(), actor, view, { isShared }, (trx, max) =>
        store.saveView(trx, owner, { ...view, isShared, max }),
      );
      return { id, ...view, isShared };
    },
    /** False: the actor has no such view. */
    async remove(actor: Actor, id: number): Promise<boolean> {
      const owner = ownerOf(actor);
      if (owner.surface === 'console') requireOperator(actor);
      type Removed = NamedView & { isShared: boolean };
      const detailsOf = ({ isShared }: Removed) => ({ isShared });
      return keeper.remove(db(), actor, id, detailsOf, (trx) => store.removeView(trx, owner, id));
    },
  };
}

/** People alone have views: a key or a machine looks at no page. */
function ownerOf(actor: Actor): store.ViewOwner {
  if (actor.kind === 'staff') return { personId: actor.personId, surface: 'console' };
  if (actor.kind === 'customer' && actor.keyId === null)
    return { personId: actor.personId, surface: 'portal' };
  throw forbidden('Only a person has saved views.');
}
