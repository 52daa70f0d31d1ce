/**
 * Reads the NVD's yearly feed files (`nvdcve-2.0-2024.json`, also packed with gzip) from a folder, for networks from which the API
 * can't be reached. Records are added to what is stored; a rejected one is removed.
 */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { CodedError, describeError } from '#common/errors/index.ts';
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

const fileBytesMax = 500 * 1024 * 1024;
const unpack = promisify(gunzip);
const checkFeed = Compile(
  Type.Object({ timestamp: Type.String(), vulnerabilities: Type.Array(Type.Unknown()) }),
);

/** Feed files of a folder, one after the other, in the order of their names. Throws `vulnerabilities.feed`. */
export async function* readFeedFiles(folder: string): AsyncGenerator<FeedFile> {
  const names = await attempt(folder, () => readdir(folder));
  const files = names.filter((name) => /\.json(\.gz)?$/.test(name)).sort();
  if (files.length === 0) throw refused(folder, 'has no .json or .json.gz file');
  for (const name of files) yield await readFeedFile(join(folder, name), name);
}

async function readFeedFile(path: string, name: string): Promise<FeedFile> {
  const { size } = await attempt(path, () => stat(path));
  if (size > fileBytesMax) throw refused(path, 'is larger than 500 MiB');
  const feed = await attempt(path, async () => {
    const bytes = await readFile(path);
    const text = name.endsWith('.gz') ? await unpack(bytes, { maxOutputLength: fileBytesMax }) : bytes;
    return JSON.parse(text.toString('utf8')) as unknown;
  });
  if (!checkFeed.Check(feed)) throw refused(path, 'is no feed file of the CVE API 2.0');
  const madeAtMs = Date.parse(/z$/i.test(feed.timestamp) ? feed.timestamp : `${feed.timestamp}Z`);
  if (Number.isNaN(madeAtMs)) throw refused(path, 'does not say when it was made');
  return { name, madeAtMs, ...sortRecords(feed.vulnerabilities) };
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

async function attempt<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw refused(path, `can't be read (${describeError(error)})`);
  }
}

function refused(path: string, why: string): CodedError {
  return new CodedError('vulnerabilities.feed', `${path} ${why}. Nothing of it was stored.`);
}
