/**
 * A form that makes a call from the reader's browser, with a key that the reader pastes into the page.
 *
 * The key's field stands outside every form and has no name: no browser sends or remembers it, and the script that reads
 * it keeps it nowhere. Without a key nothing is called. Without the script there is no form at all.
 */
import { type Content, field, type Html, html } from '#service-kit/pages/index.ts';
import type { Json, Operation, Parameter } from './document.ts';
import { exampleRequest } from './example.ts';

/** The field for the key; once on a page, above its calls. */
export function keyField(): Html {
  return html`<div class="try-key needs-script"><div class="field"><label for="try-key">Your key, for trying calls from this page</label><p class="hint" id="try-key-hint">It stays in this field: it goes to this API alone, is stored nowhere, and is gone when you leave the page. Calls are real and are counted.</p><input id="try-key" type="password" autocomplete="off" spellcheck="false" class="code" placeholder="svc_…" aria-describedby="try-key-hint"></div></div>`;
}

export function tryForm(operation: Operation, schemas: Readonly<Record<string, Json>>): Html {
  const body = operation.body;
  // A selected workspace is a query value here; one field for it is enough. The conditions of a read are for programs.
  const hidden = ['X-Tenant-Id', 'If-None-Match', ...(operation.method === 'GET' ? ['If-Match'] : [])];
  const parameters = operation.parameters.filter((one) => one.in !== 'header' || !hidden.includes(one.name));
  const id = (name: string) => `try-${operation.id}-${name.toLowerCase()}`;
  const kind = operation.method === 'GET' ? 'button' : 'button danger';
  const label = operation.method === 'GET' ? 'Send' : 'Send: this changes things';
  return html`<details class="try needs-script"><summary>Try it</summary><form class="form stacked" data-try data-method="${operation.method}" data-path="${operation.path}">${parameters.map((parameter) => parameterField(parameter, id(parameter.name)))}${bodyField(body, schemas, id('body'))}<div class="form-buttons"><button type="submit" class="${kind}">${label}</button></div><div class="try-answer" data-answer aria-live="polite"></div></form></details>`;
}

function parameterField(parameter: Parameter, id: string): Html {
  const isNeeded = parameter.in === 'path' || parameter.required;
  return field({
    id,
    name: `${parameter.in}:${parameter.name}`,
    label: parameter.name,
    required: isNeeded,
    autocomplete: 'off',
    isCode: true,
  });
}

function bodyField(body: Operation['body'], schemas: Readonly<Record<string, Json>>, id: string): Content {
  if (body === null) return '';
  const example = body.isRequired ? JSON.stringify(exampleRequest(body.schema, schemas), null, 2) : '';
  return field({
    kind: 'textarea',
    id,
    name: 'body',
    label: 'Body',
    required: body.isRequired,
    value: example,
    rows: Math.min(14, Math.max(3, example.split('\n').length)),
    isCode: true,
  });
}
