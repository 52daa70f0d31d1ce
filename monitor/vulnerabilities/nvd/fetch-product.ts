import type { Advisory } from '../matcher/advisory.ts';
import type { Product } from '../products.ts';
import type { FetchedProduct } from '../store.ts';
import { NvdFailure, type NvdPage } from './client.ts';
import { readRecord } from './read-record.ts';

/** Sends one request, in its turn. */
export type FetchPage = (vendor: string, product: string, startIndex: number) => Promise<NvdPage>;

const unknownId = 'unknown';
const recordsMax = 20_000;
/** How often the pages of a name are read from the beginning, because records were added or removed meanwhile. */
const readingsMax = 3;

/** Fetches all records of a product, by all of its names. Throws `NvdFailure`; a part of the records is never returned. */
export async function fetchProduct(product: Product, fetchPage: FetchPage): Promise<FetchedProduct> {
  const advisories = new Map<string, Advisory>();
  const unreadable = new Set<string>();
  for (const [vendor, name] of product.names) {
    for (const record of await fetchName((start) => fetchPage(vendor, name, start))) {
      const read = readRecord(record);
      if (read === null) unreadable.add(idOf(record));
      else if (read !== 'rejected') advisories.set(read.cve, read);
    }
  }
  return { advisories: [...advisories.values()], unreadable: [...unreadable] };
}

async function fetchName(fetchPage: (startIndex: number) => Promise<NvdPage>): Promise<unknown[]> {
  for (let reading = 0; reading < readingsMax; reading += 1) {
    const records = await readPages(fetchPage);
    if (records !== 'changed') return records;
  }
  throw new NvdFailure('changing');
}

/** All pages; `changed` when the total did, because then a record may have moved to a page that was read already. */
async function readPages(
  fetchPage: (startIndex: number) => Promise<NvdPage>,
): Promise<unknown[] | 'changed'> {
  const first = await fetchPage(0);
  const records = [...first.records];
  if (first.totalResults > recordsMax) throw new NvdFailure('too_large');
  while (records.length < first.totalResults) {
    const page = await fetchPage(records.length);
    if (page.totalResults !== first.totalResults) return 'changed';
    if (page.records.length === 0) break;
    records.push(...page.records);
  }
  if (records.length !== first.totalResults) throw new NvdFailure('incomplete');
  const ids = records.map(idOf).filter((id) => id !== unknownId);
  return new Set(ids).size === ids.length ? records : 'changed';
}

/** The number of a record that may be anything else than one. */
function idOf(record: unknown): string {
  const { cve } = (record ?? {}) as { cve?: { id?: unknown } | null };
  return typeof cve?.id === 'string' ? cve.id.slice(0, 40) : unknownId;
}
