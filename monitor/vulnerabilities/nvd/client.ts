/**
 * The client of the NVD's CVE API 2.0. It sends CPE names of products and nothing else (NET-2.6.3), and its key to the
 * configured address alone.
 *
 * Every failure is one of a few fixed sentences: the text of an answer is neither stored nor logged.
 */
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { describeTransportFailure } from '#common/transport/index.ts';

export interface NvdSource {
  url: string;
  /** A secret; null asks without one. */
  apiKey: string | null;
}

const sentences = {
  refused: 'The vulnerability database refuses requests: too many, or its key is not valid.',
  not_found: 'The vulnerability database does not know this request, or its key is not valid.',
  too_many: 'The vulnerability database asks for fewer requests.',
  unavailable: 'The vulnerability database is not available.',
  redirected: 'The vulnerability database answered with a redirect, which is not followed.',
  late: 'The vulnerability database did not answer in time.',
  unreachable: 'The vulnerability database could not be reached.',
  cut: 'The answer of the vulnerability database was cut off.',
  too_large: 'The answer of the vulnerability database is too large.',
  malformed: 'The answer of the vulnerability database can not be read.',
  changing: 'The vulnerability database changed while it was read.',
  incomplete: 'The vulnerability database listed fewer records than it has.',
  empty: 'The vulnerability database has no records of the product any more, which is not believed.',
} as const;

/** A request that failed; `retryAfterSeconds` is what the answer asked for. */
export class NvdFailure extends Error {
  readonly retryAfterSeconds: number;

  constructor(kind: keyof typeof sentences, retryAfterSeconds = 0, reason: string | null = null) {
    super(reason === null ? sentences[kind] : `${sentences[kind].slice(0, -1)}: ${reason}.`);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export interface NvdPage {
  totalResults: number;
  /** Records, not checked. */
  records: readonly unknown[];
}

export type NvdClient = ReturnType<typeof createNvdClient>;

/** More was answered with 404 at times. */
const pageRecords = 1_000;
const answerBytesMax = 64 * 1024 * 1024;
const retryAfterMax = 86_400;

const checkPage = Compile(
  Type.Object({
    totalResults: Type.Integer({ minimum: 0, maximum: 1_000_000 }),
    startIndex: Type.Integer({ minimum: 0 }),
    vulnerabilities: Type.Array(Type.Unknown(), { maxItems: 2_000 }),
  }),
);

export function createNvdClient({ url, apiKey }: NvdSource, timeoutMs = 120_000) {
  return {
    /** Seconds between two requests that the database asks for: 5 in 30 s without a key, 50 with one. */
    pauseSeconds: apiKey === null ? 6 : 0.6,
    /** No request is under way for longer. */
    timeoutSeconds: Math.ceil(timeoutMs / 1_000),
    /** One page of a product's records. Throws `NvdFailure`. */
    async fetchPage(vendor: string, product: string, startIndex: number): Promise<NvdPage> {
      const name = `cpe:2.3:a:${vendor}:${product}:*:*:*:*:*:*:*:*`;
      const query = `virtualMatchString=${encodeURIComponent(name)}&noRejected&resultsPerPage=${pageRecords}&startIndex=${startIndex}`;
      const text = await get(`${url}?${query}`, apiKey, timeoutMs);
      const page = parseJson(text);
      if (!checkPage.Check(page) || page.startIndex !== startIndex) throw new NvdFailure('malformed');
      return { totalResults: page.totalResults, records: page.vulnerabilities };
    },
  };
}

async function get(url: string, apiKey: string | null, timeoutMs: number): Promise<string> {
  try {
    const response = await fetch(url, {
      headers: {
        accept: 'application/json',
        'user-agent': 'svc-monitor',
        ...(apiKey === null ? {} : { apiKey }),
      },
      // A redirect would send the key to a server that the operator did not configure.
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (response.status === 200) return await readBounded(response);
    await response.body?.cancel();
    throw failureOf(response);
  } catch (error) {
    if (error instanceof NvdFailure) throw error;
    const { name, message } = error as Error;
    if (name === 'TimeoutError' || name === 'AbortError') throw new NvdFailure('late');
    if (message === 'terminated') throw new NvdFailure('cut');
    throw new NvdFailure('unreachable', 0, describeTransportFailure(error));
  }
}

function failureOf({ status, headers }: Response): NvdFailure {
  const seconds = readRetryAfter(headers.get('retry-after'));
  if (status === 403 || status === 401) return new NvdFailure('refused', seconds);
  if (status === 429) return new NvdFailure('too_many', seconds);
  if (status >= 300 && status < 400) return new NvdFailure('redirected');
  return new NvdFailure(status < 500 ? 'not_found' : 'unavailable', seconds);
}

/** Seconds, or a date; 0 for everything else. */
function readRetryAfter(text: string | null): number {
  if (text === null) return 0;
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : (Date.parse(text) - Date.now()) / 1_000;
  return seconds > 0 ? Math.min(Math.ceil(seconds), retryAfterMax) : 0;
}

async function readBounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > answerBytesMax) throw new NvdFailure('too_large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new NvdFailure('malformed');
  }
}
