/** The captures in a sensor's settings. */
import type { SourceSpec } from '#sensor/packet-source/index.ts';

export type CaptureRole = 'uplink' | 'bridge';

export interface CaptureSpec {
  /** Unique in a sensor; the interface's name. */
  name: string;
  role: CaptureRole;
  source: SourceSpec;
  /** Number of threads that share the interface by fanout; default 1. */
  members?: number;
  /** Public names on the outside of encrypted hellos (ECH); the well-known ones by default. */
  outerNames?: readonly string[];
}
