/**
 * AS and country of addresses, from files in MaxMind's format (GeoLite2, DB-IP, IPinfo). A file is read when it is first
 * needed, and again when it has changed. A file that can't be read leaves its fields absent, never the page.
 */
import { stat } from 'node:fs/promises';
import * as maxmind from 'maxmind';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';

/** Null: not in the files. */
export interface NetworkRecord {
  asNumber: number | null;
  asName: string | null;
  /** ISO 3166 code of two letters. */
  country: string | null;
}

const none: NetworkRecord = { asNumber: null, asName: null, country: null };
/** A file is looked at again after this time. */
const lookMs = 60_000;
const cacheMax = 10_000;

export function createNetworkFiles(paths: readonly string[], reporter: Reporter) {
  const files = paths.map((path) => openFile(path, reporter));
  return {
    /** Records of these addresses, in their order. */
    async describe(addresses: readonly string[]): Promise<NetworkRecord[]> {
      await Promise.all(files.map((file) => file.refresh()));
      return addresses.map((address) =>
        files.reduce((record, file) => fill(record, file.find(address)), { ...none }),
      );
    },
    /** Looks at the files again on the next read. */
    forget() {
      for (const file of files) file.forget();
    },
    fault: (): string | null => files.map((file) => file.fault()).find((fault) => fault !== null) ?? null,
  };
}

/** The first file that knows a field wins. */
function fill(known: NetworkRecord, further: NetworkRecord): NetworkRecord {
  const hasAs = known.asNumber !== null;
  return {
    asNumber: hasAs ? known.asNumber : further.asNumber,
    asName: hasAs ? known.asName : further.asName,
    country: known.country ?? further.country,
  };
}

function openFile(path: string, reporter: Reporter) {
  let reader: maxmind.Reader<maxmind.Response> | null = null;
  let version = '';
  let fault: string | null = null;
  let isDamaged = false;
  let lookedAtMs = Number.NEGATIVE_INFINITY;
  let refreshing: Promise<void> | null = null;

  const noteFault = (error: unknown) => {
    const text = `The network file ${path} can't be read: ${describeError(error)}`;
    if (fault !== text) reporter.error('network file unreadable', { path, error: describeError(error) });
    fault = text;
  };
  const read = async () => {
    try {
      const { mtimeMs, size, ino } = await stat(path);
      const found = `${mtimeMs} ${size} ${ino}`;
      if (found !== version) {
        reader = await maxmind.open(path, { cache: { max: cacheMax } });
        version = found;
        isDamaged = false;
      }
      if (!isDamaged) fault = null;
    } catch (error) {
      noteFault(error);
    }
  };
  return {
    async refresh() {
      if (performance.now() - lookedAtMs < lookMs) return refreshing ?? undefined;
      lookedAtMs = performance.now();
      refreshing = read().finally(() => {
        refreshing = null;
      });
      return refreshing;
    },
    find(address: string): NetworkRecord {
      try {
        const found: unknown = reader?.get(address) ?? null;
        // Records are maps in every file of this format.
        if (typeof found !== 'object') throw new Error('it is damaged');
        return toRecord(found);
      } catch {
        // The tree of a damaged file leads nowhere. It stays damaged until it is replaced.
        if (!isDamaged) noteFault(new Error('it is damaged'));
        isDamaged = true;
        return none;
      }
    },
    fault: () => fault,
    forget() {
      lookedAtMs = Number.NEGATIVE_INFINITY;
    },
  };
}

/** The fields as MaxMind, DB-IP and IPinfo name them. The file is not ours, so nothing of it is taken for granted. */
function toRecord(found: object | null): NetworkRecord {
  if (found === null) return none;
  const fields = found as Record<string, unknown>;
  const country = (fields.country as { iso_code?: unknown } | undefined)?.iso_code ?? fields.country_code;
  const number = Number(fields.autonomous_system_number ?? String(fields.asn ?? '').replace(/^AS/i, ''));
  const asNumber = Number.isInteger(number) && number > 0 && number < 2 ** 32 ? number : null;
  const name = fields.autonomous_system_organization ?? fields.as_name;
  return {
    asNumber,
    asName: asNumber !== null && typeof name === 'string' && name !== '' ? name.slice(0, 120) : null,
    country: typeof country === 'string' && /^[A-Z]{2}$/.test(country) ? country : null,
  };
}
