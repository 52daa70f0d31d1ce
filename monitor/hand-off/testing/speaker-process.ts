/** A monitor of which only hand-off runs, in a process of its own, to be killed. Its settings are its environment. */
import { compose } from '#monitor/composition.ts';
import { readConfig } from '#monitor/config.ts';
import { createPool } from '#service-kit/postgres/database.ts';
import { testWrapper } from '#service-kit/secrets/testing/test-secrets.ts';

// The tests' server is not durable, which `createDatabase` refuses.
const { pool, db } = createPool(process.env.SVC_TEST_DATABASE_URL!, 4);
const database = { name: 'database', pool, db, reader: db, start: async () => {}, stop: async () => {} };
const { handOff } = compose(readConfig(process.env), { database, keyWrapper: testWrapper });
for (const part of handOff.parts) await part.start();
console.log('ready');
