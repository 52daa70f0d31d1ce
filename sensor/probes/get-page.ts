import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { AttemptOutcome } from './index.ts';

/**
 * Gets a page over a connection of its own: the round trip ends with the answer's head, so it holds the name's
 * resolution, the handshakes and the server's own time. A status below 400 is a good answer; redirects are one, and not
 * followed. The body is not read.
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
