/** Each number of the specification, doubled and halved. */
import type { Limit } from '../numbers/number.ts';
import { readCode } from '../numbers/number.ts';
import { limitsOfClientApi } from '../numbers/of-client-api.ts';
import { limitsOfMonitor } from '../numbers/of-monitor.ts';
import { limitsOfScans } from '../numbers/of-scans.ts';
import type { Mutation } from './mutation.ts';

/** A count stays whole. */
const halfOf = (value: number) => (value > 1 ? Math.floor(value / 2) : value / 2);

const mutationsOf = ({ rule, numbers }: Limit): Mutation[] =>
  numbers.flatMap(({ what, value, file, code, test }) => {
    const { text, with: codeWith } = readCode(code);
    const place = { rule, file, find: text, tests: [test] };
    return [
      { ...place, what: `${what} is doubled`, replace: codeWith(value * 2) },
      { ...place, what: `${what} is halved`, replace: codeWith(halfOf(value)) },
    ];
  });

export const mutationsOfNumbers: readonly Mutation[] = [
  ...limitsOfClientApi,
  ...limitsOfScans,
  ...limitsOfMonitor,
].flatMap(mutationsOf);
