/** ClickHouse within the process of a test (npm `chdb`), with a database for each test. */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { type ClickHouseClientConfigOptions, createClient } from '@clickhouse/client';
import { createChdbConnection } from 'chdb/connection';
import type { FactClient } from '../engine-store.ts';
import { insertFromFile, settingsForFewRows, takesBytes } from './native-body.ts';

let folder: string | null = null;

/** An engine of a process has one folder; tests of a file are one after the other. */
export async function createChdbEngine() {
  if (folder === null) {
    folder = mkdtempSync(join(process.env.SVC_TEST_MEMORY_DIR ?? tmpdir(), 'svc-chdb-'));
    process.once('exit', () => rmSync(folder!, { recursive: true, force: true }));
  }
  // It brings types of its own, which are the same.
  const connection = createChdbConnection({ path: folder }) as unknown;
  const client = createClient({ connection } as ClickHouseClientConfigOptions);
  const name = `facts_${randomUUID().replaceAll('-', '')}`;
  await client.command({ query: `create database ${name}` });
  await client.command({ query: `use ${name}` });
  // On any machine the same; what depends on the number of threads shows beside the server of other tests, which has more.
  await client.command({ query: `set max_threads = 1, ${settingsForFewRows}` });
  return {
    client: {
      query: client.query.bind(client),
      command: client.command.bind(client),
      close: client.close.bind(client),
      async exec(parameters: Parameters<typeof client.exec>[0] & { values?: Readable }) {
        const { query, values, ...others } = parameters;
        if (values === undefined || !takesBytes(query)) return await client.exec(parameters);
        const body = Buffer.concat(await values.toArray());
        return await insertFromFile(query, body, (statement) => client.exec({ ...others, query: statement }));
      },
    } as FactClient,
    async [Symbol.asyncDispose]() {
      await client.command({ query: `drop database ${name} sync` });
      await client.close();
    },
  };
}
