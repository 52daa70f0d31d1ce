/** The page of the audit trail, as each program's surfaces put it into their frame. */
import { type Static, Type } from 'typebox';
import {
  type Content,
  code,
  definitionList,
  field,
  form,
  type Html,
  html,
  link,
  table,
  utcTime,
  withQuery,
} from '#service-kit/pages/index.ts';
import { type ActorKind, type StoredEntry, sentenceOf } from './entry.ts';
import type { AuditFilter } from './store.ts';

/** Entries that one page shows. */
export const auditRowsShown = 50;

const text = Type.Optional(Type.String({ maxLength: 200 }));

export const AuditQuery = Type.Object({
  who: text,
  subject: text,
  operation: text,
  from: text,
  to: text,
  before: Type.Optional(Type.String({ pattern: '^[1-9][0-9]{0,14}$' })),
  format: Type.Optional(Type.Union([Type.Literal('csv'), Type.Literal('json')])),
});
export type AuditQuery = Static<typeof AuditQuery>;

/** What a page's address asks for. What can't be read as a time is left out. */
export function readAuditFilter(query: AuditQuery): AuditFilter {
  const { who, subject, operation } = query;
  return {
    who: who?.trim() || undefined,
    subject: subject?.trim() || undefined,
    operation: operation?.trim() || undefined,
    fromMs: utcMs(query.from),
    toMs: utcMs(query.to),
  };
}

/** A `datetime-local` field has no zone: it is read as UTC, as its label says. */
function utcMs(value: string | undefined): number | undefined {
  if (!value || !/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?Z?$/.test(value)) return undefined;
  const ms = Date.parse(`${value.replace(/Z$/, '')}Z`);
  return Number.isNaN(ms) ? undefined : ms;
}

/** The filter and the table, newest first, with the ways to older entries and to the files. */
export function auditTable(options: {
  /** Path of the page. */
  path: string;
  query: AuditQuery;
  entries: readonly StoredEntry[];
  nextBefore: number | null;
  /** Said where nothing has been recorded at all. */
  emptyText: string;
}): Html {
  const { path, query, entries, nextBefore } = options;
  const { before, format: _, ...filter } = query;
  const here = withQuery(path, filter);
  const isNarrowed = Object.values(filter).some((value) => value);
  return table<StoredEntry>({
    caption: 'Audit trail',
    card: { title: 'what', line: ['at'] },
    isStacked: true,
    rows: entries,
    filter: filterForm(path, query, isNarrowed),
    csvHref: withQuery(here, { format: 'csv' }),
    jsonHref: withQuery(here, { format: 'json' }),
    columns: [
      { key: 'at', header: 'When', kind: 'time', cell: (entry) => utcTime(entry.occurredAtMs, 'seconds') },
      { key: 'what', header: 'Activity', kind: 'prose', cell: activityCell },
    ],
    pages: {
      label: before ? 'Older entries' : 'Newest entries',
      previousHref: before ? here : undefined,
      nextHref: nextBefore === null ? undefined : withQuery(here, { before: nextBefore }),
    },
    empty: isNarrowed
      ? { title: 'No entry fits', text: 'Change the filter, or show all entries.' }
      : { title: 'No entries yet', text: options.emptyText },
  });
}

function filterForm(path: string, query: AuditQuery, isNarrowed: boolean): Html {
  return form(
    {
      action: path,
      method: 'get',
      submit: 'Filter',
      submitKind: 'button',
      layout: 'inline',
      cancel: isNarrowed && link(path, 'All entries'),
    },
    [
      field({ name: 'who', label: 'Person, key or address', value: query.who, maxLength: 200 }),
      field({ name: 'subject', label: 'Subject', value: query.subject, maxLength: 200 }),
      field({ name: 'operation', label: 'Operation', value: query.operation, maxLength: 200 }),
      field({ kind: 'datetime-local', name: 'from', label: 'From (UTC)', value: query.from }),
      field({ kind: 'datetime-local', name: 'to', label: 'To (UTC)', value: query.to }),
    ],
  );
}

const actorWords: Readonly<Record<ActorKind, string>> = {
  person: 'person',
  key: 'API key',
  staff: 'operator',
  token: 'admin project',
  operator: 'operator',
  sensor: 'sensor',
  system: 'system',
  anonymous: 'visitor',
};

/** A sentence, and the entry as it is kept one step away. */
const activityCell = (entry: StoredEntry): Content =>
  html`${sentenceOf(entry)}<details class="entry-details"><summary>Details</summary>${definitionList([
    { term: 'Who', value: actorCell(entry) },
    { term: 'Operation', value: code(entry.operation) },
    { term: 'Subject', value: subjectCell(entry) },
    { term: 'Change', value: changeCell(entry) },
    { term: 'From', value: entry.sourceAddress === null ? 'no address' : code(entry.sourceAddress) },
  ])}</details>`;

function actorCell(entry: StoredEntry): Content {
  const name = entry.actorName ?? entry.actorId ?? actorWords[entry.actorKind];
  const kind = name === actorWords[entry.actorKind] ? '' : actorWords[entry.actorKind];
  return html`${name}${kind && html` <div class="hint">${kind}</div>`}`;
}

function subjectCell(entry: StoredEntry): Content {
  const { subjectKind, subjectId, subjectName } = entry;
  return html`${subjectKind} ${subjectId}${subjectName && html` <div class="hint">${subjectName}</div>`}`;
}

const valueMax = 120;
const membersShown = 8;

function changeCell(entry: StoredEntry): Content {
  const names = [...new Set([...Object.keys(entry.before ?? {}), ...Object.keys(entry.after ?? {})])];
  if (names.length === 0) return 'none';
  const lines = names.slice(0, membersShown).map((name) => {
    const [was, is] = [entry.before?.[name], entry.after?.[name]];
    if (was === undefined) return html`${name}: ${show(is)}`;
    if (is === undefined) return html`${name}: was ${show(was)}`;
    return html`${name}: ${show(was)} → ${show(is)}`;
  });
  const more = names.length - membersShown;
  return html`${lines.map((line) => html`<div>${line}</div>`)}${more > 0 && html`<div class="hint">and ${more} more</div>`}`;
}

function show(value: unknown): string {
  if (value === null || value === undefined) return 'none';
  const whole = typeof value === 'string' ? value : JSON.stringify(value);
  return whole.length > valueMax ? `${whole.slice(0, valueMax)}…` : whole;
}
