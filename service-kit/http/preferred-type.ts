/**
 * Which of the offered media types the caller would rather have (RFC 9110, 12.5.1). A wildcard gives the first one; so
 * does a tie, and an `Accept` that names none of them: an answer in the usual type is better than none.
 */
export function preferredType(accept: string | undefined, offered: readonly [string, ...string[]]): string {
  let best = { type: offered[0], weight: 0 };
  const weights = readWeights(accept ?? '');
  for (const type of offered) {
    const weight = weights.get(type) ?? 0;
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
