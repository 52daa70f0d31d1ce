import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { systemClock } from '#common/clock/index.ts';
import { createTestDatabase } from '#service-kit/testing/index.ts';
import { createSimulatedDriver } from './simulated-driver.ts';
import { checkContract, type GuestFacts } from './testing/contract.ts';
import { guest, neighbour } from './testing/example-guest.ts';

test('the simulated hypervisor keeps the contract of drivers', async (t) => {
  const database = await createTestDatabase('operations');
  t.after(() => database.drop());
  const query = async (text: string, ...values: string[]) => (await database.pool.query(text, values)).rows;
  await checkContract(t, {
    driver: createSimulatedDriver({
      db: () => database.db,
      clock: systemClock,
      preparedGuests: [],
      stepMs: 0,
    }),
    guest,
    neighbour,
    otherImage: 'other',
    isBootable: true,
    knowsImages: false,
    async inspect(name) {
      const [found] = await query(
        `select image, rescue_image as rescue, iso, 'rebuild ' || rebuild as disk, vcpus, memory_mb as "memoryMb", disk_gb as "diskGb",
          array(select host(address) from unnest(addresses) as address) as addresses,
          array_remove(mac_address || array(select mac_address from simulated_interfaces where guest = name), null) as macs
        from simulated_guests where name = $1`,
        name,
      );
      return (found as GuestFacts | undefined) ?? null;
    },
    listLeftovers: async () =>
      (await query('select name from simulated_guests union all select guest from simulated_interfaces')).map(
        (row) => row.name as string,
      ),
    async readSpeed(name) {
      const [row] = await query('select speed_mbit as mbit from simulated_guests where name = $1', name);
      return row?.mbit ?? null;
    },
    async hasRootPassword(name, password) {
      const [row] = await query('select password_digest from simulated_guests where name = $1', name);
      return row?.password_digest === createHash('sha256').update(password).digest('hex');
    },
  });
});
