/** Parts of the monitor that others can take the place of. What is absent is made by the settings. */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { ObjectStore } from '#monitor/evidence/index.ts';
import type { FactStore } from '#monitor/facts/index.ts';
import type { Feed, FeedsDeps } from '#monitor/feeds/index.ts';
import type { InboxDeps } from '#monitor/inbox/index.ts';
import type { UploadConsumer } from '#monitor/intake/index.ts';
import type { PlanSection } from '#monitor/sensors/index.ts';
import type { Database, EmbeddedUse } from '#service-kit/postgres/index.ts';
import type { KeyWrapper } from '#service-kit/secrets/index.ts';
import type { MonitorRole } from './roles.ts';

export interface Overrides {
  /** What this process does; everything when absent. */
  roles?: ReadonlySet<MonitorRole>;
  reporter?: Reporter;
  /** Wall time and waiting of the process; the time of SQL is the database's. */
  clock?: Clock;
  database?: Database;
  /** Who runs the embedded database. */
  embedded?: EmbeddedUse;
  /** The key of the database's secrets. */
  keyWrapper?: KeyWrapper;
  /** Another engine of facts than PostgreSQL. */
  facts?: FactStore;
  /** Other feeds than the installed ones; `readConfig` has to know them too. */
  feeds?: readonly Feed[];
  /** Where capture files of attacks are kept. */
  evidenceObjects?: ObjectStore;
  /** Sections of the sensors' plans. */
  sections?: readonly PlanSection[];
  /** Of the inbox, such as the times of its workers. */
  inbox?: Partial<InboxDeps>;
  /** What takes records out of uploads beside the installed consumers. */
  consumers?: readonly UploadConsumer[];
  /** Of the feeds, such as where their minutes come from. */
  feedDeps?: Partial<FeedsDeps>;
}
