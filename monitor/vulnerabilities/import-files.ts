/**
 * Imports files that others publish: feed files of the NVD and files of the distributions' security trackers, from a folder with
 * its subfolders, or one from a URL.
 */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { CodedError, describeError } from '#common/errors/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type FeedFile, readFeed } from './nvd/import-feeds.ts';
import { noteTrackers, putFixes } from './packages/fix-store.ts';
import { readTracker, type TrackerFile } from './packages/read-trackers.ts';
import * as store from './store.ts';

/** What an import stored. */
export interface ImportResult {
  files: number;
  records: number;
  /** Records of known products. */
  stored: number;
  unreadable: number;
}

const fileBytesMax = 500 * 1024 * 1024;
const fetchTimeoutMs = 600_000;
const unpack = promisify(gunzip);

/**
 * Adds the records of feed files to the copy, a transaction for each file, and puts what files of trackers say in the place of what
 * was stored of the same, in one transaction. It needs no lease: a newer record stays, also where a refresh runs at the same
 * time. Throws `vulnerabilities.feed` for a file that can't be read; the feed files before it stay stored.
 */
export async function importFiles(
  db: Queryable,
  source: string,
  report: (line: string) => void,
  signal?: AbortSignal,
): Promise<ImportResult> {
  const result: ImportResult = { files: 0, records: 0, stored: 0, unreadable: 0 };
  const trackers: TrackerFile[] = [];
  for await (const { name, path, file } of readFiles(source, signal)) {
    const read = await attempt(path, async () => readTracker(file) ?? readFeed(name, file));
    if (read === null)
      throw refused(path, "is no feed file of the CVE API 2.0 and no file of a distribution's tracker");
    result.files += 1;
    if ('distribution' in read) trackers.push(read);
    else await importFeed(db, read, result, report);
  }
  await importTrackers(db, trackers, report);
  return result;
}

async function importFeed(
  db: Queryable,
  feed: FeedFile,
  result: ImportResult,
  report: (line: string) => void,
): Promise<void> {
  let stored = 0;
  await db.transaction().execute(async (trx) => {
    for (const [product, advisories] of feed.advisories) {
      await store.mergeAdvisories(trx, product, advisories, feed.rejected, feed.madeAtMs);
      stored += advisories.length;
    }
  });
  result.records += feed.records;
  result.stored += stored;
  result.unreadable += feed.unreadable;
  report(
    `${feed.name}: ${feed.records} records, ${stored} of known products, ${feed.unreadable} unreadable.`,
  );
}

async function importTrackers(db: Queryable, files: readonly TrackerFile[], report: (line: string) => void) {
  if (files.length === 0) return;
  await db.transaction().execute(async (trx) => {
    for (const [distribution, own] of Map.groupBy(files, (file) => file.distribution)) {
      const fixes = own.flatMap((file) => file.fixes);
      const isWhole = own.some(({ about }) => about === 'everything');
      const about = isWhole ? 'everything' : own.flatMap((file) => file.about);
      await putFixes(trx, { distribution, about, fixes });
      report(
        `Security tracker of ${distribution}: ${own.length} ${own.length === 1 ? 'file' : 'files'}, ${fixes.length} statements of known products.`,
      );
    }
    await noteTrackers(
      trx,
      files.map(({ distribution }) => distribution),
    );
  });
}

interface ReadFile {
  name: string;
  path: string;
  file: unknown;
}

/** One after the other, in the order of their names. Throws `vulnerabilities.feed`. */
async function* readFiles(source: string, signal?: AbortSignal): AsyncGenerator<ReadFile> {
  if (/^https?:/i.test(source)) {
    yield { name: source, path: source, file: await attempt(source, () => fetchFile(source, signal)) };
    return;
  }
  const names = await attempt(source, () => readdir(source, { recursive: true }));
  const files = names.filter((name) => /\.json(\.gz)?$/.test(name)).sort();
  if (files.length === 0) throw refused(source, 'has no .json or .json.gz file');
  for (const name of files) {
    const path = join(source, name);
    yield { name, path, file: await attempt(path, () => readJson(path)) };
  }
}

async function readJson(path: string): Promise<unknown> {
  if ((await stat(path)).size > fileBytesMax) throw new Error('it is larger than 500 MiB');
  const bytes = await readFile(path);
  const text = path.endsWith('.gz') ? await unpack(bytes, { maxOutputLength: fileBytesMax }) : bytes;
  return JSON.parse(text.toString('utf8'));
}

/** Nothing but the URL is sent. */
async function fetchFile(url: string, signal?: AbortSignal): Promise<unknown> {
  const { protocol, hostname } = new URL(url);
  if (protocol !== 'https:' && !['127.0.0.1', '[::1]', 'localhost'].includes(hostname))
    throw new Error('it is not encrypted: name an https URL');
  const signals = [AbortSignal.timeout(fetchTimeoutMs), ...(signal ? [signal] : [])];
  const response = await fetch(url, { signal: AbortSignal.any(signals), redirect: 'error' });
  if (!response.ok || !response.body) throw new Error(`the answer was ${response.status}`);
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of response.body) {
    bytes += piece.length;
    if (bytes > fileBytesMax) throw new Error('it is larger than 500 MiB');
    pieces.push(piece);
  }
  return JSON.parse(Buffer.concat(pieces).toString('utf8'));
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
