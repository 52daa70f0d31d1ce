/** Functions that are given the same thing first, such as a database or what a feature needs, as a feature's door offers them. */

type Bound<First, Call> = Call extends (first: First, ...rest: infer Rest) => infer Result
  ? (...rest: Rest) => Result
  : never;

/** The same functions by the same names, called without their first argument; `first` is asked at each call. */
export function bind<First, Calls extends Record<string, (first: First, ...rest: never[]) => unknown>>(
  first: () => First,
  calls: Calls,
): { [Name in keyof Calls]: Bound<First, Calls[Name]> } {
  const bound = Object.entries(calls).map(([name, call]) => [
    name,
    (...rest: never[]) => call(first(), ...rest),
  ]);
  return Object.fromEntries(bound) as { [Name in keyof Calls]: Bound<First, Calls[Name]> };
}
