/** Features of the monitor that the console uses. */
import type { Clock } from '#common/clock/index.ts';
import type { Alerts } from '#monitor/alerts/index.ts';
import type { Applications } from '#monitor/applications/index.ts';
import type { Devices } from '#monitor/devices/index.ts';
import type { Events } from '#monitor/events/index.ts';
import type { Evidence } from '#monitor/evidence/index.ts';
import type { Explorer } from '#monitor/explorer/index.ts';
import type { Feeds } from '#monitor/feeds/index.ts';
import type { HandOff } from '#monitor/hand-off/index.ts';
import type { Health } from '#monitor/health/index.ts';
import type { Inbox } from '#monitor/inbox/index.ts';
import type { Incidents } from '#monitor/incidents/index.ts';
import type { Inventory } from '#monitor/inventory/index.ts';
import type { Live } from '#monitor/live/index.ts';
import type { Connection } from '#monitor/operations-client/index.ts';
import type { Actor, Operators } from '#monitor/operators/index.ts';
import type { Peers } from '#monitor/peers/index.ts';
import type { Probes } from '#monitor/probes/index.ts';
import type { Protection } from '#monitor/protection/index.ts';
import type { ReadTokens } from '#monitor/read-tokens/index.ts';
import type { SavedViews } from '#monitor/saved-views/index.ts';
import type { Scans } from '#monitor/scans/index.ts';
import type { Search } from '#monitor/search/index.ts';
import type { Sensors } from '#monitor/sensors/index.ts';
import type { SetAsides } from '#monitor/set-asides/index.ts';
import type { Sites } from '#monitor/sites/index.ts';
import type { Spoofing } from '#monitor/spoofing/index.ts';
import type { Traffic } from '#monitor/traffic/index.ts';
import type { Vendors } from '#monitor/vendors/index.ts';
import type { Vulnerabilities } from '#monitor/vulnerabilities/index.ts';
import type { AuditTrail } from '#service-kit/audit/index.ts';
import type { Demo } from '#service-kit/demo/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import type { Oidc } from '#service-kit/oidc/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { SecondFactors } from '#service-kit/second-factors/index.ts';
import type { Sessions } from '#service-kit/sessions/index.ts';
import type { DemoRole } from '#service-kit/sign-in/index.ts';
import type { SignOn } from '#service-kit/sign-on/index.ts';

export interface ConsoleDeps {
  db: () => Queryable;
  clock: Clock;
  post: Post;
  factors: SecondFactors;
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
  sessions: Sessions;
  signOn: SignOn<Actor>;
  oidc: Oidc;
  operators: Operators;
  sites: Sites;
  sensors: Sensors;
  traffic: Traffic;
  applications: Applications;
  peers: Peers;
  events: Events;
  explorer: Explorer;
  incidents: Incidents;
  evidence: Evidence;
  inbox: Pick<Inbox, 'listKept'>;
  connection: Connection;
  devices: Devices;
  inventory: Inventory;
  auditTrail: AuditTrail;
  live: Live;
  probes: Probes;
  protection: Protection;
  handOff: HandOff;
  readTokens: ReadTokens;
  savedViews: SavedViews;
  alerts: Alerts;
  feeds: Feeds;
  search: Search;
  scans: Scans;
  setAsides: Pick<SetAsides, 'listOfSensor'>;
  spoofing: Pick<Spoofing, 'listOfSensor'>;
  vendors: Pick<Vendors, 'registryHost'>;
  vulnerabilities: Vulnerabilities;
  health: Health;
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
