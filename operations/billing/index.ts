/**
 * Credit, its ledger, and who may spend.
 *
 * A balance changes only together with a ledger entry that says why, in one transaction; an entry with a reference can
 * be entered once only, which the database enforces. Amounts are quanta of $0.0001.
 */
import type pg from 'pg';
import { CodedError } from '#common/errors/index.ts';
import { oneLine } from '#common/text/index.ts';
import { type Actor, forbidden, reachesTenant, requireOperator } from '#operations/accounts/index.ts';
import {
  type AccessFacts,
  type DaySpending,
  findAccess,
  listDaySpending,
} from '#operations/views/tenant-store.ts';
import { record } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

export { type AccessRefusal, describeRefusal, judgeAccess, judgeDeployment } from './access.ts';
export {
  appendLedgerEntry,
  findBalance,
  forgetDeposit,
  type LedgerEntry,
  type LedgerFilter,
  lockAccess,
  lockFreeBalances,
  type SourceSum,
} from './store.ts';

export type Billing = ReturnType<typeof createBilling>;

export function createBilling(deps: {
  db: () => Queryable;
  pool: () => pg.Pool;
  /** Name of the payment gateway: cards of another one can't be charged. */
  gateway: string;
}) {
  const requireReach = (actor: Actor, tenantId: number) => {
    if (!reachesTenant(actor, tenantId)) throw forbidden('This account is not yours.');
  };
  return {
    /** What the gate needs to know of these accounts, in one statement; unknown ids are left out. */
    async accessOf(tenantIds: readonly number[]): Promise<Map<number, AccessFacts>> {
      const rows = await findAccess(deps.pool(), tenantIds, deps.gateway);
      return new Map(rows.map((facts) => [facts.tenantId, facts]));
    },
    async balanceOf(actor: Actor, tenantId: number): Promise<number> {
      requireReach(actor, tenantId);
      return store.findBalance(deps.db(), tenantId);
    },
    /** Newest first. */
    async listEntries(
      actor: Actor,
      tenantId: number,
      filter: number | store.LedgerFilter,
    ): Promise<store.LedgerEntry[]> {
      requireReach(actor, tenantId);
      return store.listEntries(deps.db(), tenantId, typeof filter === 'number' ? { limit: filter } : filter);
    },
    async countEntries(
      actor: Actor,
      tenantId: number,
      filter: Omit<store.LedgerFilter, 'limit'>,
    ): Promise<number> {
      requireReach(actor, tenantId);
      return store.countEntries(deps.db(), tenantId, filter);
    },
    /** The sum of each source in the current month. */
    async sumMonth(actor: Actor, tenantId: number): Promise<store.SourceSum[]> {
      requireReach(actor, tenantId);
      return store.sumMonth(deps.db(), tenantId);
    },
    /** What was charged on each of the last days, the oldest first. */
    async sumDays(actor: Actor, tenantId: number, days: number): Promise<DaySpending[]> {
      requireReach(actor, tenantId);
      return listDaySpending(deps.db(), tenantId, days);
    },
    /** Adds a deposit to the ledger; false when this reference was entered before. Operators only. Throws `billing.invalid`. */
    async addDeposit(
      actor: Actor,
      tenantId: number,
      deposit: { amountQuanta: number; reference: string; description: string },
    ): Promise<boolean> {
      requireOperator(actor);
      if (!Number.isSafeInteger(deposit.amountQuanta) || deposit.amountQuanta <= 0)
        throw new CodedError('billing.invalid', 'A deposit is an amount above zero.');
      return inTransaction(deps.db(), async (tx) => {
        const by = actor.kind === 'staff' ? actor.personId : null;
        const metadata = { source: 'deposit', reference: deposit.reference, by_person_id: by };
        const isNew = await store.appendLedgerEntry(tx, { tenantId, ...deposit, metadata });
        if (isNew)
          await record(tx, actor, {
            operation: 'credit.deposit',
            subject: { kind: 'tenant', id: tenantId },
            tenantId,
            after: { amountQuanta: deposit.amountQuanta, paymentReference: deposit.reference },
          });
        return isNew;
      });
    },
    /**
     * Gives credit, or takes it with a negative amount, for a reason that the customer reads too. Nothing was paid, so
     * it opens no account that never paid. False when this form was entered before. Throws `billing.invalid`. Operators only.
     */
    async adjustCredit(
      actor: Actor,
      tenantId: number,
      { amountQuanta, reason, formId }: { amountQuanta: number; reason: string; formId: string },
    ): Promise<boolean> {
      requireOperator(actor);
      const told = oneLine(reason);
      if (amountQuanta === 0 || told === '' || told.length > 200)
        throw new CodedError('billing.invalid', 'An adjustment has an amount and a reason.');
      const by = actor.kind === 'staff' ? actor.personId : null;
      const metadata = { source: 'adjustment', reference: formId, by_person_id: by };
      return inTransaction(deps.db(), async (tx) => {
        const isNew = await store.appendLedgerEntry(tx, {
          tenantId,
          amountQuanta,
          description: told,
          metadata,
        });
        if (isNew)
          await record(tx, actor, {
            operation: 'credit.adjust',
            subject: { kind: 'tenant', id: tenantId },
            tenantId,
            after: { amountQuanta, reason: told },
          });
        return isNew;
      });
    },
  };
}

/** Money as whole quanta of $0.0001, so that sums are exact; text leaves with at least two decimals. */
export const quantaPerUnit = 10_000;

/** `89` → `0.0089`, `60000` → `6.00`. */
export function formatQuanta(quanta: number): string {
  const magnitude = Math.abs(quanta);
  const fraction = String(magnitude % quantaPerUnit).padStart(4, '0');
  const shortened = fraction.replace(/0{1,2}$/, '');
  return `${quanta < 0 ? '-' : ''}${Math.floor(magnitude / quantaPerUnit)}.${shortened}`;
}

/** `25`, `25.5` or `25.0001` as quanta; null for what is no such amount. */
export function parseMoney(text: string): number | null {
  const match = /^(\d{1,9})(?:\.(\d{1,4}))?$/.exec(text.trim());
  return match && Number(match[1]) * quantaPerUnit + Number((match[2] ?? '').padEnd(4, '0'));
}
