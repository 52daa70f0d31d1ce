/**
 * A process that requests port scans: `scan-worker.ts DATABASE_URL [BUG]`. It reads one click a line, `{actor, serverId}`, all of
 * which run at once, and answers each with a line.
 */
import { createInterface } from 'node:readline';
import type { CustomerActor } from '#operations/accounts/index.ts';
import { createAddresses } from '#operations/addresses/index.ts';
import { requestScan } from '#operations/protect/scans/request-scan.ts';
import { plantSql } from '#operations/testing/planted-sql.ts';
import { createPool } from '#service-kit/postgres/database.ts';

export interface Click {
  actor: CustomerActor;
  serverId: number;
}

export interface ClickAnswer {
  serverId: number;
  /** `new`, `pending`, or the reason of a refusal. */
  outcome: string;
}

const [databaseUrl, bug] = process.argv.slice(2);
if (bug === 'no lock')
  plantSql((text) =>
    text.replace(/pg_advisory_xact_lock\(7318040, \$1::int\)/, '$1::int').replace('for no key update', ''),
  );
if (bug === 'no cooldown')
  plantSql((text) => text.replace('select greatest(0, ceil(', 'select 0 * greatest(0, ceil('));

const { db } = createPool(databaseUrl!, 8);
const addresses = createAddresses({ db: () => db });
const deps = { db: () => db, addresses, isDocumentationGlobal: true };
process.stdout.write('ready\n');
for await (const line of createInterface({ input: process.stdin })) {
  const { actor, serverId } = JSON.parse(line) as Click;
  void requestScan(deps, actor, serverId)
    .then(({ isNew }) => (isNew ? 'new' : 'pending'))
    .catch((error) => String(error.code ?? error.message).replace('port_scans.', ''))
    .then((outcome) =>
      process.stdout.write(`${JSON.stringify({ serverId, outcome } satisfies ClickAnswer)}\n`),
    );
}
await db.destroy();
