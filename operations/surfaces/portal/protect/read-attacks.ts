/** What the Protect and Traffic pages and their banner ask of a server's attacks. */
import type { Clock } from '#common/clock/index.ts';
import type { Actor } from '#operations/accounts/index.ts';
import type { IncidentRow, ProtectIncidents } from '#operations/protect/index.ts';
import type { Range } from '#service-kit/pages/index.ts';

export interface AttackReaderDeps {
  protectIncidents: Pick<ProtectIncidents, 'list'>;
  clock: Clock;
}

interface Subject {
  serverId: number;
  tenantId: number;
  /** Only this address; null or absent: all. */
  address?: string | null;
}

/** Attacks of the Protect page. */
export interface ListedAttacks {
  open: readonly IncidentRow[];
  /** Open ones and the newest others. */
  listed: readonly IncidentRow[];
  nowMs: number;
}

/** Rows of the table on the page; the list has all. */
const listedMax = 10;
/** Red areas of a chart. */
const areasMax = 200;
/** Attacks at the same time that a page tells of. */
const openMax = 20;

/** Those that go on, and the newest. */
export async function readListedAttacks(
  deps: AttackReaderDeps,
  actor: Actor,
  subject: Subject,
): Promise<ListedAttacks> {
  const [open, newest] = await Promise.all([
    readOpenAttacks(deps, actor, subject),
    deps.protectIncidents.list(actor, subject, { severity: 'attack', limit: listedMax }),
  ]);
  const others = newest.filter(({ id }) => !open.some((each) => each.id === id));
  return { open, listed: [...open, ...others].slice(0, listedMax), nowMs: deps.clock.nowMs() };
}

/** Attacks that overlap the range. */
export async function readAttacksInChart(
  { protectIncidents }: AttackReaderDeps,
  actor: Actor,
  subject: Subject,
  range: Range,
): Promise<IncidentRow[]> {
  const found = await protectIncidents.list(actor, subject, { severity: 'attack', range, limit: areasMax });
  return found.filter(({ address }) => (subject.address ?? address) === address);
}

/** Open incidents of severity attack, newest first. */
export function readOpenAttacks(
  { protectIncidents }: AttackReaderDeps,
  actor: Actor,
  subject: Subject,
): Promise<IncidentRow[]> {
  const query = { states: ['active', 'stale'], severity: 'attack', limit: openMax } as const;
  return protectIncidents.list(actor, subject, query);
}
