/**
 * Services of the lab's internet beside the sites of the plan: of many kinds, each under a name and an address of its own, in the
 * order of their use. The use falls with the place in the list (a long tail) and follows the hour of the day.
 *
 * All names are below `.example`, which is reserved for documentation; each has a registrable domain of its own, so that each is an
 * application of its own.
 */
import { type Rhythm, rhythmAt } from './daily-rhythm.ts';
import type { WireKind } from './wires.ts';

/** `https` and `http` are served by the web service, all others by a wire. */
export type ServiceKind = 'https' | 'http' | WireKind;

export interface Service {
  name: string;
  kind: ServiceKind;
  rhythm: Rhythm;
  /** Bytes that follow the service's answer. */
  bytes: number;
  /** Bytes that follow the client's request; 0 for the web. */
  sentBytes: number;
  ipv4: string;
  ipv6: string;
}

type Row = readonly [name: string, kind: ServiceKind, rhythm: Rhythm, bytes?: number, sentBytes?: number];

const rows: readonly Row[] = [
  ['api.parcels.example', 'https', 'day', 4_000],
  ['img.photowall.example', 'https', 'evening', 18_000],
  ['ns1.openresolver.example', 'dns', 'day'],
  ['stream.radiowave.example', 'https', 'evening', 24_000],
  ['db.ledgerbook.example', 'postgresql', 'day', 3_000, 400],
  ['ntp.clockworks.example', 'ntp', 'steady'],
  ['edge.fastlane.example', 'quic', 'evening'],
  ['mx.postbox.example', 'smtp', 'day', 300, 6_000],
  ['deb.packagebay.example', 'http', 'steady', 16_000],
  ['cache.quickstore.example', 'redis', 'day', 900, 200],
  ['git.codeforge.example', 'https', 'day', 9_000],
  ['ssh.bastionhost.example', 'ssh', 'day', 2_500, 1_500],
  ['play.blockworld.example', 'minecraft', 'evening', 2_000, 600],
  ['arena.fragmatch.example', 'game', 'evening'],
  ['imap.postbox-mail.example', 'imaps', 'day', 5_000, 300],
  ['vault.nightsafe.example', 'backup', 'night', 400, 40_000],
  ['sql.orderdesk.example', 'mysql', 'day', 2_500, 500],
  ['registry.shipyard.example', 'https', 'day', 20_000],
  ['turn.meetroom.example', 'stun', 'day'],
  ['dot.privatedns.example', 'dns_over_tls', 'steady', 200],
  ['metrics.gaugeboard.example', 'https', 'steady', 700],
  ['queue.taskline.example', 'amqp', 'day', 600, 900],
  ['mirror.oldarchive.example', 'rsync', 'night', 22_000],
  ['things.sensorhub.example', 'mqtt', 'steady', 100, 300],
  ['login.idgate.example', 'https', 'day', 2_000],
  ['voice.callbridge.example', 'sip', 'day'],
  ['submit.postroom.example', 'smtps', 'day', 200, 5_000],
  ['h3.videocast.example', 'quic', 'evening'],
  ['vpn.tunnelway.example', 'wireguard', 'day'],
  ['pool.timekeepers.example', 'ntp', 'steady'],
  ['logs.auditstream.example', 'syslog_tls', 'steady', 0, 2_500],
  ['directory.staffbook.example', 'ldaps', 'day', 1_500, 200],
  ['src.patchwork.example', 'git', 'day', 7_000],
  ['feeds.newswire.example', 'http', 'day', 5_000],
  ['chat.gathering.example', 'xmpp', 'evening', 800, 300],
  ['irc.oldnet.example', 'irc_tls', 'evening', 700, 200],
  ['hot.memgrid.example', 'memcached', 'day', 1_200, 100],
  ['match.pixelracer.example', 'game', 'evening'],
  ['snapshots.coldvault.example', 'backup', 'night', 400, 30_000],
  ['weather.skyreport.example', 'https', 'steady', 1_800],
];

const firstHost = 10;

export const services: readonly Service[] = rows.map(([name, kind, rhythm, bytes = 0, sentBytes = 0], i) => ({
  ...{ name, kind, rhythm, bytes, sentBytes },
  ipv4: `198.51.100.${firstHost + i}`,
  ipv6: `2001:db8:51::a:${firstHost + i}`,
}));

/** How fast the use falls from place to place. */
const tailExponent = 0.9;

/** The service of a client that chooses at this time; `chance` is from 0 to 1. */
export function chooseService(unixMs: number, chance: number): Service {
  const weights = services.map(({ rhythm }, i) => rhythmAt(rhythm, unixMs) / (i + 1) ** tailExponent);
  let left = chance * weights.reduce((sum, weight) => sum + weight, 0);
  for (const [i, weight] of weights.entries()) {
    left -= weight;
    if (left < 0) return services[i]!;
  }
  return services.at(-1)!;
}
