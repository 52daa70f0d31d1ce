import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { FilterPlan, PrivateInterface } from './guest.ts';

export interface SimulatedGuest {
  name: string;
  macAddress: string | null;
  addresses: string[];
  power: 'on' | 'off';
}

/** Defines a guest unless it is defined; the rows' constraints refuse a second owner of a name or a MAC. */
export async function defineGuest(
  db: Queryable,
  guest: { name: string; mac: string | null; addresses: readonly string[] },
): Promise<SimulatedGuest> {
  await sql`insert into simulated_guests (name, mac_address, addresses, power)
    values (${guest.name}, ${guest.mac}, ${[...guest.addresses]}::inet[], 'off')
    on conflict (name) do nothing`.execute(db);
  const { rows } = await sql<SimulatedGuest>`
    select name, mac_address as "macAddress", power,
      array(select host(address) from unnest(addresses) as address) as addresses
    from simulated_guests where name = ${guest.name}`.execute(db);
  return rows[0]!;
}

/** False when there is no such guest. */
export async function setGuestPower(db: Queryable, name: string, power: 'on' | 'off'): Promise<boolean> {
  const { rows } =
    await sql`update simulated_guests set power = ${power} where name = ${name} returning 1`.execute(db);
  return rows.length === 1;
}

export async function deleteGuest(db: Queryable, name: string): Promise<void> {
  await sql`with nics as (delete from simulated_interfaces where guest = ${name})
    delete from simulated_guests where name = ${name}`.execute(db);
}

/** Notes what the guest's NIC lets through; false when there is no such guest. */
export async function setGuestFirewall(
  db: Queryable,
  name: string,
  plan: FilterPlan | null,
): Promise<boolean> {
  const { rows } = await sql`
    update simulated_guests set firewall = ${plan === null ? null : JSON.stringify(plan)}::jsonb
    where name = ${name} returning 1`.execute(db);
  return rows.length === 1;
}

/** Attaches a NIC and replaces the guest's previous one on this network; false when there is no such guest. */
export async function putInterface(db: Queryable, guest: string, nic: PrivateInterface): Promise<boolean> {
  const { rows } = await sql`
    insert into simulated_interfaces (guest, network_id, mac_address, address)
    select name, ${nic.networkId}, ${nic.mac}, ${nic.address}::inet from simulated_guests where name = ${guest}
    on conflict (guest, network_id) do update set mac_address = excluded.mac_address, address = excluded.address
    returning 1`.execute(db);
  return rows.length === 1;
}

export async function deleteInterface(
  db: Queryable,
  guest: string,
  nic: Pick<PrivateInterface, 'networkId' | 'mac'>,
): Promise<void> {
  await sql`delete from simulated_interfaces
    where guest = ${guest} and network_id = ${nic.networkId} and mac_address = ${nic.mac}`.execute(db);
}

/** Leaves on this network the NICs of these MACs only. */
export async function deleteOtherInterfaces(
  db: Queryable,
  networkId: number,
  macs: readonly string[],
): Promise<void> {
  await sql`delete from simulated_interfaces
    where network_id = ${networkId} and not mac_address = any(${[...macs]}::text[])`.execute(db);
}

export async function findGuestPower(db: Queryable, name: string): Promise<'on' | 'off' | null> {
  const { rows } = await sql<{ power: 'on' | 'off' }>`
    select power from simulated_guests where name = ${name}`.execute(db);
  return rows[0]?.power ?? null;
}

export async function listGuests(db: Queryable): Promise<{ name: string; power: 'on' | 'off' }[]> {
  const { rows } = await sql<{ name: string; power: 'on' | 'off' }>`
    select name, power from simulated_guests order by name`.execute(db);
  return rows;
}
