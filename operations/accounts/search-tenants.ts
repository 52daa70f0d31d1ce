import { searchWords } from '#operations/views/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Tenant } from './account.ts';
import { findTenantsByWords } from './store.ts';

const textMax = 100;

/** Tenants with all of these beginnings of words in their own or their organization's name, or with this id. */
export async function searchTenants(db: Queryable, typed: string, limit: number): Promise<Tenant[]> {
  const text = typed.slice(0, textMax).trim();
  const words = searchWords(text);
  if (words.length === 0) return [];
  const id = /^\d{1,15}$/.test(text) ? Number(text) : null;
  return findTenantsByWords(db, { id, words }, limit);
}
