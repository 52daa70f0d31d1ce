/** What hand-off needs from the rest of the program. */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Secrets } from '#service-kit/secrets/index.ts';
import type { TargetRules } from '#service-kit/webhooks/index.ts';
import type { BgpPeer } from './bgp/peer.ts';

export interface HandOffDeps {
  db: () => Queryable;
  secrets: Secrets;
  clock: Clock;
  reporter: Reporter;
  /** Allowed target addresses of webhooks. */
  webhooks: TargetRules;
  /** The folder with the programs that rules may start; null: rules start none. */
  commandsFolder: string | null;
  bgp: {
    /** Peers that rules may announce routes to. */
    peers: readonly BgpPeer[];
    /** Null: that of each peer. */
    ownAs: number | null;
    /** How long a peer keeps the routes when its session is lost. */
    keepSeconds: number;
  };
}
