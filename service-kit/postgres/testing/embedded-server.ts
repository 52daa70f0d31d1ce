/** An embedded server in a folder, and questions to it. */
import pg from 'pg';
import { silentReporter } from '#common/reporter/index.ts';
import { createEmbeddedPostgres } from '../index.ts';

export function embeddedIn(dir: string) {
  return createEmbeddedPostgres({
    dir,
    databaseName: 'operations',
    urlSetting: 'SVC_X_URL',
    reporter: silentReporter,
  });
}

export async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}
