/** How what is held differs from what is known, by key. */
export function differences(
  what: string,
  expected: ReadonlyMap<string, string>,
  held: readonly (readonly [string, string])[],
) {
  const faults: string[] = [];
  const seen = new Set<string>();
  for (const [key, value] of held) {
    if (seen.has(key)) faults.push(`${what} ${key} is held twice`);
    seen.add(key);
    const known = expected.get(key);
    if (known === undefined) faults.push(`${what} ${key} is held, and the monitor does not have it`);
    else if (known !== value) faults.push(`${what} ${key}: held ${value}, known ${known}`);
  }
  for (const key of expected.keys()) if (!seen.has(key)) faults.push(`${what} ${key} is missing`);
  return faults;
}
