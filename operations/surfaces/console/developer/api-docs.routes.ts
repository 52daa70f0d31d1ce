import type { App } from '#service-kit/http/index.ts';
import { pageHeader, sendPage } from '#service-kit/pages/index.ts';
import { type ApiFacts, createApiReference } from '../../parts/index.ts';
import { consoleFrame } from '../frame.ts';

/** The API reference beside the fleet's meter (API-1.S6): staff create no keys, so nothing here leads to creating one. */
export function registerApiDocs(
  app: App,
  deps: {
    apiFacts: ApiFacts;
  },
): void {
  const base = '/console/billing/usage/api/docs/';
  const reference = createApiReference({ base, facts: deps.apiFacts, createKeyHref: null });
  for (const { path, title, content } of reference) {
    const reached =
      path === '' ? [{ label: title }] : [{ label: 'API reference', href: base }, { label: title }];
    app.get(`/billing/usage/api/docs/${path}`, async (request, reply) =>
      sendPage(
        reply,
        consoleFrame({ staff: request.staff!, title, current: 'docs', breadcrumb: reached }, [
          pageHeader({ title }),
          await content(),
        ]),
      ),
    );
  }
}
