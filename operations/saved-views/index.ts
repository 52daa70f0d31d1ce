/**
 * Views of the traffic explorer under a name: what its URL says, for the person who saved it, or for all operators.
 *
 * Saving under a name that is there takes its place. A view is no right: who opens it reads what they may read. One that was not
 * saved for all operators is read by its person alone, and customers never read one of the console.
 */
import { CodedError } from '#common/errors/index.ts';
import { type Actor, forbidden, requireOperator } from '#operations/accounts/index.ts';
import { recorded } from '#service-kit/audit/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

export type { SavedView } from './store.ts';

const nameMax = 60;
const queryMax = 4_000;
/** Of one person, and of all operators together. */
const viewsMax = 100;
/** Values of the explorer's URL that make a view; others belong to one answer. */
const kept = [
  ...['q', 'range', 'from', 'to', 'by', 'tables', 'shape', 'top', 'compare', 'tab'],
  ...['sort1', 'dir1', 'sort2', 'dir2', 'sort3', 'dir3'],
];

export interface SaveViewInput {
  name: string;
  /** That of the explorer's URL; what is no part of a view is left out. */
  query: string;
  /** For all operators; operators only. */
  isShared: boolean;
}

export interface SavedViews {
  /** Those that the actor reaches on the surface where they act. */
  list(actor: Actor): Promise<store.SavedView[]>;
  /** Throws `saved_views.invalid`, `accounts.forbidden`. */
  save(actor: Actor, input: SaveViewInput): Promise<store.SavedView>;
  /** False: the actor has no such view. */
  remove(actor: Actor, id: number): Promise<boolean>;
}

export function createSavedViews(deps: { db: () => Queryable }): SavedViews {
  const { db } = deps;
  return {
    list: async (actor) => store.listViews(db(), ownerOf(actor)),
    async save(actor, input) {
      const owner = ownerOf(actor);
      if (owner.surface === 'console' || input.isShared) requireOperator(actor);
      const { isShared } = input;
      const name = input.name.replace(/[\p{Cc}\p{Cs}]/gu, ' ').trim();
      if (name === '' || name.length > nameMax)
        throw invalid(`Give the view a name of at most ${nameMax} characters.`);
      const query = viewQueryOf(input.query);
      if (query.length > queryMax)
        throw invalid(`The filters are too long to save: a view has at most ${queryMax} characters.`);
      const saved = await recorded<{ id: number }>(
        db(),
        actor,
        ({ id }) => ({
          operation: 'saved_view.save',
          subject: { kind: 'saved_view', id: String(id), name },
          after: { query, isShared },
        }),
        async (trx) => {
          const stored = await store.saveView(trx, owner, { name, query, isShared, max: viewsMax });
          if (!stored) throw invalid(`There are ${viewsMax} saved views. Remove one first.`);
          return stored;
        },
      );
      return { id: saved.id, name, query, isShared };
    },
    async remove(actor, id) {
      const owner = ownerOf(actor);
      if (owner.surface === 'console') requireOperator(actor);
      const removed = await recorded<{ name: string; query: string; isShared: boolean } | null>(
        db(),
        actor,
        ({ name, query, isShared }) => ({
          operation: 'saved_view.remove',
          subject: { kind: 'saved_view', id: String(id), name },
          before: { query, isShared },
        }),
        (trx) => store.removeView(trx, owner, id),
      );
      return removed !== null;
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

/** The values that make a view, in one order. */
export function viewQueryOf(query: string): string {
  const given = new URLSearchParams(query);
  const values = kept.flatMap((name) => {
    const value = given.get(name);
    return value === null || value === '' ? [] : [[name, value] as [string, string]];
  });
  return new URLSearchParams(values).toString();
}

const invalid = (message: string) => new CodedError('saved_views.invalid', message);
