/** Port scans in a demo: which servers are scanned, what a customer sees of a scan, and what really listens in a guest. */
import { execFileSync } from 'node:child_process';
import type { Visitor } from './people.ts';
import type { RunningDemo } from './run-demo.ts';

/**
 * From now on the inventory is too old for scans (NET-2.7.8), except of the servers that `allowScans` names: the packets of
 * scans keep minutes from resting at their turn, and a request stays queued until its server may be scanned. Scans that
 * have begun end. Resolves when none runs.
 */
export async function holdScans(demo: RunningDemo): Promise<void> {
  await demo.query(
    'monitor',
    `create table scanned_in_test (name text primary key);
    create function age_inventory() returns trigger language plpgsql security definer as $$ begin
      if not exists (select 1 from scanned_in_test t where t.name = new.name) then
        new.last_seen_at := svc_now() - interval '1 hour';
      end if;
      return new;
    end $$;
    create trigger age_inventory before insert or update on inventory_vms for each row execute function age_inventory();
    update inventory_vms set name = name`,
  );
  await demo.until('a plan without targets was fetched, and no scan runs', 60_000, async () => {
    const sql = `select 1 from scan_plans where entries = 0
      and not exists (select 1 from scan_attempts where result_at is null)`;
    return (await demo.query('monitor', sql)).length > 0;
  });
}

/** The next import lists this server freshly. */
export async function allowScans(demo: RunningDemo, name: string): Promise<void> {
  await demo.query('monitor', 'insert into scanned_in_test values ($1)', [name]);
}

/** A requested scan in `ports.json`. */
export interface ScanView {
  id: string;
  address: string;
  kind: string;
  state: string;
  started_at: string | null;
  finished_at: string | null;
}

export interface PortsView {
  ports: { address: string; transport: string; port: number; service: string | null; profile: string }[];
  scans: ScanView[];
}

export const readPorts = (visitor: Visitor, serverId: number) =>
  visitor.getJson<PortsView>(`/client/servers/${serverId}/protect/ports.json`);

/** TCP ports of the guest's own list of sockets that accept connections to its public addresses. */
export function listListening(namespace: string): number[] {
  const lines = execFileSync('ip', ['netns', 'exec', namespace, 'ss', '-Hltn'], { encoding: 'utf8' });
  const ends = lines.split('\n').flatMap((line) => line.trim().split(/\s+/)[3] ?? []);
  const isPublic = (end: string) => !/^(127\.|\[::1\])/.test(end);
  return [...new Set(ends.filter(isPublic).map((end) => Number(end.slice(end.lastIndexOf(':') + 1))))].sort(
    (a, b) => a - b,
  );
}
