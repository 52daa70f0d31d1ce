/** What may be changed of a tenant: its status, and who is invoiced. */
import { emit } from '#operations/events/index.ts';
import { countLiving, type TenantStatus } from '#operations/views/tenant-store.ts';
import { record } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { type BillingProfile, invalid, parseEmail, parseName } from './account.ts';
import { type Actor, requireOperator, requireOwnerOrOperator, systemJob } from './actor.ts';
import * as store from './store.ts';

/** Gives back the addresses that a tenant keeps, inside a transaction. */
export type ReleaseKeptAddresses = (tx: Queryable, actor: Actor, tenantId: number) => Promise<void>;

/**
 * Operators and the program itself. A closed tenant stays closed, and is closed only when it has no server; the addresses that it keeps
 * are released. The row is locked, so two changes at once follow each other: `db` must be a transaction.
 */
export async function setTenantStatus(
  db: Queryable,
  releaseKeptAddresses: ReleaseKeptAddresses,
  actor: Actor,
  tenantId: number,
  status: TenantStatus,
): Promise<void> {
  requireOperator(actor);
  const current = await store.lockTenantStatus(db, tenantId);
  if (current === null) throw invalid('There is no such tenant.');
  if (current === 'CLOSED' && status !== 'CLOSED') throw invalid('A closed tenant stays closed.');
  if (status === 'CLOSED' && current !== 'CLOSED') {
    await requireNoServers(db, tenantId);
    await releaseKeptAddresses(db, actor, tenantId);
  }
  await store.updateTenantStatus(db, tenantId, status, status === 'SUSPENDED' ? 'operator' : null);
  if (status === current) return;
  await recordStatus(db, actor, tenantId, current, status);
  if (status === 'ACTIVE') return;
  const reason = status === 'SUSPENDED' ? 'account_suspended' : 'account_closed';
  await emit(db, { type: 'account.locked', tenantId, reason });
}

/** A closed account cannot sign in, so it could not destroy servers that still run and are charged. */
async function requireNoServers(db: Queryable, tenantId: number): Promise<void> {
  const { servers, orders } = await countLiving(db, tenantId);
  if (servers > 0)
    throw invalid(
      `This account still has ${servers === 1 ? 'a server' : `${servers} servers`}. Destroy what is left, then close it.`,
    );
  if (orders > 0) throw invalid('An order of this account is being carried out. Try again in a minute.');
}

/** Suspends an active tenant for debt; false when it is not active. Asked by billing maintenance alone (API-3.6). */
export async function suspendForDebt(tx: Queryable, tenantId: number): Promise<boolean> {
  if ((await store.lockTenantStatus(tx, tenantId)) !== 'ACTIVE') return false;
  await store.updateTenantStatus(tx, tenantId, 'SUSPENDED', 'debt');
  await recordStatus(tx, billingJob, tenantId, 'ACTIVE', 'SUSPENDED');
  await emit(tx, { type: 'account.locked', tenantId, reason: 'account_suspended' });
  return true;
}

/** Takes such a suspension back; false where there is none, as when an operator suspended the tenant since. */
export async function endDebtSuspension(tx: Queryable, tenantId: number): Promise<boolean> {
  const isEnded = await store.endDebtSuspension(tx, tenantId);
  if (isEnded) await recordStatus(tx, billingJob, tenantId, 'SUSPENDED', 'ACTIVE');
  return isEnded;
}

const billingJob = systemJob('billing-maintenance');

function recordStatus(
  tx: Queryable,
  actor: Actor,
  tenantId: number,
  before: TenantStatus,
  after: TenantStatus,
): Promise<void> {
  return record(tx, actor, {
    operation: 'tenant.set_status',
    subject: { kind: 'tenant', id: tenantId },
    tenantId,
    before: { status: before },
    after: { status: after },
  });
}

/** The organization's owner or an operator. Throws `accounts.invalid`. */
export async function setBillingProfile(
  db: Queryable,
  actor: Actor,
  tenantId: number,
  profile: BillingProfile,
): Promise<void> {
  const tenant = (await store.findTenants(db, [tenantId]))[0];
  if (!tenant) throw invalid('There is no such tenant.');
  requireOwnerOrOperator(actor, tenant.organizationId);
  if (!/^[A-Z]{2}$/.test(profile.country)) throw invalid('The country is two letters, such as DE.');
  const after = {
    legalName: parseName(profile.legalName, 'The legal name'),
    email: parseEmail(profile.email),
    country: profile.country,
  };
  await inTransaction(db, async (trx) => {
    const before = await store.findBillingProfile(trx, tenantId);
    await store.upsertBillingProfile(trx, tenantId, after);
    await record(trx, actor, {
      operation: 'tenant.set_billing_profile',
      subject: { kind: 'tenant', id: tenantId, name: tenant.name },
      organizationId: tenant.organizationId,
      tenantId,
      before,
      after,
    });
  });
}

/** The organization's owner or an operator. The slug stays: programs name the tenant by it. */
export async function renameTenant(db: Queryable, actor: Actor, tenantId: number, name: string) {
  const tenant = (await store.findTenants(db, [tenantId]))[0];
  if (!tenant) throw invalid('There is no such tenant.');
  requireOwnerOrOperator(actor, tenant.organizationId);
  const next = parseName(name, 'The name of a workspace');
  await inTransaction(db, async (trx) => {
    await store.updateTenantName(trx, tenantId, next);
    await record(trx, actor, {
      operation: 'tenant.rename',
      subject: { kind: 'tenant', id: tenantId, name: next },
      organizationId: tenant.organizationId,
      tenantId,
      before: { name: tenant.name },
      after: { name: next },
    });
  });
}
