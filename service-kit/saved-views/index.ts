/**
 * Views of an explorer under a name, as both server programs keep them: the values of its URL that make a view.
 *
 * Each program has its own table and says who reaches which views; what is a valid view, that saving under a name that is there
 * takes its place, and what the audit trail has of it is the same in both.
 */
import { CodedError } from '#common/errors/index.ts';
import { oneLine } from '#common/text/index.ts';
import { type AuditActor, recorded } from '#service-kit/audit/index.ts';
import { viewQueryOf } from '#service-kit/explorer/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

const nameMax = 60;
const queryMax = 4_000;
const viewsMax = 100;

export interface NamedView {
  name: string;
  /** Of the explorer's URL, without a question mark. */
  query: string;
}

export type ViewKeeper = ReturnType<typeof createViewKeeper>;

/** `fullText` says where there are already as many views as there may be (`max`). */
export function createViewKeeper(fullText: (max: number) => string) {
  return {
    /** A view as it is stored; what is no part of a view is left out. Throws `saved_views.invalid`. */
    prepare(given: NamedView): NamedView {
      const name = oneLine(given.name.toWellFormed());
      if (name === '' || name.length > nameMax)
        throw invalid(`Give the view a name of at most ${nameMax} characters.`);
      const query = viewQueryOf(given.query);
      if (query.length > queryMax)
        throw invalid(`The filters are too long to save: a view has at most ${queryMax} characters.`);
      return { name, query };
    },
    /**
     * Stores a view with its entry in the audit trail, which has `details` beside the query, and returns its id. `store` answers
     * null where there are `max` others; then `saved_views.invalid` is thrown.
     */
    async save(
      db: Queryable,
      actor: AuditActor,
      { name, query }: NamedView,
      details: object,
      store: (trx: Queryable, max: number) => Promise<{ id: number } | null>,
    ): Promise<number> {
      const { id } = await recorded<{ id: number }>(
        db,
        actor,
        (saved) => ({
          operation: 'saved_view.save',
          subject: { kind: 'saved_view', id: String(saved.id), name },
          after: { ...details, query },
        }),
        async (trx) => {
          const stored = await store(trx, viewsMax);
          if (!stored) throw invalid(fullText(viewsMax));
          return stored;
        },
      );
      return id;
    },
    /** Removes a view with its entry in the audit trail. False: `remove` found none. */
    async remove<View extends NamedView>(
      db: Queryable,
      actor: AuditActor,
      id: number,
      detailsOf: (removed: View) => object,
      remove: (trx: Queryable) => Promise<View | null>,
    ): Promise<boolean> {
      const removed = await recorded<View | null>(
        db,
        actor,
        (view) => ({
          operation: 'saved_view.remove',
          subject: { kind: 'saved_view', id: String(id), name: view.name },
          before: { ...detailsOf(view), query: view.query },
        }),
        remove,
      );
      return removed !== null;
    },
  };
}

const invalid = (message: string) => new CodedError('saved_views.invalid', message);
