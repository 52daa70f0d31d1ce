/**
 * The reference of the customer API as pages without a frame: the public site, the portal and the console put theirs
 * around it. It is drawn from the OpenAPI document alone, so what is described is what is validated and served.
 *
 * The first page holds the guides, all calls and all errors; each resource has a page of its own. Everything is made
 * once at the start: nothing on it depends on who reads.
 */
import { assetUrl, type Content, type Html, html, link, section } from '#service-kit/pages/index.ts';
import { type ReferenceResource, readDocument, resolveSchema } from './document.ts';
import { createPlaces, fieldRows, fieldTable, type Places } from './fields.ts';
import { type ApiFacts, guidesOf } from './guides.ts';
import { renderNavigation } from './navigation.ts';
import { renderOperation } from './operation.page.ts';
import { renderOverview } from './overview.page.ts';
import { keyField } from './try-form.ts';

export type { ApiFacts } from './guides.ts';

export interface ApiReferenceOptions {
  /** Path of the first page, with its final slash: `/docs/api/`. */
  base: string;
  /** What this installation's limits are. */
  facts: ApiFacts;
  /** Where keys are created; null where the reader creates none. */
  createKeyHref: string | null;
}

export interface ReferencePage {
  /** Below the base: empty, or `servers/`. */
  path: string;
  title: string;
  content: Html;
}

export function createApiReference(options: ApiReferenceOptions): readonly ReferencePage[] {
  const { base, facts, createKeyHref } = options;
  const document = readDocument();
  const places = createPlaces(document, base);
  const guides = guidesOf(document, { base, facts, createKeyHref });
  const page = (current: string | null, content: Content) =>
    html`<link rel="stylesheet" href="${assetUrl('reference.css')}"><div class="reference">${renderNavigation({ document, guides, base, current })}<div class="reference-content">${content}</div></div><script type="module" src="${assetUrl('reference.js')}"></script>`;
  const origin = facts.origin ?? '$URL';
  return [
    { path: '', title: 'API reference', content: page(null, renderOverview(document, guides, base)) },
    ...document.resources.map((resource) => ({
      path: `${resource.name}/`,
      title: resource.title,
      content: page(resource.name, [
        createKeyHref !== null &&
          html`<p class="hint needs-script">No key yet? ${link(createKeyHref, 'Create a key')}</p>`,
        keyField(),
        resource.operations.map((operation) =>
          renderOperation(operation, { places, origin, errorsHref: base }),
        ),
        renderObjects(resource, places),
      ]),
    })),
  ];
}

function renderObjects(resource: ReferenceResource, places: Places): Content {
  if (resource.objects.length === 0) return '';
  return section(
    { title: 'Objects', id: 'objects' },
    resource.objects.map((name) => {
      const schema = resolveSchema({ $ref: `#/components/schemas/${name}` }, places.document.schemas);
      const side = name.endsWith('Request') ? 'request' : 'answer';
      return html`<div id="object-${name}">${fieldTable(name, fieldRows(schema, places, side))}</div>`;
    }),
  );
}
