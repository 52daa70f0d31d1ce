import { type AnswerChecker, createAnswerChecker } from '#contracts/customer-api/testing/check-answer.ts';
import type { App } from '#service-kit/http/index.ts';

declare module 'fastify' {
  interface FastifyReply {
    /** The body as the API made it; kept for the comparison only. */
    watchedBody: string;
  }
}

/**
 * Compares every answer of the customer API on this server with the OpenAPI document, from every caller. To be
 * called before routes are registered; throws at the end, where tests are, because a hook can't fail a test.
 */
export function watchAnswers(app: App): { throwFaults(): void } {
  let checker: AnswerChecker | null = null;
  const faults = new Set<string>();
  app.decorateReply('watchedBody', '');
  app.addHook('onSend', async (_request, reply, payload) => {
    reply.watchedBody = typeof payload === 'string' ? payload : '';
    return payload;
  });
  app.addHook('onResponse', async (request, reply) => {
    if (!/^\/api\/v[12](\/|$|\?)/.test(request.url)) return;
    const hasBody = request.method !== 'HEAD' && reply.statusCode !== 304;
    const headers = Object.entries(reply.getHeaders()).map(([name, value]) => [name, String(value)]);
    checker ??= createAnswerChecker();
    try {
      checker.check({
        method: request.method,
        path: request.url,
        status: reply.statusCode,
        headers: Object.fromEntries(headers),
        text: hasBody ? reply.watchedBody : '',
      });
    } catch (error) {
      faults.add((error as Error).message);
    }
  });
  return {
    throwFaults() {
      if (faults.size > 0) throw new Error(`undocumented answers of the API:\n${[...faults].join('\n')}`);
    },
  };
}
