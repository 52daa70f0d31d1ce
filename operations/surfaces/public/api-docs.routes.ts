import { buildOpenApi } from '#contracts/customer-api/index.ts';
import { type App, compressAnswer } from '#service-kit/http/index.ts';
import { type Html, link, pageHeader, sendPage, shell } from '#service-kit/pages/index.ts';
import {
  type ApiFacts,
  clientDigests,
  clientDownloads,
  createApiReference,
  listCalls,
} from '../parts/index.ts';

export interface ApiDocsDeps {
  apiFacts: ApiFacts;
}

const base = '/docs/api/';

/** The public API reference (API-1.S5), and the document it is drawn from, for generators of clients. */
export function registerApiDocs(app: App, deps: ApiDocsDeps): void {
  const reference = createApiReference({
    base,
    facts: deps.apiFacts,
    createKeyHref: '/client/developer/#create',
  });
  for (const { path, title, content } of reference) {
    const isFirst = path === '';
    const draw = (content: Html) =>
      shell(
        {
          area: 'Virtual servers',
          home: '/',
          title: isFirst ? title : `${title} · API reference`,
          navigation: [
            {
              items: [
                { label: 'API reference', href: base, key: 'd', current: true },
                { label: 'OpenAPI document', href: `${base}openapi.json` },
                { label: 'Customer portal', href: '/client/', key: 's' },
              ],
            },
          ],
          breadcrumb: isFirst
            ? [{ label: 'Home', href: '/' }, { label: title }]
            : [{ label: 'Home', href: '/' }, { label: 'API reference', href: base }, { label: title }],
        },
        [
          pageHeader({
            title,
            actions: isFirst && link(`${base}openapi.json`, 'OpenAPI document', { kind: 'button' }),
          }),
          content,
        ],
      );
    app.get(`${base}${path}`, async (_request, reply) => sendPage(reply, draw(await content())));
  }
  let openApi: string | null = null;
  app.get(`${base}openapi.json`, async (request, reply) => {
    openApi ??= JSON.stringify(buildOpenApi());
    reply
      .header('access-control-allow-origin', '*')
      .header('cache-control', 'public, max-age=300')
      .header('vary', 'accept-encoding')
      .type('application/json; charset=utf-8');
    return reply.send(await compressAnswer(request, reply, openApi));
  });
  const plain = 'text/plain; charset=utf-8';
  app.get(`${base}llms.txt`, async (_request, reply) => reply.type(plain).send(listCalls(base)));
  app.get(`${base}clients/SHA256SUMS`, async (_request, reply) => reply.type(plain).send(clientDigests()));
  app.get<{ Params: { file: string } }>(`${base}clients/:file`, async (request, reply) => {
    const found = clientDownloads().find(({ file }) => file === request.params.file);
    if (found === undefined) return reply.callNotFound();
    return reply
      .header('content-disposition', `attachment; filename="${found.file}"`)
      .header('cache-control', 'public, max-age=300')
      .type(found.mediaType)
      .send(found.bytes);
  });
  app.get('/developers/api/', async (_request, reply) => reply.redirect(base, 301));
}
