/** Rotates the data key of a database and is killed (SIGKILL) before its N-th statement: `killed-rotation.ts URL N`. */

import { createPool } from '#service-kit/postgres/database.ts';
import { totpSecret } from '#service-kit/second-factors/store.ts';
import { createTestSecrets } from './test-secrets.ts';

const [url = '', last = '0'] = process.argv.slice(2);
const { pool, db } = createPool(url, 1);
let statements = 0;
pool.on('connect', (client) => {
  const query = client.query.bind(client) as (...given: unknown[]) => unknown;
  Object.assign(client, {
    query(...given: unknown[]) {
      statements += 1;
      if (statements === Number(last)) process.kill(process.pid, 'SIGKILL');
      return query(...given);
    },
  });
});
const secrets = createTestSecrets({ db: () => db, program: 'test', columns: [totpSecret] });
const { sealed } = await secrets.rotate({ kind: 'system', job: 'test' });
process.stdout.write(`${sealed} after ${statements} statements\n`);
await db.destroy();
