/**
 * Values of the three-valued logic in which configurations are evaluated: what is not known of a server is neither true nor
 * false, and a result that hangs on it says so.
 */

export type Truth = 'no' | 'unknown' | 'yes';

/**
 * Why a result is not certain: the operating system or another product decides (`platform`), an edition or a build for one
 * system does (`edition`), the version is not exact enough (`version`), or the record names every version (`all_versions`).
 */
export type Uncertainty = 'platform' | 'edition' | 'version' | 'all_versions';

export interface Value {
  truth: Truth;
  /** Sorted, each once. */
  why: readonly Uncertainty[];
  /** Criteria of the service's product that led to it. */
  matched: readonly string[];
}

const order = { no: 0, unknown: 1, yes: 2 } as const;

export const no: Value = { truth: 'no', why: [], matched: [] };

/** True when every value is: the least of them. Its reasons are those of all that hold it there. */
export function allOf(values: readonly Value[]): Value {
  const truth = least(values.map((value) => value.truth));
  if (truth === 'no') return no;
  return { truth, ...merge(values) };
}

/** True when one value is: the greatest of them, and of several the one with the fewest reasons for doubt. */
export function anyOf(values: readonly Value[]): Value {
  const truth = values.reduce<Truth>(
    (best, value) => (order[value.truth] > order[best] ? value.truth : best),
    'no',
  );
  if (truth === 'no') return no;
  const holding = values.filter((value) => value.truth === truth);
  const doubtsMin = Math.min(...holding.map((value) => value.why.length));
  return { truth, ...merge(holding.filter((value) => value.why.length === doubtsMin)) };
}

export function opposite(value: Value): Value {
  if (value.truth === 'unknown') return value;
  return { ...value, truth: value.truth === 'yes' ? 'no' : 'yes' };
}

function least(truths: readonly Truth[]): Truth {
  return truths.reduce<Truth>((worst, truth) => (order[truth] < order[worst] ? truth : worst), 'yes');
}

function merge(values: readonly Value[]): Pick<Value, 'why' | 'matched'> {
  if (values.length === 1) return { why: values[0]!.why, matched: values[0]!.matched };
  return {
    why: [...new Set(values.flatMap((value) => value.why))].sort(),
    matched: [...new Set(values.flatMap((value) => value.matched))],
  };
}
