import type { Features } from '#monitor/features.ts';
import type { Demo } from '#service-kit/demo/index.ts';
import type { DemoRole } from '#service-kit/sign-in/index.ts';

/** The features of the monitor, and what its settings say to the console. */
export interface ConsoleDeps extends Features {
  /** Where people reach this program; null: as the request says. */
  publicUrl: string | null;
  demoRoles?: readonly DemoRole[];
  /** Absent or null outside of a local demo. */
  demo?: Demo | null;
  /** Where the servers of the demo are. */
  demoPlace?: { clusterId: number; node: string | null };
  /** The console requires a second factor. */
  requireSecondFactor: boolean;
  /** Mails of a demo, to show at `/dev/mail/`; null or absent: none are caught. */
  caughtMailFolder?: string | null;
  /** How telemetry is processed, as the environment of this process sets it. */
  processing: {
    rankingHoldSeconds: number;
    liveHistorySeconds: number;
    liveHistoryMax: number;
    inventorySyncSeconds: number;
    /** What this process does (`serve --only`). */
    roles: ReadonlySet<string>;
    hasRanking: boolean;
    hasInventorySync: boolean;
    hasAlerts: boolean;
    hasMaintenance: boolean;
  };
  /** The URL that sensors reach the monitor under, where a setting names it. */
  monitorUrl: () => string | null;
}
