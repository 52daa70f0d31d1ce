/** The services of the lab's internet: how they are used over the day, and that each is an application of its own. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getDomain } from 'tldts';
import { createChoice } from './choose-exchange.ts';
import { type Rhythm, rhythmAt } from './daily-rhythm.ts';
import { addressRecords, certificateNames, manyAddresses, serviceAddresses } from './internet-plan.ts';
import { chooseService, services } from './services.ts';
import { wireOf } from './wires.ts';

const day = Date.UTC(2026, 0, 5);
const hourMs = 3_600_000;

/** How often each service is chosen at this hour by evenly spread chances. */
function countsAt(hour: number, choices = 20_000): Map<string, number> {
  const counts = new Map(services.map(({ name }) => [name, 0]));
  for (let i = 0; i < choices; i += 1) {
    const { name } = chooseService(day + hour * hourMs, (i + 0.5) / choices);
    counts.set(name, counts.get(name)! + 1);
  }
  return counts;
}

test('the lab has 40 services of at least 20 kinds, each with a registrable domain and addresses of its own', () => {
  assert.equal(services.length, 40);
  assert.ok(new Set(services.map(({ kind }) => kind)).size >= 20);
  const domains = new Set(services.map(({ name }) => getDomain(name)));
  assert.equal(domains.size, 40);
  for (const domain of domains) assert.match(domain!, /\.example$/);
  assert.equal(new Set([...serviceAddresses, ...manyAddresses]).size, serviceAddresses.length + 110);
  for (const { name, ipv4, ipv6 } of services) {
    const { ipv4: four, ipv6: six } = addressRecords.get(name)!;
    assert.deepEqual([four, six], [ipv4, ipv6]);
  }
});

test('services that share a port share its transport too, so one listener serves them', () => {
  const transports = new Map<number, string>();
  for (const { kind } of services) {
    const wire = wireOf(kind);
    if (!wire) continue;
    const { port, transport } = wire;
    assert.equal(transports.get(port) ?? transport, transport, `port ${port}`);
    transports.set(port, transport);
  }
});

test('the certificate has the name of every service that speaks TLS, and of no other', () => {
  const names = new Set(certificateNames);
  for (const { name, kind } of services) {
    const isTls = kind === 'https' || wireOf(kind)?.transport === 'tls';
    assert.equal(names.has(name), isTls, name);
  }
});

test('the use of services is a long tail: the first ten have over half of it, and the last has some', () => {
  const total = new Map<string, number>();
  for (let hour = 0; hour < 24; hour += 1)
    for (const [name, count] of countsAt(hour)) total.set(name, (total.get(name) ?? 0) + count);
  const counts = [...total.values()].sort((a, b) => b - a);
  const sum = (some: number[]) => some.reduce((all, one) => all + one, 0);
  assert.ok(sum(counts.slice(0, 10)) > 0.5 * sum(counts));
  assert.ok(counts[0]! > 10 * counts.at(-1)!);
  assert.ok(counts.at(-1)! > 0);
});

test('the use of services follows the hour: backups at night, work by day, games in the evening', () => {
  const at = (hour: number, name: string) => countsAt(hour).get(name)!;
  assert.ok(at(2, 'vault.nightsafe.example') > 5 * at(14, 'vault.nightsafe.example'));
  assert.ok(at(14, 'db.ledgerbook.example') > 2 * at(2, 'db.ledgerbook.example'));
  assert.ok(at(20, 'arena.fragmatch.example') > 2 * at(8, 'arena.fragmatch.example'));
});

test('a rhythm moves use through the day and leaves its sum as it is', () => {
  for (const rhythm of ['day', 'evening', 'night', 'steady'] as Rhythm[]) {
    const factors = Array.from({ length: 1440 }, (_, minute) => rhythmAt(rhythm, day + minute * 60_000));
    const mean = factors.reduce((sum, one) => sum + one, 0) / factors.length;
    assert.ok(Math.abs(mean - 1) < 0.01, `${rhythm}: ${mean}`);
    assert.ok(factors.every((factor) => factor > 0));
  }
});

test('every second exchange of a guest is one of the sites in turn, so each is heard of within two rounds', () => {
  const next = createChoice({
    families: [4, 6],
    certificate: '',
    clock: { nowMs: () => day },
    random: () => 0.999,
  });
  const hosts = Array.from({ length: 36 }, () => next()!);
  const sites = hosts.filter(({ host }) => !services.some(({ name }) => name === host));
  assert.equal(sites.length, 18);
  assert.equal(new Set(sites.map(({ protocol, host, family }) => `${protocol} ${host} ${family}`)).size, 17);
});
