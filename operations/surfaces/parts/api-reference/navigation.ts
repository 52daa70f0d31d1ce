/** The reference's own table of contents, the same on each of its pages, with a filter for those who have a keyboard. */
import { errorKinds } from '#contracts/customer-api/index.ts';
import { type Html, html, link } from '#service-kit/pages/index.ts';
import type { ReferenceDocument } from './document.ts';
import type { Guide } from './guides.ts';

interface NavigationOptions {
  document: ReferenceDocument;
  guides: readonly Guide[];
  base: string;
  /** Path of the page below the base, without its final slash; empty for the first page. */
  current: string;
}

export function renderNavigation({ document, guides, base, current }: NavigationOptions): Html {
  const resources = document.resources.map((resource) => {
    const items = resource.operations.map(
      (operation) =>
        html`<li>${link(`${base}${resource.name}/#${operation.id}`, html`<span>${operation.summary}</span><span class="method">${operation.method}</span>`, { kind: 'quiet' })}<span hidden>${operation.path} ${operation.id}</span></li>`,
    );
    const title = link(`${base}${resource.name}/`, resource.title, {
      kind: 'quiet',
      current: resource.name === current,
    });
    return html`<p class="navigation-label">${title}</p><ul>${items}</ul>`;
  });
  const guideItems = guides.map(
    (guide) => html`<li>${link(`${base}#${guide.id}`, guide.title, { kind: 'quiet' })}</li>`,
  );
  // Found by the filter alone: a list of every reason would bury the calls.
  const errors = errorKinds.map(({ reason, code, status }) => {
    const name = reason ?? code;
    return html`<li data-found-only hidden>${link(`${base}#error-${name}`, html`<span>${name}</span><span class="method">${status}</span>`, { kind: 'quiet' })}</li>`;
  });
  return html`<nav class="reference-nav" aria-label="API reference"><div class="field needs-script"><input type="search" data-search data-filter="reference-contents" placeholder="Find a call or an error" aria-label="Find a call or an error" aria-keyshortcuts="/" autocomplete="off"></div><div id="reference-contents"><p class="navigation-label">${link(base, 'Overview', { kind: 'quiet', current: current === '' })}</p><ul>${guideItems}</ul><p class="navigation-label">${link(`${base}clients/`, 'Clients', { kind: 'quiet', current: current === 'clients' })}</p><p class="navigation-label">${link(`${base}calls/`, 'All calls', { kind: 'quiet', current: current === 'calls' })}</p>${resources}<ul>${errors}</ul><p class="hint" data-nothing-found hidden>Nothing has that name.</p></div></nav>`;
}
