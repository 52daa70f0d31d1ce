import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { FilterPlan, FoundGuest, GuestDefinition, GuestSize, PrivateInterface } from './guest.ts';

export interface SimulatedGuest {
  name: string;
  macAddress: string | null;
  addresses: string[];
  power: 'on' | 'off';
}

/** Defines a guest unless it is defined; the rows' constraints refuse a second owner of a name or a MAC. */
export async function defineGuest(
  db: Queryable,
  guest: GuestDefinition,
  addresses: readonly string[],
): Promise<SimulatedGuest> {
  await sql`insert into simulated_guests (name, mac_address, addresses, power, image, vcpus, memory_mb, disk_gb,
      password_digest)
    values (${guest.name}, ${guest.mac}, ${[...addresses]}::inet[], 'off', ${guest.imageSlug}, ${guest.vcpus},
      ${guest.memoryMb}, ${guest.diskGb}, ${digestOf(guest.rootPassword)})
    on conflict (name) do nothing`.execute(db);
  const { rows } = await sql<SimulatedGuest>`
    select name, mac_address, power, array(select host(address) from unnest(addresses) as address) as addresses
    from simulated_guests where name = ${guest.name}`.execute(db);
  return rows[0]!;
}

/**
 * Gives the guest the disk of this rebuild unless it has that of a later one; returns the number of the rebuild that its disk is
 * of, null when there is no such guest.
 */
export async function beginRebuild(
  db: Queryable,
  guest: GuestDefinition,
  rebuild: number,
): Promise<number | null> {
  await sql`update simulated_guests set rebuild = ${rebuild}, image = ${guest.imageSlug}, power = 'off',
      password_digest = ${digestOf(guest.rootPassword)}
    where name = ${guest.name} and rebuild < ${rebuild}`.execute(db);
  return findRebuild(db, guest.name);
}

export async function findRebuild(db: Queryable, guest: string): Promise<number | null> {
  const { rows } = await sql<{ rebuild: number }>`
    select rebuild from simulated_guests where name = ${guest}`.execute(db);
  return rows[0]?.rebuild ?? null;
}

/**
 * Lets the guest start from a rescue disk, or null: from its own one, unless it has this change or a later one; returns the number of the
 * change that it has, null when there is no such guest.
 */
export async function setGuestRescue(
  db: Queryable,
  name: string,
  change: number,
  rescue: Pick<GuestDefinition, 'imageSlug' | 'rootPassword'> | null,
): Promise<number | null> {
  await sql`update simulated_guests set rescue_change = ${change}, power = 'off', rescue_image = ${rescue?.imageSlug ?? null},
      rescue_password_digest = ${rescue === null ? null : digestOf(rescue.rootPassword)}
    where name = ${name} and rescue_change < ${change}`.execute(db);
  const { rows } = await sql<{ change: number }>`
    select rescue_change as change from simulated_guests where name = ${name}`.execute(db);
  return rows[0]?.change ?? null;
}

/** The same for the ISO in its CD drive. */
export async function setGuestIso(
  db: Queryable,
  name: string,
  change: number,
  iso: string | null,
): Promise<number | null> {
  await sql`update simulated_guests set iso_change = ${change}, iso = ${iso}
    where name = ${name} and iso_change < ${change}`.execute(db);
  const { rows } = await sql<{ change: number }>`
    select iso_change as change from simulated_guests where name = ${name}`.execute(db);
  return rows[0]?.change ?? null;
}

export async function findGuestIso(db: Queryable, name: string): Promise<string | null> {
  const { rows } = await sql<{ iso: string | null }>`
    select iso from simulated_guests where name = ${name}`.execute(db);
  return rows[0]?.iso ?? null;
}

export async function isGuestRescued(db: Queryable, name: string): Promise<boolean | null> {
  const { rows } = await sql<{ isRescued: boolean }>`
    select rescue_image is not null as is_rescued from simulated_guests where name = ${name}`.execute(db);
  return rows[0]?.isRescued ?? null;
}

