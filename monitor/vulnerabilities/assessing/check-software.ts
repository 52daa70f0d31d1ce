import { createHash } from 'node:crypto';
import { underLease } from '#service-kit/leases/index.ts';
import { findAll, nothing } from '../assess-service.ts';
import { readFixes } from '../packages/fix-store.ts';
import type { PackageFix } from '../packages/judge-package.ts';
import * as records from '../store.ts';
import type { AssessorDeps } from './assessor.ts';
import { assessmentRules, readSoftware } from './bind-services.ts';
import * as store from './software-store.ts';
import type { Turn } from './visit-servers.ts';

const pageSize = 100;

interface HeldRecords extends records.ProductRecords {
  product: string;
  fixes: readonly PackageFix[];
}

/**
 * Compares software with the present records: what is new, and all of a product after its records changed. A page is one
 * transaction, so a process that dies between two continues with what is left. Throws `LeaseLost`.
 */
export async function checkSoftware({ db, severe }: Pick<AssessorDeps, 'db' | 'severe'>, turn: Turn) {
  let held: HeldRecords | null = null as HeldRecords | null;
  while (!turn.signal.aborted) {
    const stale = await store.listStale(db(), assessmentRules, pageSize);
    const product = stale[0]?.product;
    if (product === undefined) return;
    await turn.renew();
    // Read again in every page: the records may have changed since.
    const revision = await records.readRevision(db(), product);
    if (held?.product !== product || held.revision !== revision)
      held = {
        ...(await records.readRecords(db(), product)),
        fixes: await readFixes(db(), product),
        product,
      };
    const { advisories, fixes, refreshedAtMs } = held;
    const verdicts = stale
      .filter((one) => one.product === product)
      .map((one): store.SoftwareAssessment => {
        const service = readSoftware(one);
        const found = service && advisories ? findAll(service, advisories, fixes) : nothing;
        const digest = createHash('sha256').update(JSON.stringify(found)).digest('base64url');
        return { id: one.id, ...found, digest, isChanged: digest !== one.digest, wasJudged: one.isJudged };
      });
    const compared = { rules: assessmentRules, severe, revision: held.revision, refreshedAtMs };
    await underLease(db(), turn.lease, (trx) => store.writeVerdicts(trx, verdicts, compared));
  }
}
