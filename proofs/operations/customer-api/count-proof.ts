/** What a fleet's answers say about counting, beside what its database holds. */

import { createRawClient, type RawClient } from '#operations/surfaces/customer-api/testing/raw-client.ts';
import type { Fleet } from './api-fleet.ts';

export interface Traffic {
  /** Requests sent, those included that got no answer. */
  sent: number;
  /** Answers with a number, in no order. */
  numbers: number[];
  /** Answers without a number: their count could not be recorded. */
  unnumbered: number;
  /** Requests whose process or database was killed under them. */
  lost: number;
}

/** Sends requests over so many connections, each key in turn, until `isOver`. */
export async function sendTraffic(
  fleet: Fleet,
  connections: number,
  isOver: (traffic: Traffic) => boolean,
): Promise<Traffic> {
  const traffic: Traffic = { sent: 0, numbers: [], unnumbered: 0, lost: 0 };
  const clients = new Map<string, RawClient>();
  const clientOf = (url: string) => {
    const known = clients.get(url) ?? createRawClient(url, connections);
    clients.set(url, known);
    return known;
  };
  await Promise.all(
    Array.from({ length: connections }, async (_, connection) => {
      while (!isOver(traffic)) {
        const turn = traffic.sent;
        traffic.sent += 1;
        const url = fleet.urls[connection % fleet.urls.length]!;
        const authorization = `Bearer ${fleet.keys[turn % fleet.keys.length]!}`;
        try {
          const answer = await clientOf(url).send({
            method: 'GET',
            path: '/api/v2/servers/1',
            headers: [['authorization', authorization]],
          });
          const used = answer.headers.find(([name]) => name === 'x-api-quota-used')?.[1];
          if (used !== undefined) traffic.numbers.push(Number(used));
          else if (answer.status === 404) traffic.unnumbered += 1;
          else traffic.lost += 1;
        } catch {
          traffic.lost += 1;
          await new Promise((wake) => setTimeout(wake, 5));
        }
      }
    }),
  );
  for (const client of clients.values()) client[Symbol.dispose]();
  return traffic;
}

/** What is wrong with numbers that should be each of `from` + 1 to `to`, once; at most a few faults. */
export function permutationFaults(numbers: readonly number[], from: number, to: number): string[] {
  const sorted = numbers.toSorted((a, b) => a - b);
  const faults: string[] = [];
  if (sorted.length !== to - from) faults.push(`${sorted.length} numbers for ${to - from} counts`);
  for (const [index, number] of sorted.entries()) {
    if (number !== from + index + 1) {
      faults.push(`${number} stands where ${from + index + 1} should`);
      break;
    }
  }
  return faults;
}

export interface Counts {
  /** By month, oldest first. */
  months: number[];
  keys: number;
  days: number;
}

export async function readCounts(fleet: Fleet): Promise<Counts> {
  const { rows: months } = await fleet.pool.query<{ count: number }>(
    'select count from usage_months where tenant_id = $1 order by month',
    [fleet.tenant.id],
  );
  const { rows: sums } = await fleet.pool.query<{ keys: number; days: number }>(
    `select coalesce((select sum(count) from usage_key_months where tenant_id = $1), 0)::bigint as keys,
       coalesce((select sum(count) from usage_days where tenant_id = $1), 0)::bigint as days`,
    [fleet.tenant.id],
  );
  return { months: months.map((row) => row.count), ...sums[0]! };
}
