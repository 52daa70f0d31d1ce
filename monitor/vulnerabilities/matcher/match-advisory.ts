/**
 * Whether a service is vulnerable by a record, over the whole configuration: AND, OR, negation, and what the vulnerable product
 * must run on.
 *
 * A configuration may be true for another reason than the service: "OpenSSH before 9.8, or Debian 12". The result is about
 * the service, so one of the criteria of its own product that are marked as vulnerable must be among the reasons. Each
 * part is therefore evaluated twice: whether it is true, and whether it is true through the service.
 */
import type { Advisory, Condition, Criterion } from './advisory.ts';
import {
  allOf,
  anyOf,
  type KnownService,
  matchCriterion,
  no,
  opposite,
  type Value,
} from './match-criterion.ts';

interface Result {
  value: Value;
  through: Value;
}

export interface AdvisoryValue extends Value {
  /** It fits only because the record names every version of the product, which says little of this one. */
  isOfAnyVersion: boolean;
}

export function matchAdvisory(
  service: KnownService,
  { configurations }: Pick<Advisory, 'configurations'>,
): AdvisoryValue {
  const matchAll = (takesAnyVersion: boolean) =>
    anyOf(
      configurations.map((condition) => evaluate({ service, takesAnyVersion }, condition, false).through),
    );
  const value = matchAll(false);
  if (value.truth !== 'no') return { ...value, isOfAnyVersion: false };
  return { ...matchAll(true), isOfAnyVersion: true };
}

interface Matched {
  service: KnownService;
  /** Whether a criterion that names every version makes a record one of the service. */
  takesAnyVersion: boolean;
}

function evaluate(of: Matched, part: Condition | Criterion, isNegated: boolean): Result {
  if (!('parts' in part)) return evaluateCriterion(of, part, isNegated);
  // Negation goes down to the criteria, where "not any of" is "all not" (De Morgan).
  const isTurned = isNegated !== part.isNegated;
  const results = part.parts.map((inner) => evaluate(of, inner, isTurned));
  const values = results.map((result) => result.value);
  const through = anyOf(results.map((result) => result.through));
  const isAny = (part.operator === 'OR') !== isTurned;
  if (isAny) return { value: anyOf(values), through };
  const value = allOf(values);
  // All parts must be true, and one of them through the service.
  return { value, through: allOf([through, value]) };
}

function evaluateCriterion(of: Matched, criterion: Criterion, isNegated: boolean): Result {
  const plain = matchCriterion(of.service, criterion);
  const value = isNegated ? opposite(plain) : plain;
  const isReason = plain.isOwn && criterion.isVulnerable && (of.takesAnyVersion || !plain.isOfAnyVersion);
  return { value, through: isReason ? value : no };
}
