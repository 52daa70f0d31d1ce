import type { Moment } from '#sensor/host-time/index.ts';

/** The clocks of a host whose wall clock is never set. */
export const steadyMoment = (ms: number): Moment => ({ wallMs: ms, uptimeMs: ms });
