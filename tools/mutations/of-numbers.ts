/** Each number of the specification, doubled and halved. */
import { readCode } from '../numbers/number.ts';
import { limitsOfClientApi } from '../numbers/of-client-api.ts';
import { limitsOfMonitor } from '../numbers/of-monitor.ts';
import { limitsOfScans } from '../numbers/of-scans.ts';
import type { RuleBreak } from './draw.ts';

/** A count stays whole. */
const halfOf = (value: number) => (value > 1 ? Math.floor(value / 2) : value / 2);

export const numberBreaks = (readText: (file: string) => string): RuleBreak[] =>
  [...limitsOfClientApi, ...limitsOfScans, ...limitsOfMonitor].flatMap(({ rule, numbers }) =>
    numbers.flatMap(({ value, file, code, test }) => {
      const { text, with: codeWith } = readCode(code);
      const start = readText(file).indexOf(text);
      return [value * 2, halfOf(value)].map((other) => ({
        rule,
        file,
        start,
        end: start + text.length,
        replacement: codeWith(other),
        tests: [test],
      }));
    }),
  );
