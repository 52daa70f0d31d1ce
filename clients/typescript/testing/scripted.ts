/** A client without a server: for tests of what it sends and how long it waits. */
import { createClient } from '../index.ts';

interface Sent {
  method: string;
  url: string;
  headers: Record<string, string>;
  body: string | undefined;
}

/** The body of a refusal. */
export const refusalOf = (code: string, more: object = {}) =>
  JSON.stringify({
    error: { code, message: 'No.', request_id: 'req_1', retryable: false, doc_url: '/docs/api/', ...more },
  });
/** The body of one that is over later. */
export const later = refusalOf('rate_limited', { reason: 'key_rate', retryable: true });

/** The key of scripted clients. */
export const scriptedKey = 'svc_key_of_a_scripted_client';

/** A client whose server gives these answers in turn; `null` is a broken connection. */
export function scripted(answers: (Response | null)[], options: { deadlineMs?: number } = {}) {
  let nowMs = 0;
  const sent: Sent[] = [];
  const waits: number[] = [];
  const client = createClient({
    url: 'https://api.test/',
    key: scriptedKey,
    random: () => 0.5,
    wait: async (ms) => {
      waits.push(ms);
      nowMs += ms;
    },
    now: () => nowMs,
    ...options,
    fetch: async (url, init) => {
      const { method, headers, body } = init as {
        method: string;
        headers: Record<string, string>;
        body?: string;
      };
      sent.push({ method, url: String(url), headers, body });
      const answer = answers.shift();
      if (!answer) throw new TypeError('fetch failed');
      return answer;
    },
  });
  return { client, sent, waits };
}
