/** What the demo world is seeded through. */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Features } from '#operations/features.ts';

export interface DemoWorldDeps {
  features: Features;
  reporter: Reporter;
  clock: Clock;
  /** What runs its guests; default `simulated`. */
  driver?: 'simulated' | 'lab';
  /** Where `demo.json` goes. */
  dir: string;
}
