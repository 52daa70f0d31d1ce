/**
 * Which of the offered media types the caller would rather have (RFC 9110, 12.5.1): the most specific range that fits a type gives its
 * weight. A tie gives the first one; so does an `Accept` that takes none of them: an answer in the usual type is better than none.
 */
export function preferredType(accept: string | undefined, offered: readonly [string, ...string[]]): string {
  let best = { type: offered[0], weight: 0 };
  const weights = readWeights(accept ?? '');
  for (const type of offered) {
    const ranges = [type, `${type.split('/', 1)[0]}/*`, '*/*'];
    const weight = ranges.map((range) => weights.get(range)).find((one) => one !== undefined) ?? 0;
    if (weight > best.weight) best = { type, weight };
  }
  return best.type;
}

function readWeights(accept: string): Map<string, number> {
  const weights = new Map<string, number>();
  for (const part of accept.split(',')) {
    const [type = '', ...parameters] = part.split(';').map((one) => one.trim().toLowerCase());
    const quality = parameters.find((one) => one.startsWith('q='))?.slice(2) ?? '1';
    weights.set(type, Number(quality) || 0);
  }
  return weights;
}
