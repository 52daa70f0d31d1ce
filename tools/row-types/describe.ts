/** What PostgreSQL says of a statement's columns before it runs (the protocol's Parse and Describe). */
import pg from 'pg';
import { camelName } from '#service-kit/postgres/queryable.ts';

export interface Column {
  name: string;
  /** PostgreSQL's name of the type: `int8`, `_text` for an array. */
  type: string;
  /** False only for a column of a table that is declared `not null`, or for what is not a column of a table. */
  mayBeNull: boolean;
}

interface Field {
  name: string;
  dataTypeID: number;
  tableID: number;
  columnID: number;
}

/** A request of the driver: it parses and describes a statement, and never executes it. */
class Describe {
  readonly #text: string;
  readonly #done: (error: Error | null, fields: Field[]) => void;
  #fields: Field[] = [];

  constructor(text: string, done: (error: Error | null, fields: Field[]) => void) {
    this.#text = text;
    this.#done = done;
  }

  submit(connection: {
    parse(query: { text: string; name: string; types: number[] }): void;
    describe(what: { type: string; name: string }): void;
    sync(): void;
  }): void {
    connection.parse({ text: this.#text, name: '', types: [] });
    connection.describe({ type: 'S', name: '' });
    connection.sync();
  }

  handleRowDescription({ fields }: { fields: Field[] }): void {
    this.#fields = fields;
  }

  /** The driver tells a request that has failed nothing more. */
  handleError(error: Error): void {
    this.#done(error, []);
  }

  handleReadyForQuery(): void {
    this.#done(null, this.#fields);
  }
}

export interface Describer {
  /** Rejects when the statement can not be prepared. */
  describe(text: string): Promise<Column[]>;
  end(): Promise<void>;
}

export async function createDescriber(url: string): Promise<Describer> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const types = await client.query<{ oid: number; name: string }>(
    'select oid::int4 as oid, typname as name from pg_type',
  );
  const nullable = await client.query<{ place: string }>(
    `select attrelid::int8 || '.' || attnum as place from pg_attribute where attnum > 0 and not attnotnull`,
  );
  const typeNames = new Map(types.rows.map(({ oid, name }) => [oid, name]));
  const mayBeNull = new Set(nullable.rows.map(({ place }) => place));
  const describeNow = (text: string) =>
    new Promise<Column[]>((resolve, reject) => {
      const done = (error: Error | null, fields: Field[]) =>
        error
          ? reject(error)
          : resolve(
              fields.map(({ name, dataTypeID, tableID, columnID }) => ({
                name: camelName(name),
                type: typeNames.get(dataTypeID) ?? String(dataTypeID),
                mayBeNull: mayBeNull.has(`${tableID}.${columnID}`),
              })),
            );
      client.query(new Describe(text, done) as unknown as pg.Query);
    });
  // One after the other: a store may ask for several statements at once.
  let last: Promise<unknown> = Promise.resolve();
  return {
    describe(text) {
      const next = last.then(() => describeNow(text));
      last = next.catch(() => {});
      return next;
    },
    end: () => client.end(),
  };
}
