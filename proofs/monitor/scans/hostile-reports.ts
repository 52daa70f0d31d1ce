/** Reports of scans that no sensor of ours sends: unreadable, outside the contract, and readable but contradictory. */
import type { ScanService } from '#contracts/port-scan/index.ts';
import { type ScanReport, scanReportBytesMax } from '#contracts/sensor-api/port-scans.ts';
import { heartbeat, result, service, started } from '#monitor/scans/testing/scan-world.ts';
import type { Random } from './random-inventory.ts';

export const pick = <T>(random: Random, list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
const chance = (random: Random, share: number) => random() < share;

/** What a request carries. */
export interface SentBody {
  kind: string;
  body: string | Uint8Array<ArrayBuffer>;
  headers: Record<string, string>;
}

const json = { 'content-type': 'application/json' };

/** A body that must be refused, also from a working sensor. `target` is one of the sensor's own, so that nothing else is wrong. */
export function makeUnreadable(random: Random, target: string, id: string): SentBody {
  const good = result(target, 'full', [22, 80], { scan_id: id });
  const text = JSON.stringify(good);
  const changed = (change: object) => JSON.stringify({ ...good, ...change });
  const kinds: Record<string, () => string | Uint8Array<ArrayBuffer>> = {
    'random bytes': () => Uint8Array.from({ length: 1 + Math.floor(random() * 400) }, () => random() * 256),
    'cut off': () => text.slice(0, Math.floor(random() * (text.length - 1))),
    'nested lists': () => '['.repeat(1 + Math.floor(random() * 200_000)),
    'closed nested lists': () => `${'['.repeat(9_000)}${random()}${']'.repeat(9_000)}`,
    'nested objects': () => `{"kind":${'{"kind":'.repeat(Math.floor(random() * 50_000))}`,
    'a field twice': () => text.replace('{', `{"scan_id":"${id.replace(/.$/, '0')}",`),
    'a prototype': () => text.replace('{', `{"__proto__":{"state":${random()}},`),
    'a constructor': () => text.replace('{', `{"constructor":{"prototype":${random()}},`),
    'an unknown field': () => changed({ [`field${random()}`]: 1 }),
    'many unknown fields': () =>
      changed(Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`f${i}`, 0]))),
    'another kind': () => changed({ kind: pick(random, ['ended', '', null, 7, ['result']]) }),
    'no field': () => changed({ [pick(random, Object.keys(good))]: undefined }),
    'a list in place of a value': () => changed({ [pick(random, Object.keys(good).slice(1))]: [[random()]] }),
    'a great number': () =>
      text.replace('"plan_revision":1', `"plan_revision":1e${400 + Math.floor(random() * 99)}`),
    'too many services': () => changed({ services: Array(4097).fill(service(22)) }),
    'too many pauses': () =>
      changed({ pauses: Array(257).fill({ reason: 'cpu', started_at: good.at, ended_at: good.at }) }),
    'too long a text': () =>
      changed({ services: [service(22, { product: 'x'.repeat(257 + random() * 1e5) })] }),
    'a port that is none': () =>
      changed({ services: [service(pick(random, [0, -1, 65_536, 2 ** 31, 2 ** 53, 22.5, Number.NaN]))] }),
    'a wrong id': () => changed({ scan_id: pick(random, ['x', id.toUpperCase(), `${id} `, `${id}'--`, '']) }),
    'a wrong target': () =>
      changed({ target_id: pick(random, ['', "t1' or 1=1", 't1;t2', 'x'.repeat(65), '\u0000']) }),
    'a time that is none': () => changed({ at: pick(random, badTimes) }),
    'too large': () => changed({ padding: 'x'.repeat(scanReportBytesMax) }),
  };
  // The large ones cost seconds of the processor.
  const kind = pick(random, Object.keys(kinds).slice(0, chance(random, 0.02) ? undefined : -1));
  const isOther = chance(random, 0.03);
  return {
    kind: isOther ? `${kind}, of another type` : kind,
    body: kinds[kind]!(),
    headers: isOther ? { 'content-type': pick(random, ['text/plain', 'application/xml', 'a']) } : json,
  };
}

const badTimes = [
  ...['', 'now', '2026-11-23', '2026-13-01T00:00:00Z', '2026-02-30T00:00:00Z', '2026-11-23T25:00:00Z'],
  ...['2016-12-31T23:59:60Z', '0000-01-01T00:00:00Z', '1969-12-31T23:59:59Z', '+275760-09-13T00:00:00Z'],
  ...['2026-11-23T08:00:00', '2026-11-23T08:00:00Z; drop table scan_attempts', 'infinity', '-infinity'],
];

/** Names that a server's program may say of itself. */
const answers = [
  ...['OpenSSH', null, '\u0000', 'a\u0000b', '\u001b[31mred', '\u202eevil', '\ud800', '\u0085next', '  '],
  ...[
    '<script>alert(1)</script>',
    `'; drop table scan_observations; --`,
    '\\u0000',
    '{"a":1}',
    '💥'.repeat(60),
  ],
  'x'.repeat(256),
];

export interface ReportInput {
  random: Random;
  targets: readonly string[];
  ids: readonly string[];
  nowMs: number;
}

/** A report within the contract that may contradict every earlier one. */
export function makeReport({ random, targets, ids, nowMs }: ReportInput): ScanReport {
  const target = pick(random, targets);
  const id = pick(random, ids);
  // Whole minutes of the last ten days; none near the limit of seven.
  const minute = () => pick(random, [2, 3, 5, 10, 30, 60, 600, 6_000, 10_000, 10_200, 14_000]);
  const at = () => new Date(nowMs - minute() * 60_000).toISOString();
  const ahead = () => new Date(nowMs + 3_600_000 * (1 + random() * 1e6)).toISOString();
  const kind = random();
  if (kind < 0.2) return started(target, id, { at: at(), ...profileOf(random) });
  if (kind < 0.4) {
    const found = Array.from({ length: random() * 4 }, () => ({ transport: 'tcp' as const, port: 22 }));
    return heartbeat(target, id, { at: at(), percent: random() * 100, found });
  }
  const time = () => (chance(random, 0.05) ? ahead() : at());
  const services = Array.from({ length: random() * 5 }, () => makeService(random, time, id));
  const phases = Array.from({ length: random() * 3 }, () => ({
    ...{ transport: pick(random, ['tcp', 'udp'] as const), ports_asked: 100, ports_answered: 9 },
    ...{ filtered: 0, silent: 0, finished: chance(random, 0.7) },
  }));
  return result(target, profileOf(random).profile, [], {
    ...{ scan_id: id, at: at(), started_at: at(), finished_at: at(), phases, services },
    state: pick(random, ['complete', 'complete', 'partial'] as const),
    notes: pick(random, [[], ['interrupted', 'interrupted'], ['paused']] as const) as [],
    packets: pick(random, [0, 1, 2 ** 53 - 1]),
    pauses: chance(random, 0.2) ? [{ reason: 'cpu', started_at: at(), ended_at: at() }] : [],
  });
}

const profileOf = (random: Random) => ({ profile: pick(random, ['common', 'full'] as const) });

function makeService(random: Random, time: () => string, id: string): ScanService {
  return service(pick(random, [22, 80, 443, 65_535]), {
    ...{ transport: pick(random, ['tcp', 'tcp', 'udp'] as const), scan_id: id },
    ...{ first_observed_at: time(), observed_at: time(), product: pick(random, answers) },
    ...{
      version: pick(random, answers),
      extra_info: pick(random, answers),
      cpe: [pick(random, answers) ?? 'x'],
    },
  });
}