/** Keeps what the guest's disk holds, once; returns the size of that disk, null when there is no such guest. */
export async function insertSnapshot(db: Queryable, guest: string, snapshot: number): Promise<number | null> {
  await sql`insert into simulated_snapshots (guest, snapshot, image, password_digest, bytes)
    select name, ${snapshot}, image, password_digest, coalesce(disk_gb, 0) * 1073741824::bigint
    from simulated_guests where name = ${guest}
    on conflict do nothing`.execute(db);
  const { rows } = await sql<{ bytes: number }>`
    select bytes from simulated_snapshots where guest = ${guest} and snapshot = ${snapshot}`.execute(db);
  return rows[0]?.bytes ?? null;
}

/**
 * Gives the guest a disk of the snapshot unless it has that of this rebuild or a later one; returns the number of the rebuild that its
 * disk is of, null when there is no such guest.
 */
export async function beginRestore(
  db: Queryable,
  guest: string,
  snapshot: number,
  rebuild: number,
): Promise<number | null> {
  await sql`update simulated_guests g set rebuild = ${rebuild}, image = s.image, power = 'off',
      password_digest = s.password_digest
    from simulated_snapshots s
    where g.name = ${guest} and g.rebuild < ${rebuild} and s.guest = g.name and s.snapshot = ${snapshot}`.execute(
    db,
  );
  return findRebuild(db, guest);
}

export async function hasSnapshot(db: Queryable, guest: string, snapshot: number): Promise<boolean> {
  const { rows } =
    await sql`select 1 from simulated_snapshots where guest = ${guest} and snapshot = ${snapshot}`.execute(
      db,
    );
  return rows.length > 0;
}

export async function deleteSnapshot(db: Queryable, guest: string, snapshot: number): Promise<void> {
  await sql`delete from simulated_snapshots where guest = ${guest} and snapshot = ${snapshot}`.execute(db);
}

/** Why the guest can't have this size; null when it has it now. */
export async function setGuestSize(db: Queryable, name: string, size: GuestSize): Promise<string | null> {
  const { rows: done } =
    await sql`update simulated_guests set vcpus = ${size.vcpus}, memory_mb = ${size.memoryMb},
      disk_gb = ${size.diskGb}
    where name = ${name} and power = 'off' and coalesce(disk_gb, 0) <= ${size.diskGb} returning 1`.execute(
      db,
    );
  if (done.length === 1) return null;
  const power = await findGuestPower(db, name);
  if (power === null) return 'does not exist';
  return power === 'on' ? 'is on' : 'has a larger disk';
}

/** False when there is no such guest. */
export async function setGuestAddresses(
  db: Queryable,
  name: string,
  addresses: readonly string[],
): Promise<boolean> {
  const { rows } = await sql`update simulated_guests set addresses = ${[...addresses]}::inet[]
    where name = ${name} returning 1`.execute(db);
  return rows.length === 1;
}

/** False when there is no such guest. */
export async function setGuestPassword(db: Queryable, name: string, password: string): Promise<boolean> {
  const { rows } = await sql`update simulated_guests set password_digest = ${digestOf(password)}
    where name = ${name} and power = 'on' returning 1`.execute(db);
  return rows.length === 1;
}

/** For tests, which see by it what password a guest has. */
const digestOf = (password: string) => sql`encode(sha256(convert_to(${password}, 'UTF8')), 'hex')`;

/** False when there is no such guest. */
export async function setGuestPower(db: Queryable, name: string, power: 'on' | 'off'): Promise<boolean> {
  const { rows } =
    await sql`update simulated_guests set power = ${power} where name = ${name} returning 1`.execute(db);
  return rows.length === 1;
}

/** False when there is no such guest. */
export async function setGuestSpeed(db: Queryable, name: string, mbit: number | null): Promise<boolean> {
  const { rows } =
    await sql`update simulated_guests set speed_mbit = ${mbit} where name = ${name} returning 1`.execute(db);
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

/** Every guest with its sizes and the MACs of its NICs. */
export async function inspectGuests(db: Queryable): Promise<FoundGuest[]> {
  const { rows } = await sql<FoundGuest>`
    select g.name, g.vcpus, g.memory_mb,
      array(select mac from (select g.mac_address as mac union all
        select i.mac_address from simulated_interfaces i where i.guest = g.name) n
        where mac is not null order by mac) as macs
    from simulated_guests g order by g.name`.execute(db);
  return rows;
}
