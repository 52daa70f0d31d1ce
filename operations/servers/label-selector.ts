import type { LabelTerm } from '#operations/views/index.ts';

const key = '[A-Za-z0-9._/-]{1,63}';
const comparison = new RegExp(`^(${key})(==|!=|=)([^,]{0,255})$`);
const existence = new RegExp(`^(!?)(${key})$`);

/**
 * `env=prod,tier!=test,owner,!old`: every term must hold. `!=` holds as well for a server without that label. Null for
 * a text that is no selector.
 */
export function parseLabelSelector(text: string): LabelTerm[] | null {
  const terms: LabelTerm[] = [];
  for (const part of text.split(',').map((one) => one.trim())) {
    const compared = comparison.exec(part);
    const existing = existence.exec(part);
    if (compared)
      terms.push({ key: compared[1]!, is: compared[2] === '!=' ? 'unequal' : 'equal', value: compared[3]! });
    else if (existing)
      terms.push({ key: existing[2]!, is: existing[1] === '!' ? 'absent' : 'present', value: '' });
    else return null;
  }
  return terms;
}
