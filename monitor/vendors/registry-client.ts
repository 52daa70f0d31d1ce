/**
 * The client of a public vendor registry. It sends only the 24-bit prefix (NET-2.1.5): no complete MAC, no address, no
 * name, no cookie. The answer is limited, untrusted text.
 */
import { describeTransportFailure } from '#common/transport/index.ts';

export type LookupResult =
  | { outcome: 'found'; manufacturer: string }
  /** The registry does not know the prefix. */
  | { outcome: 'unknown' }
  /** No usable answer; `shouldStop` when the next lookup would fail too. */
  | { outcome: 'failed'; reason: string; shouldStop: boolean };

export type RegistryClient = ReturnType<typeof createRegistryClient>;

const answerBytesMax = 4096;
const nameLengthMax = 80;

/** `url` gets the prefix as `00-1B-21` in place of `{prefix}`, or as the last part of its path. */
export function createRegistryClient(options: { url: string; timeoutMs?: number }) {
  return {
    /** Looks up six capital hexadecimal digits. Never throws. */
    async lookUp(prefix: string): Promise<LookupResult> {
      if (!/^[0-9A-F]{6}$/.test(prefix)) throw new Error('a registry is asked for 24 bits and nothing else');
      const text = prefix.match(/../g)!.join('-');
      const { url } = options;
      const target = url.includes('{prefix}') ? url.replace('{prefix}', text) : `${url}/${text}`;
      try {
        const response = await fetch(target, {
          headers: { accept: 'text/plain', 'user-agent': 'svc-monitor' },
          // A redirect would send the prefix to a server that the operator did not configure.
          redirect: 'manual',
          signal: AbortSignal.timeout(options.timeoutMs ?? 10_000),
        });
        if (response.status === 200) return readName(await readBounded(response));
        await response.body?.cancel();
        return judgeStatus(response.status);
      } catch (error) {
        const isLate = (error as Error).name === 'TimeoutError';
        const why = `could not be reached: ${describeTransportFailure(error)}`;
        return failed(isLate ? 'did not answer in time' : why, true);
      }
    },
  };
}

function judgeStatus(status: number): LookupResult {
  if (status === 404) return { outcome: 'unknown' };
  if (status === 429) return failed('asks for fewer requests', true);
  if (status >= 300 && status < 400) return failed('answered with a redirect, which is not followed', true);
  return failed(`answered with status ${status}`, status === 401 || status === 403);
}

function failed(reason: string, shouldStop: boolean): LookupResult {
  return { outcome: 'failed', reason, shouldStop };
}

/** The first line as a name: no control characters, limited length. A web page is not a name. */
function readName(text: string | null): LookupResult {
  if (text === null) return failed('sent more than a name', false);
  const line = text.trim().split(/[\r\n]/, 1)[0]!;
  const name = line
    .replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/gu, ' ')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, nameLengthMax)
    .trim();
  if (name === '') return { outcome: 'unknown' };
  return /^[<{[]/.test(name)
    ? failed('sent a document in place of a name', false)
    : { outcome: 'found', manufacturer: name };
}

async function readBounded(response: Response): Promise<string | null> {
  if (!response.body) return '';
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body as ReadableStream<Uint8Array>) {
    size += chunk.length;
    if (size > answerBytesMax) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
