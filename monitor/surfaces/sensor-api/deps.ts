/** Features of the monitor that the sensor API uses. */
import type { Evidence } from '#monitor/evidence/index.ts';
import type { Inbox } from '#monitor/inbox/index.ts';
import type { Intake } from '#monitor/intake/index.ts';
import type { Live } from '#monitor/live/index.ts';
import type { Scans } from '#monitor/scans/index.ts';
import type { Sensors } from '#monitor/sensors/index.ts';

export interface SensorApiDeps {
  sensors: Sensors;
  intake: Intake;
  inbox: Inbox;
  live: Live;
  evidence: Pick<Evidence, 'receive'>;
  scans: Pick<Scans, 'readPlan' | 'receive'>;
}
