import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { AttemptOutcome } from './attempt.ts';

/**
 * Requests a page over a new connection. The round trip ends with the answer's header, so it includes name resolution,
 * handshakes and the server's own time. A status below 400 is a success; redirects are not followed. The body is not
 * read.
 */
export function getPage(target: string, signal: AbortSignal): Promise<AttemptOutcome> {
  return new Promise((resolve, reject) => {
    const url = new URL(target);
    const startedMs = performance.now();
    const headers = { 'user-agent': 'svc-sensor', connection: 'close' };
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
    const request = send(url, { agent: false, headers, signal }, (response) => {
      const rttUs = (performance.now() - startedMs) * 1000;
      resolve(response.statusCode! < 400 ? { rttUs } : { failure: 'bad_answer' });
      response.on('error', () => {});
      request.destroy();
    });
    request.on('error', reject);
    request.end();
  });
}
