/** Bodies of the forms of protection settings, and refusals of them. */
import { Type } from 'typebox';
import type { CodedError } from '#common/errors/index.ts';
import { faultText } from '../frame.ts';
import type { Refused } from './threshold-parts.ts';
import { shownName, thresholdFields } from './threshold-text.ts';

export const Revision = { revision: Type.String({ pattern: '^[0-9]{1,15}$' }) };

const text = Type.Optional(Type.String({ maxLength: 100 }));
/** Fields of a threshold form. */
export const thresholdProperties = {
  ...Object.fromEntries(
    thresholdFields.flatMap((name) => [name, shownName(name)]).map((name) => [name, text]),
  ),
  multiply: Type.Optional(
    Type.String({ pattern: '^(0\\.(0[1-9]|[1-9]\\d?)|[1-9]\\d{0,2}(\\.\\d{1,2})?)?$' }),
  ),
};

/** The refusal of a form; any other error is thrown. */
export function refusalOf(error: unknown, typed: Refused['typed']): Refused {
  const message = faultText(error, 'protection.invalid', 'protection.changed');
  const { code, details } = error as CodedError;
  const fields = (details.fields ?? {}) as Record<string, string>;
  const hasFields = Object.keys(fields).length > 0;
  return {
    message: hasFields ? 'Nothing was saved. Correct the marked fields.' : message,
    fields,
    status: code === 'protection.changed' ? 409 : 422,
    typed,
  };
}
