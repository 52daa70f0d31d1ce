import type { FeatureWork } from '#service-kit/jobs/index.ts';
import type { LeasedLoop } from '#service-kit/leases/index.ts';

/** A loop of a feature by its name, so that a test can run it once. */
export function loopOf({ work }: { work: FeatureWork }, name: string): LeasedLoop {
  const part = work.parts?.find((one) => one.name === `loop ${name}`);
  if (part === undefined || !('runOnce' in part)) throw new Error(`there is no loop ${name}`);
  return part as LeasedLoop;
}
