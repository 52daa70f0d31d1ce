/**
 * Whether a service is vulnerable by a record, over the whole configuration: AND, OR, negation, and what the vulnerable product
 * must run on.
 *
 * A configuration may be true for another reason than the service: "OpenSSH before 9.8, or Debian 12". The result is about
 * the service, so one of the criteria of its own product that are marked as vulnerable must be among the reasons. Each
 * part is therefore evaluated twice: whether it is true, and whether it is true through the service.
 */
import type { Advisory, Condition, Criterion } from './advisory.ts';
import { type KnownService, matchCriterion } from './match-criterion.ts';
import { allOf, anyOf, no, opposite, type Value } from './truth.ts';

interface Result {
  value: Value;
  through: Value;
}

export function matchAdvisory(service: KnownService, advisory: Pick<Advisory, 'configurations'>): Value {
  return anyOf(advisory.configurations.map((condition) => evaluate(service, condition, false).through));
}

function evaluate(service: KnownService, part: Condition | Criterion, isNegated: boolean): Result {
  if (!('parts' in part)) return evaluateCriterion(service, part, isNegated);
  // Negation goes down to the criteria, where "not any of" is "all not" (De Morgan).
  const isTurned = isNegated !== part.isNegated;
  const results = part.parts.map((inner) => evaluate(service, inner, isTurned));
  const values = results.map((result) => result.value);
  const through = anyOf(results.map((result) => result.through));
  const isAny = (part.operator === 'OR') !== isTurned;
  if (isAny) return { value: anyOf(values), through };
  const value = allOf(values);
  // All parts must be true, and one of them through the service.
  return { value, through: allOf([through, value]) };
}

function evaluateCriterion(service: KnownService, criterion: Criterion, isNegated: boolean): Result {
  const plain = matchCriterion(service, criterion);
  const value = isNegated ? opposite(plain) : plain;
  return { value, through: plain.isOwn && criterion.isVulnerable ? value : no };
}
