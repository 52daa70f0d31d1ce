/**
 * Whether an account may use the API at all, and whether it may deploy another server.
 *
 * The customer API, the portal and `api_access` of the tenant list ask the same two functions, so they can't disagree.
 */
import type { AccessFacts } from '#operations/views/tenant-store.ts';

export type AccessRefusal =
  | { status: 403; code: 'forbidden'; reason: 'account_suspended' | 'account_closed' | 'no_billing_profile' }
  | { status: 402; code: 'payment_required'; reason: 'hourly_not_eligible' | 'credit_required' };

const sentences: Record<AccessRefusal['reason'], string> = {
  account_suspended: 'This account is suspended. Settle its balance or contact support.',
  account_closed: 'This account is closed.',
  no_billing_profile: 'This account has no billing profile. Add one in the portal.',
  hourly_not_eligible:
    'This account is not eligible for hourly billing yet. Add credit or a card in the portal.',
  credit_required: 'Another server needs credit above zero or a saved card. Add one of them in the portal.',
};

/** The text of a refusal for the customer. */
export function describeRefusal(refusal: AccessRefusal): string {
  return sentences[refusal.reason];
}

/** The account gate (API-5.4): null when the account may call the API. */
export function judgeAccess(facts: AccessFacts): AccessRefusal | null {
  if (facts.status === 'SUSPENDED') return { status: 403, code: 'forbidden', reason: 'account_suspended' };
  if (facts.status === 'CLOSED') return { status: 403, code: 'forbidden', reason: 'account_closed' };
  if (!facts.hasBillingProfile) return { status: 403, code: 'forbidden', reason: 'no_billing_profile' };
  if (facts.balanceQuanta > 0 || facts.hasChargeableCard || facts.hasDeposit || facts.hasLiveServer)
    return null;
  return { status: 402, code: 'payment_required', reason: 'hourly_not_eligible' };
}

/**
 * Eligibility for another paid deployment (API-5.5), asked with the balance locked. Without credit, an default card is
 * charged before anything is queued (API-3.2).
 */
export function judgeDeployment(facts: AccessFacts): AccessRefusal | null {
  const refusal = judgeAccess(facts);
  if (refusal) return refusal;
  if (facts.balanceQuanta > 0 || facts.hasChargeableCard) return null;
  return { status: 402, code: 'payment_required', reason: 'credit_required' };
}
