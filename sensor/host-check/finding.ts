/** `bad`: the sensor can not work. `warn`: it works worse or at a higher cost. `info`: worth knowing. */
export type FindingState = 'ok' | 'info' | 'warn' | 'bad';

export interface Finding {
  subject: string;
  state: FindingState;
  /** A sentence; for a problem it includes the fix. */
  text: string;
}

/** Creates a finding. */
export function finding(state: FindingState, subject: string, text: string): Finding {
  return { state, subject, text };
}
