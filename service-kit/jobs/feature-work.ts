import type { Part } from '#common/lifecycle/index.ts';
import type { JobHandler } from './job.ts';

/** What a feature does beside the calls that it answers. Any number of replicas may do it. */
export interface FeatureWork {
  /** Durable jobs by kind, for the workers that all features share. */
  jobHandlers?: Readonly<Record<string, JobHandler>>;
  /** Its own loops and workers, in the order in which they start. */
  parts?: readonly Part[];
}
