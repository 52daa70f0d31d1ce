/**
 * A monitor that assesses what is due in the database of `assessment-kills`, once, and is killed by itself when it sends a statement:
 * the server may or may not run that statement. Writes how many statements it sent when it gets to the end.
 *
 * usage: killed-assessor.ts URL STATEMENT    (0: it is not killed)
 */
import { compose } from '#monitor/composition.ts';
import { readConfig } from '#monitor/config.ts';
import { plantSql } from '#operations/testing/planted-sql.ts';
import { createPool } from '#service-kit/postgres/database.ts';
import { testWrapper } from '#service-kit/secrets/testing/test-secrets.ts';

const [url, killedAt] = process.argv.slice(2) as [string, string];
let sent = 0;
plantSql((text) => {
  sent += 1;
  // In the next turn of the loop, when the statement is on its way.
  if (sent === Number(killedAt)) setImmediate(() => process.kill(process.pid, 'SIGKILL'));
  return text;
});
const { db, pool } = createPool(url, 4);
const { db: reader } = createPool(url, 2, { isReadOnly: true });
const settings = {
  SVC_MONITOR_PORT: '0',
  SVC_LOG_LEVEL: 'error',
  SVC_MAC_VENDOR_LOOKUP_URL: '',
  SVC_ALLOW_DOCUMENTATION_ADDRESSES: '1',
};
const part = { name: 'database', start: async () => {}, stop: async () => {} };
const monitor = compose(readConfig(settings), {
  database: { ...part, db, pool, reader },
  keyWrapper: testWrapper,
});
await monitor.vulnerabilities.assessor.runOnce();
process.stdout.write(`${sent}\n`);
process.exit(0);
