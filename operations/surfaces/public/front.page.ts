import type { App } from '#service-kit/http/index.ts';
import { html, link, sendPage } from '#service-kit/pages/index.ts';
import { bareDocument, brand } from '#service-kit/pages/shell.ts';

/** `/`. */
export function registerFrontPage(app: App): void {
  app.get('/', { schema: { hide: true } as object }, async (_request, reply) => sendPage(reply, frontPage()));
}

function frontPage() {
  return bareDocument(
    { title: 'svc · Virtual servers' },
    html`<main class="alone">${brand('Virtual servers', '/')}<div class="card"><h1>Virtual servers, by one call</h1><div class="form stacked"><p>Deploy a server, see what it talks to, and pay for the hours that it runs.</p><div class="form-buttons">${link('/sign-in', 'Sign in', { kind: 'primary' })}${link('/docs/api/', 'API reference', { kind: 'button' })}</div></div></div></main>`,
  );
}
