/** What a customer sees of an installation, before and after an upgrade, and what may not differ. */
import { createClient } from '#clients/typescript/index.ts';
import { type ProtectMinute, readMinutes, signIn } from '../testing/people.ts';
import type { DemoFile } from '../testing/run-demo.ts';

/** By key: what has to be the same after an upgrade. */
export interface Sight {
  /** Servers, networks, members and plan, each as the API shows it. */
  objects: Map<string, string>;
  /** `server timestamp address` → the minute as the Protect page shows it. */
  minutes: Map<string, string>;
  /** Requests of this month that count (API-8). */
  requests: number;
}

/** Looks at everything with the customer's login and key. Throws when one of them does not work. */
export async function look(demo: DemoFile): Promise<Sight> {
  const api = createClient({ url: demo.operations_url, key: demo.full_key });
  const objects = new Map<string, string>();
  const servers = await api.listServers();
  for (const { id, name, public_ips, plan, image, created_at } of servers.servers)
    objects.set(`server ${id}`, JSON.stringify({ name, public_ips, plan, image, created_at }));
  for (const { id, name, cidr } of (await api.listNetworks()).networks)
    objects.set(`network ${id}`, JSON.stringify({ name, cidr }));
  for (const { id } of servers.servers)
    for (const { network_id, ip, mac_address } of (await api.listServerNetworks(id)).networks)
      objects.set(`server ${id} on network ${network_id}`, JSON.stringify({ ip, mac_address }));
  const visitor = await signIn(demo.operations_url, demo.customer);
  const minutes = new Map<string, string>();
  for (const { id } of servers.servers)
    for (const minute of await readMinutes(visitor, id))
      minutes.set(keyOf(id, minute), JSON.stringify(minute));
  for (const login of [demo.operator, demo.other_customer]) await signIn(demo.operations_url, login);
  await signIn(demo.monitor_url, demo.monitor_operator);
  return { objects, minutes, requests: (await api.readUsage()).count };
}

const keyOf = (serverId: number, { timestamp, address }: ProtectMinute) =>
  `server ${serverId} ${timestamp} ${address}`;

/** What the second look lacks or shows otherwise. A minute may have gained; it may not lose a byte. */
export function compare(before: Sight, after: Sight): string[] {
  const offences: string[] = [];
  for (const [key, text] of before.objects) {
    const now = after.objects.get(key);
    if (now !== text) offences.push(`${key} was ${text} and is ${now ?? 'gone'}`);
  }
  for (const [key, text] of before.minutes) {
    const now = after.minutes.get(key);
    if (now === undefined) offences.push(`the minute of ${key} is gone`);
    else if (hasLost(JSON.parse(text) as ProtectMinute, JSON.parse(now) as ProtectMinute))
      offences.push(`the minute of ${key} was ${text} and is ${now}`);
  }
  if (after.requests < before.requests)
    offences.push(`${before.requests} requests were counted and are ${after.requests}`);
  return offences;
}

function hasLost(before: ProtectMinute, after: ProtectMinute): boolean {
  return (['inbound_bytes', 'outbound_bytes', 'coverage'] as const).some(
    (field) => before[field] !== null && (after[field] === null || after[field] < before[field]),
  );
}
