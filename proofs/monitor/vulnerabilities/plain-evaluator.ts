/**
 * An evaluator of configurations that shares nothing with the program's: versions are places in a list that is in order, CPE names
 * are never parsed, and a configuration is written out as alternatives of facts that must all be true (disjunctive normal form).
 */

/** What configurations are made for. */
export interface World {
  product: string;
  /** Versions in the order of the product, as `version` or `version:update`. */
  versions: readonly string[];
}

/** One criterion of a random configuration, in terms of places in the list. */
export interface Fact {
  kind: 'own' | 'other' | 'own_no_version';
  isVulnerable: boolean;
  /** The record says which edition or system it means. */
  qualifier: 'none' | 'edition' | 'platform';
  /** Bounds by place; null where there is none. `exact` names one version. */
  range: { from: number | null; to: number | null; includesFrom: boolean; includesTo: boolean } | null;
  exact: number | null;
}

export interface Tree {
  operator: 'AND' | 'OR';
  isNegated: boolean;
  parts: readonly (Tree | Fact)[];
}

export type Outcome = 0 | 0.5 | 1;

/** A fact, or its opposite. */
interface Literal {
  fact: Fact;
  isOpposite: boolean;
}

export interface Answer {
  outcome: Outcome;
  /** Nothing but facts that name every version make it so. */
  isOfAnyVersion: boolean;
}

/** What the alternatives say of the service at this place of the list; 1 true, 0 false, 0.5 not known. */
export function evaluatePlainly(alternatives: readonly Tree[], place: number): Answer {
  const outcome = evaluateThrough(alternatives, place, (fact) => !namesEveryVersion(fact));
  if (outcome > 0) return { outcome, isOfAnyVersion: false };
  return { outcome: evaluateThrough(alternatives, place, () => true), isOfAnyVersion: true };
}

const namesEveryVersion = ({ kind, range, exact }: Fact): boolean =>
  kind === 'own' && exact === null && (range?.from ?? range?.to ?? null) === null;

function evaluateThrough(
  alternatives: readonly Tree[],
  place: number,
  isReason: (fact: Fact) => boolean,
): Outcome {
  let best: Outcome = 0;
  for (const tree of alternatives) {
    for (const literals of writeOut(tree, false)) {
      // A finding needs a vulnerable criterion of the product itself among its facts.
      if (!literals.some(({ fact }) => fact.kind !== 'other' && fact.isVulnerable && isReason(fact)))
        continue;
      const worst = Math.min(...literals.map((literal) => truthOfLiteral(literal, place))) as Outcome;
      if (worst > best) best = worst;
    }
  }
  return best;
}

/** All sets of facts each of which makes the tree true. */
function writeOut(part: Tree | Fact, isOpposite: boolean): Literal[][] {
  if (!('parts' in part)) return [[{ fact: part, isOpposite }]];
  const turned = part.isNegated ? !isOpposite : isOpposite;
  const inner = part.parts.map((one) => writeOut(one, turned));
  const needsAll = turned ? part.operator === 'OR' : part.operator === 'AND';
  if (!needsAll) return inner.flat();
  let sets: Literal[][] = [[]];
  for (const choices of inner) sets = sets.flatMap((set) => choices.map((choice) => [...set, ...choice]));
  return sets;
}

function truthOfLiteral({ fact, isOpposite }: Literal, place: number): Outcome {
  const value = truthOf(fact, place);
  return isOpposite ? ((1 - value) as Outcome) : value;
}

function truthOf(fact: Fact, place: number): Outcome {
  if (fact.kind === 'other') return 0.5;
  // A service whose version is known is not the one "without version".
  if (fact.kind === 'own_no_version') return 0;
  const { range, exact } = fact;
  if (range) {
    if (range.from !== null && (range.includesFrom ? place < range.from : place <= range.from)) return 0;
    if (range.to !== null && (range.includesTo ? place > range.to : place >= range.to)) return 0;
  }
  if (exact !== null && exact !== place) return 0;
  return fact.qualifier === 'none' ? 1 : 0.5;
}
