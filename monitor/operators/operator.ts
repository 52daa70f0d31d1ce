import { CodedError } from '#common/errors/index.ts';
import type { Traceable } from '#service-kit/audit/index.ts';

export type OperatorRole = 'operator' | 'viewer';

export interface Operator {
  id: number;
  email: string;
  name: string;
  role: OperatorRole;
}

export interface AddOperatorInput {
  email: string;
  name: string;
  password: string;
  role: OperatorRole;
}

/** The caller, with the data for the audit trail. */
export type Actor = Traceable &
  ({ kind: 'person'; id: number; role: OperatorRole } | { kind: 'system'; job?: string });

/** The program itself: commands and the demo world. */
export const systemActor: Actor = { kind: 'system' };

/** Throws `operators.read_only` for a read-only actor. */
export function requireOperator(actor: Actor): void {
  if (actor.kind === 'system' || actor.role === 'operator') return;
  throw new CodedError('operators.read_only', 'Your role is read-only. Ask an operator to do this.');
}
