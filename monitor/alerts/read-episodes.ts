/** Episodes with the names of their sites. */
import { nameSites } from '#monitor/views/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type EpisodeFilter, findEpisode, listEpisodes, type StoredEpisode } from './store.ts';

export interface Episode extends StoredEpisode {
  siteName: string;
}

export async function readEpisode(db: Queryable, id: number): Promise<Episode | null> {
  const found = await findEpisode(db, id);
  return found && (await withSiteNames(db, [found]))[0]!;
}

/** Newest first. */
export async function readEpisodes(db: Queryable, filter: EpisodeFilter): Promise<Episode[]> {
  return withSiteNames(db, await listEpisodes(db, filter));
}

async function withSiteNames(db: Queryable, episodes: readonly StoredEpisode[]): Promise<Episode[]> {
  const ids = new Set(episodes.flatMap(({ siteId }) => siteId ?? []));
  const names = await nameSites(db, [...ids]);
  return episodes.map((episode) => ({
    ...episode,
    siteName: episode.siteId === null ? 'all sites' : names.get(episode.siteId)!,
  }));
}
