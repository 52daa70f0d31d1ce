/**
 * The one way HTML is written: a tagged template whose every value is escaped unless it is already `Html`.
 *
 * It is `hono/html` with a narrower door: values are what `Content` names, so an object, a date or a promise is a
 * type error, and templates stay synchronous. Attribute values must stand in quotes: a test reads our sources for
 * those that don't.
 */
import { html as honoHtml, raw } from 'hono/html';

/** Markup that is safe to send: only `html`, `trustedHtml` and the components make it. */
export type Html = ReturnType<typeof raw>;

/** What may stand inside a template. Strings and numbers are escaped; null, undefined and booleans print nothing. */
export type Content = string | number | boolean | null | undefined | Html | readonly Content[];

/** Builds markup; every value that is not `Html` is escaped. */
export function html(strings: TemplateStringsArray, ...values: Content[]): Html {
  const made = honoHtml(strings, ...values);
  if (made instanceof Promise)
    throw new TypeError('html`` was given a promise: await it before the template');
  return made;
}

/** Declares markup of our own making as safe. Never call it with anything that came from outside. */
export function trustedHtml(markup: string): Html {
  return raw(markup);
}

/** An attribute's value; `true` prints the bare name, `false` and `undefined` print nothing. */
export type AttributeValue = string | number | boolean | undefined;

/** Prints attributes, each value escaped and in double quotes, with a space before each. */
export function attributes(values: Readonly<Record<string, AttributeValue>>): Html {
  let out = '';
  for (const [name, value] of Object.entries(values)) {
    if (!/^[a-z][a-z0-9-]*$/.test(name) || name.startsWith('on') || name === 'style') {
      throw new TypeError(`attribute ${name} is not allowed in our pages`);
    }
    if (value === false || value === undefined) continue;
    out += value === true ? ` ${name}` : String(html` ${trustedHtml(name)}="${value}"`);
  }
  return raw(out);
}

/** Joins class names, leaving out those that are false or missing. */
export function classes(...names: (string | false | undefined)[]): string {
  return names.filter(Boolean).join(' ');
}

/**
 * Data for a browser script, as `<script type="application/json">`, which browsers never execute.
 * `<`, `>` and `&` are written as JSON escapes, so no value can close the element or open a comment.
 */
export function jsonScript(id: string, data: unknown): Html {
  const json = JSON.stringify(data).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return html`<script type="application/json" id="${id}">${raw(json)}</script>`;
}
