/**
 * Views of the explorer under a name: what its URL says, for everyone who sees the site.
 *
 * Saving under a name that is there takes its place. A view is no right: who opens it reads what they may read.
 */
import { CodedError } from '#common/errors/index.ts';
import { dimensions } from '#monitor/explorer/index.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import { recorded } from '#service-kit/audit/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

export type { SavedView } from './store.ts';

const nameMax = 60;
const queryMax = 4_000;
const viewsMax = 100;
/** Values of the explorer's URL that make a view; others belong to one answer. */
const kept = [
  'q',
  'range',
  'from',
  'to',
  'by',
  'tables',
  'step',
  'measure',
  'top',
  'compare',
  'shape',
  'tab',
  ...dimensions.flatMap((one) => [`${one}_sort`, `${one}_direction`]),
];

export interface SavedViews {
  list(siteId: number): Promise<store.SavedView[]>;
  /** `query` is that of the explorer's URL; what is no part of a view is left out. Throws `saved_views.invalid`. */
  save(actor: Actor, siteId: number, input: { name: string; query: string }): Promise<store.SavedView>;
  /** False: the site has no such view. */
  remove(actor: Actor, siteId: number, id: number): Promise<boolean>;
}

export function createSavedViews(deps: { db: () => Queryable }): SavedViews {
  const { db } = deps;
  return {
    list: (siteId) => store.listViews(db(), siteId),
    async save(actor, siteId, input) {
      requireOperator(actor);
      const name = input.name.replace(/[\p{Cc}\p{Cs}]/gu, ' ').trim();
      if (name === '' || name.length > nameMax)
        throw invalid(`Give the view a name of at most ${nameMax} characters.`);
      const query = viewQueryOf(input.query);
      if (query.length > queryMax)
        throw invalid(`The filters are too long to save: a view has at most ${queryMax} characters.`);
      const createdBy = actor.kind === 'person' ? `operator ${actor.id}` : 'system';
      const view = { name, query, createdBy };
      const saved = await recorded<{ id: number }>(
        db(),
        actor,
        ({ id }) => ({
          operation: 'saved_view.save',
          subject: { kind: 'saved_view', id: String(id), name },
          after: { siteId, query },
        }),
        async (trx) => {
          const stored = await store.saveView(trx, { ...view, siteId, max: viewsMax });
          if (!stored) throw invalid(`A site has at most ${viewsMax} saved views. Remove one first.`);
          return stored;
        },
      );
      return { id: saved!.id, ...view };
    },
    async remove(actor, siteId, id) {
      requireOperator(actor);
      const removed = await recorded<{ name: string; query: string } | null>(
        db(),
        actor,
        ({ name, query }) => ({
          operation: 'saved_view.remove',
          subject: { kind: 'saved_view', id: String(id), name },
          before: { siteId, query },
        }),
        (trx) => store.removeView(trx, siteId, id),
      );
      return removed !== null;
    },
  };
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
