import { test } from 'node:test';
import fc from 'fast-check';
import type { Condition, Criterion } from './matcher/advisory.ts';
import { matchAdvisory } from './matcher/match-advisory.ts';
import { parseVersion } from './matcher/version.ts';
import { products } from './products.ts';

/** Each in the order of its product, as `version` or `version:update`. The evaluator below compares places in the list. */
const versionsOf: Record<string, readonly string[]> = {
  openssh: ['8.9:p1', '9.3:p1', '9.3:p2', '9.6:p1', '9.10:p1', '10.0:p1', '10.0:p2'],
  mysql: ['5.5.62', '5.7.9', '5.7.10', '8.0.4:rc', '8.0.11', '8.0.35', '8.1.0'],
  postgresql: ['9.6.24', '10.2', '10.10', '17:beta1', '17:beta2', '17:rc1', '17.0', '17.1'],
  proftpd: ['1.3.4:e', '1.3.5:rc2', '1.3.5:rc10', '1.3.5', '1.3.5:a', '1.3.5:e', '1.3.6'],
};

interface Fact {
  kind: 'own' | 'other' | 'own_no_version';
  isVulnerable: boolean;
  qualifier: 'none' | 'edition' | 'platform';
  from: number | null;
  to: number | null;
  includesFrom: boolean;
  includesTo: boolean;
  exact: number | null;
}

interface Tree {
  operator: 'AND' | 'OR';
  isNegated: boolean;
  parts: readonly (Tree | Fact)[];
}

/** 1 true, 0 false, 0.5 unknown. */
function truthOf(fact: Fact, place: number): number {
  const { kind, from, to, includesFrom, includesTo, exact, qualifier } = fact;
  if (kind === 'other') return 0.5;
  if (kind === 'own_no_version') return 0;
  if (from !== null && (includesFrom ? place < from : place <= from)) return 0;
  if (to !== null && (includesTo ? place > to : place >= to)) return 0;
  if (exact !== null && exact !== place) return 0;
  return qualifier === 'none' ? 1 : 0.5;
}

interface Literal {
  fact: Fact;
  isOpposite: boolean;
}

/** All sets of facts each of which makes the tree true (disjunctive normal form). */
function writeOut(part: Tree | Fact, isOpposite: boolean): Literal[][] {
  if (!('parts' in part)) return [[{ fact: part, isOpposite }]];
  const turned = part.isNegated !== isOpposite;
  const inner = part.parts.map((one) => writeOut(one, turned));
  if ((part.operator === 'AND') === turned) return inner.flat();
  return inner.reduce<Literal[][]>(
    (sets, choices) => sets.flatMap((set) => choices.map((one) => [...set, ...one])),
    [[]],
  );
}

function evaluate(alternatives: readonly Tree[], place: number, isReason: (fact: Fact) => boolean): number {
  const truths = alternatives
    .flatMap((tree) => writeOut(tree, false))
    // A finding needs a vulnerable criterion of the product itself.
    .filter((set) => set.some(({ fact }) => fact.kind !== 'other' && fact.isVulnerable && isReason(fact)))
    .map((set) =>
      Math.min(
        ...set.map(({ fact, isOpposite }) => (isOpposite ? 1 - truthOf(fact, place) : truthOf(fact, place))),
      ),
    );
  return Math.max(0, ...truths);
}

/** What the alternatives say of the version at this place. */
function evaluatePlainly(alternatives: readonly Tree[], place: number): string {
  const words: Record<number, string> = { 0: 'no', 0.5: 'unknown', 1: 'yes' };
  const namesVersions = ({ kind, from, to, exact }: Fact) =>
    kind !== 'own' || exact !== null || from !== null || to !== null;
  const truth = evaluate(alternatives, place, namesVersions);
  if (truth > 0) return words[truth]!;
  return `${words[evaluate(alternatives, place, () => true)]} of any version`;
}

const cases = fc.constantFrom(...Object.keys(versionsOf)).chain((key) => {
  const place = fc.nat(versionsOf[key]!.length - 1);
  const fact: fc.Arbitrary<Fact> = fc.record({
    kind: fc.constantFrom('own', 'own', 'own', 'other', 'own_no_version'),
    isVulnerable: fc.boolean(),
    qualifier: fc.constantFrom('none', 'none', 'none', 'edition', 'platform'),
    from: fc.option(place, { freq: 1 }),
    to: fc.option(place, { freq: 1 }),
    includesFrom: fc.boolean(),
    includesTo: fc.boolean(),
    exact: fc.option(place, { freq: 1 }),
  });
  const treeOf = (part: fc.Arbitrary<Tree | Fact>): fc.Arbitrary<Tree> =>
    fc.record({
      operator: fc.constantFrom('AND', 'OR'),
      isNegated: fc.constantFrom(false, false, false, true),
      parts: fc.array(part, { minLength: 1, maxLength: 3 }),
    });
  const tree = treeOf(fc.oneof(fact, treeOf(fc.oneof(fact, treeOf(fact)))));
  return fc.record({ key: fc.constant(key), trees: fc.array(tree, { minLength: 1, maxLength: 2 }) });
});

test('NET-2.6.2: configurations are evaluated whole, as an independent evaluator does', () => {
  const property = fc.property(cases, ({ key, trees }) => {
    const product = products.find((one) => one.key === key)!;
    const configurations = trees.map((tree) => toCondition(key, tree));
    for (const [place, text] of versionsOf[key]!.entries()) {
      const version = parseVersion(product.scheme, text.replace(':', ''))!;
      const { truth, isOfAnyVersion } = matchAdvisory({ product, version }, { configurations });
      const found = `${truth}${isOfAnyVersion ? ' of any version' : ''}`;
      const expected = evaluatePlainly(trees, place);
      if (found !== expected)
        throw new Error(`${key} ${text}: ${found} instead of ${expected}: ${JSON.stringify(configurations)}`);
    }
  });
  fc.assert(property, { numRuns: 1000, seed: 4 });
});

function toCondition(key: string, { operator, isNegated, parts }: Tree): Condition {
  return {
    ...{ operator, isNegated },
    parts: parts.map((part) => ('parts' in part ? toCondition(key, part) : toCriterion(key, part))),
  };
}

function toCriterion(key: string, fact: Fact): Criterion {
  const isOther = fact.kind === 'other';
  const [vendor, title] = isOther
    ? ['microsoft', 'windows']
    : products.find((one) => one.key === key)!.names[0]!;
  const textOf = (place: number) => versionsOf[key]![place]!;
  const [version, update = '-'] = fact.exact === null ? ['*', '*'] : textOf(fact.exact).split(':');
  const isBare = fact.kind === 'own_no_version';
  const fields = [isOther ? 'o' : 'a', vendor, title, ...(isBare ? ['-', '*'] : [version, update]), '*', '*'];
  const edition = fact.qualifier === 'edition' ? 'enterprise' : '*';
  const platform = fact.qualifier === 'platform' ? 'windows' : '*';
  const bound = (place: number) => textOf(place).replace(':', '');
  return {
    cpe: ['cpe', '2.3', ...fields, edition, platform, '*', '*'].join(':'),
    isVulnerable: fact.isVulnerable,
    ...(fact.from !== null && {
      [fact.includesFrom ? 'startIncluding' : 'startExcluding']: bound(fact.from),
    }),
    ...(fact.to !== null && { [fact.includesTo ? 'endIncluding' : 'endExcluding']: bound(fact.to) }),
  };
}
