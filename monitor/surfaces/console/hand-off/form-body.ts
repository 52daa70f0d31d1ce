/** Forms of hand-off: their bodies, and refusals of them. */
import { type Static, Type } from 'typebox';
import type { CodedError } from '#common/errors/index.ts';
import type { RuleInput } from '#monitor/hand-off/index.ts';
import { faultText } from '../frame.ts';

export const Revision = { revision: Type.String({ pattern: '^[0-9]{1,15}$' }) };

const text = (maxLength: number) => Type.String({ maxLength });
export const RuleBody = Type.Object({
  ...Revision,
  name: text(200),
  kind: text(20),
  prefixes: text(32_768),
  direction: text(20),
  min_pps: text(40),
  min_bps: text(40),
  hold_seconds: text(20),
  url: Type.Optional(text(1000)),
  command: Type.Optional(text(200)),
  peer: Type.Optional(text(200)),
  next_hop4: Type.Optional(text(64)),
  next_hop6: Type.Optional(text(64)),
});
export type RuleBody = Static<typeof RuleBody>;

export function inputOf(body: RuleBody): RuleInput {
  return {
    name: body.name,
    kind: body.kind,
    prefixes: body.prefixes.split(/[\s,]+/),
    direction: body.direction,
    minPps: body.min_pps,
    minBps: body.min_bps,
    holdSeconds: body.hold_seconds,
    url: body.url,
    command: body.command,
    peer: body.peer,
    nextHop4: body.next_hop4,
    nextHop6: body.next_hop6,
  };
}

/** A refused form. */
export interface Refused {
  message: string;
  fields: Readonly<Record<string, string>>;
  status: 409 | 422;
  typed: Readonly<Record<string, string | undefined>>;
}

/** The refusal of a form; any other error is thrown. */
export function refusalOf(error: unknown, typed: Refused['typed']): Refused {
  const message = faultText(error, 'hand_off.invalid', 'hand_off.changed');
  const { code, details } = error as CodedError;
  const fields = (details.fields ?? {}) as Record<string, string>;
  return {
    message: Object.keys(fields).length > 0 ? 'Nothing was saved. Correct the marked fields.' : message,
    fields,
    status: code === 'hand_off.changed' ? 409 : 422,
    typed,
  };
}
