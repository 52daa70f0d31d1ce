import type { App } from '#service-kit/http/index.ts';
import { link, pageHeader, sendPage } from '#service-kit/pages/index.ts';
import { type ApiFacts, createApiReference } from '../../parts/index.ts';
import { portalFrame } from '../frame.ts';

/** The API reference inside the portal (API-1.S4), beside the keys. */
export function registerApiDocs(app: App, deps: { apiFacts: ApiFacts }): void {
  const base = '/client/developer/docs/';
  const reference = createApiReference({
    base,
    facts: deps.apiFacts,
    createKeyHref: '/client/developer/#create',
  });
  for (const { path, title, content } of reference) {
    const isFirst = path === '';
    const reached = isFirst ? [{ label: title }] : [{ label: 'API reference', href: base }, { label: title }];
    app.get(`/developer/docs/${path}`, async (request, reply) =>
      sendPage(
        reply,
        portalFrame(
          {
            visitor: request.visitor!,
            title: isFirst ? title : `${title} · API reference`,
            current: 'docs',
            breadcrumb: [{ label: 'API keys', href: '/client/developer/' }, ...reached],
          },
          [
            pageHeader({
              title,
              actions: isFirst && link('/docs/api/openapi.json', 'OpenAPI document', { kind: 'button' }),
            }),
            await content(),
          ],
        ),
      ),
    );
  }
}
