/** Schemas in words: what a field may be, and tables of an object's fields. */
import { type Content, type Html, html, link, prose, table } from '#service-kit/pages/index.ts';
import { type Json, nameOfReference, type ReferenceDocument } from './document.ts';

/** Where the schemas of the document are explained. */
export type Places = ReturnType<typeof createPlaces>;

export function createPlaces(document: ReferenceDocument, base: string) {
  const homes = new Map(
    document.resources.flatMap((resource) => resource.objects.map((name) => [name, resource.name] as const)),
  );
  return {
    document,
    /** Address of the object's table. */
    hrefOf(name: string): string {
      const home = homes.get(name);
      return home === undefined ? `${base}#errors` : `${base}${home}/#object-${name}`;
    },
  };
}

/** A schema in a few words, with links to the objects that it names. */
export function typeOf(schema: Json, places: Places): Content {
  if (typeof schema.$ref === 'string') {
    const name = nameOfReference(schema.$ref);
    return link(places.hrefOf(name), name);
  }
  const choices = (schema.anyOf ?? schema.oneOf) as Json[] | undefined;
  if (choices) return choices.map((one, index) => html`${index > 0 ? ' or ' : ''}${typeOf(one, places)}`);
  if (schema.enum) {
    const words = schema.enum as unknown[];
    return words.map((word, index) => html`${index > 0 ? ' · ' : ''}<code>${String(word)}</code>`);
  }
  if (schema.type === 'array') return html`list of ${typeOf((schema.items ?? {}) as Json, places)}`;
  if (schema.type === 'object') return schema.properties ? 'object' : 'object of strings';
  if (schema.type === 'string') return schema.format === 'date-time' ? 'time' : 'string';
  return typeof schema.type === 'string' ? schema.type : 'anything';
}

/** What a value must be beyond its type, such as `, at most 15 characters`. */
function boundsOf(schema: Json): string {
  const parts: string[] = [];
  const range = (from: unknown, to: unknown, unit: string) => {
    if (from !== undefined && to !== undefined) parts.push(`${from} to ${to}${unit}`);
    else if (to !== undefined) parts.push(`at most ${to}${unit}`);
    else if (from !== undefined && unit === '' && from !== 1 && from !== 0) parts.push(`at least ${from}`);
  };
  range(schema.minLength, schema.maxLength, ' characters');
  range(schema.minimum, schema.maximum, '');
  range(undefined, schema.maxItems, ' entries');
  if (schema.default !== undefined) parts.push(`default ${JSON.stringify(schema.default)}`);
  return parts.map((part) => `, ${part}`).join('');
}

export interface FieldRow {
  name: string;
  type: Content;
  text: Content;
}

/** The fields of an object, those of its inner objects below them with dots. */
export function fieldRows(schema: Json, places: Places, side: 'answer' | 'request', path = ''): FieldRow[] {
  const required = new Set((schema.required ?? []) as string[]);
  return Object.entries((schema.properties ?? {}) as Record<string, Json>).flatMap(([name, property]) => {
    const inner = innerObject(property);
    const needed = side === 'request' && required.has(name) && html`<strong>Required.</strong> `;
    const absent = side === 'answer' && !required.has(name) && 'Where it applies. ';
    const row = {
      name: `${path}${name}`,
      type: html`${typeOf(property, places)}${boundsOf(property)}`,
      text: html`${needed}${absent}${prose(textOf(property))}`,
    };
    const suffix = property.type === 'array' ? '[].' : '.';
    const below = inner === null ? [] : fieldRows(inner, places, side, `${path}${name}${suffix}`);
    return [row, ...below];
  });
}

/** What the document says of a field: of itself, or of its value where that may be null. */
function textOf(schema: Json): string {
  const choices = ((schema.anyOf ?? schema.oneOf ?? []) as Json[]).filter((one) => one.type !== 'null');
  return String(schema.description ?? (choices.length === 1 ? choices[0]!.description : undefined) ?? '');
}

/** The object that a field holds, itself or as the items of a list or beside null; null for anything else. */
function innerObject(schema: Json): Json | null {
  if (schema.type === 'object' && schema.properties) return schema;
  if (schema.type === 'array') return innerObject((schema.items ?? {}) as Json);
  const choices = (schema.anyOf ?? schema.oneOf) as Json[] | undefined;
  return choices?.map(innerObject).find((one) => one !== null) ?? null;
}

export function fieldTable(caption: string, rows: readonly FieldRow[]): Html {
  return table<FieldRow>({
    caption,
    card: { line: ['type', 'text'] },
    refreshSeconds: 0,
    captionVisible: true,
    rows,
    columns: [
      { key: 'name', header: 'Name', kind: 'code', cell: (row) => row.name },
      { key: 'type', header: 'Type', kind: 'prose', cell: (row) => row.type },
      { key: 'text', header: 'Meaning', kind: 'prose', cell: (row) => row.text },
    ],
    empty: { title: 'No fields', text: 'There are none.' },
  });
}
