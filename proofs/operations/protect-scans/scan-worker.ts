/**
 * A process that requests port scans: `scan-worker.ts DATABASE_URL`. Each line that it reads is a click or a bug that it plants
 * from then on. Clicks run at once; each is answered with a line.
 *
 * Before a click stores requests it waits while the harness holds the lock `gateKey`, so that a test decides which clicks meet.
 */
import { createInterface } from 'node:readline';
import type { CustomerActor } from '#operations/accounts/index.ts';
import { createAddresses } from '#operations/addresses/index.ts';
import { requestScan } from '#operations/protect/scans/request-scan.ts';
import { plantSql } from '#operations/testing/planted-sql.ts';
import { createPool } from '#service-kit/postgres/database.ts';
import { gateKey } from './scan-gate.ts';

export interface Click {
  id: number;
  actor: CustomerActor;
  serverId: number;
}

export interface ClickAnswer {
  id: number;
  serverId: number;
  /** `new`, `pending`, or the reason of a refusal. */
  outcome: string;
}

/** Clicks of one server do not wait for each other, nor those of one account; or the cooldown is always over. */
export type Bug = 'no lock' | 'no lock of the account' | 'no cooldown';

export interface Plant {
  bug: Bug;
}

const withoutAccountLock = (text: string) =>
  text.replace(/pg_advisory_xact_lock\(7318040, \$1::int\)/, '$1::int');
const changes: Readonly<Record<Bug, (text: string) => string>> = {
  'no lock': (text) => withoutAccountLock(text).replace('for no key update', ''),
  'no lock of the account': withoutAccountLock,
  'no cooldown': (text) => text.replace('select greatest(0, ceil(', 'select 0 * greatest(0, ceil('),
};
const withGate = (text: string) =>
  text.replace(
    /^(\s*insert into scan_requests.*?)order by id/s,
    `$1where pg_advisory_xact_lock_shared(${gateKey})::text is not null order by id`,
  );

let bug: Bug | null = null;
plantSql((text) => withGate(bug === null ? text : changes[bug](text)));
const { db } = createPool(process.argv[2]!, 12, { prepares: 'always' });
const addresses = createAddresses({ db: () => db });
const deps = { db: () => db, addresses, isDocumentationGlobal: true };
process.stdout.write('ready\n');
for await (const line of createInterface({ input: process.stdin })) {
  const read = JSON.parse(line) as Click | Plant;
  if ('bug' in read) {
    bug = read.bug;
    continue;
  }
  const { id, actor, serverId } = read;
  void requestScan(deps, actor, serverId)
    .then(({ isNew }) => (isNew ? 'new' : 'pending'))
    .catch((error) => String(error.code ?? error.message).replace('port_scans.', ''))
    .then((outcome) =>
      process.stdout.write(`${JSON.stringify({ id, serverId, outcome } satisfies ClickAnswer)}\n`),
    );
}
await db.destroy();
