import { buildOpenApi } from '#contracts/customer-api/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { link, pageHeader, sendPage, shell } from '#service-kit/pages/index.ts';
import { renderApiReference } from './api-reference.ts';

/** The public API reference (API-1.S5), and the document it is drawn from, for generators of clients. */
export function registerApiDocs(app: App): void {
  const openApi = JSON.stringify(buildOpenApi());
  const reference = renderApiReference();
  const page = shell(
    {
      area: 'Virtual servers',
      home: '/',
      title: 'API reference',
      navigation: [{ items: reference.anchors.map(({ id, label }) => ({ label, href: `#${id}` })) }],
      breadcrumb: [{ label: 'Home', href: '/' }, { label: 'API reference' }],
    },
    [
      pageHeader({
        title: 'API reference',
        actions: link('/docs/api/openapi.json', 'OpenAPI document', { kind: 'button' }),
      }),
      reference.content,
    ],
  );
  app.get('/docs/api/', async (_request, reply) => sendPage(reply, page));
  app.get('/docs/api/openapi.json', async (_request, reply) =>
    reply
      .header('access-control-allow-origin', '*')
      .header('cache-control', 'public, max-age=300')
      .type('application/json; charset=utf-8')
      .send(openApi),
  );
  app.get('/developers/api/', async (_request, reply) => reply.redirect('/docs/api/', 301));
}
