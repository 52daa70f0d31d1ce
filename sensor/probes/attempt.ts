import type { PlanProbe } from '#contracts/sensor-api/http.ts';
import type { ProbeResult } from '#contracts/sensor-api/telemetry.ts';

/** One attempt. Never rejects; resolves to null when the signal ended it. */
export type Attempt = (probe: PlanProbe, signal: AbortSignal) => Promise<AttemptOutcome | null>;

export type AttemptOutcome = { rttUs: number } | { failure: NonNullable<ProbeResult['failure']> };
