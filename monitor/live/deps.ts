/** Dependencies of live windows. */
import type { SensorCondition } from '#contracts/sensor-api/live.ts';
import type { Intake } from '#monitor/intake/index.ts';
import type { ForeignCheck, Spoken } from '#monitor/placements/index.ts';
import type { LiveStore } from './live-store.ts';

export interface LiveDeps {
  store: LiveStore;
  /** Reads uploads; a separate one by default. */
  intake?: Intake;
  /** Stores the condition that a sensor reports with its windows. */
  noteCondition?: (sensorId: number, condition: SensorCondition) => Promise<void>;
  /** Counts rows that were left out of a sensor's windows because they are impossible. */
  noteSetAside?: (sensorId: number, rows: number) => Promise<void>;
  /** Checks which addresses belong to servers of other nodes; reports about those are left out. */
  checkAddresses?: (spoken: readonly Spoken[]) => Promise<ForeignCheck>;
  /** Wall time, for tests. */
  nowMs?: () => number;
}
