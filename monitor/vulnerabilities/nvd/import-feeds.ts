/**
 * Reads the NVD's yearly feed files (`nvdcve-2.0-2024.json`), for networks from which the API can't be reached. Records are added
 * to what is stored; a rejected one is removed.
 */
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import type { Advisory, Condition, Criterion } from '../matcher/advisory.ts';
import { parseCpe } from '../matcher/cpe.ts';
import { type Product, products } from '../products.ts';
import { readRecord } from './read-record.ts';

/** The records of one file, by key of their product. */
export interface FeedFile {
  name: string;
  /** When the database made it. */
  madeAtMs: number;
  records: number;
  unreadable: number;
  advisories: ReadonlyMap<string, readonly Advisory[]>;
  /** Numbers of records that the database took back. */
  rejected: readonly string[];
}

const checkFeed = Compile(
  Type.Object({ timestamp: Type.String(), vulnerabilities: Type.Array(Type.Unknown()) }),
);

/** Null for a file of another kind. Throws `Error` for one that does not say when it was made. */
export function readFeed(name: string, file: unknown): FeedFile | null {
  if (!checkFeed.Check(file)) return null;
  const madeAtMs = Date.parse(/z$/i.test(file.timestamp) ? file.timestamp : `${file.timestamp}Z`);
  if (Number.isNaN(madeAtMs)) throw new Error('it does not say when it was made');
  return { name, madeAtMs, ...sortRecords(file.vulnerabilities) };
}

function sortRecords(records: readonly unknown[]) {
  const advisories = new Map<string, Advisory[]>(products.map(({ key }) => [key, []]));
  const rejected: string[] = [];
  let unreadable = 0;
  for (const record of records) {
    const read = readRecord(record);
    if (read === null) unreadable += 1;
    else if (read === 'rejected') rejected.push((record as { cve: { id: string } }).cve.id);
    else for (const { key } of productsOf(read)) advisories.get(key)!.push(read);
  }
  return { records: records.length, unreadable, advisories, rejected };
}

function productsOf(advisory: Advisory): Product[] {
  const named = new Set(advisory.configurations.flatMap(namesOf));
  return products.filter(({ names }) => names.some((name) => named.has(name.join(':'))));
}

/** Vendor and product of all applications in a condition. */
function namesOf(part: Condition | Criterion): string[] {
  if ('parts' in part) return part.parts.flatMap(namesOf);
  const name = parseCpe(part.cpe);
  return name?.vendor.is === 'text' && name.product.is === 'text'
    ? [`${name.vendor.text}:${name.product.text}`]
    : [];
}
