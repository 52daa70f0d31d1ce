import type { ObservedGuest } from '../guest.ts';

/** libvirt's numbers of a domain's state: running, blocked and paused are on, shut off and crashed are off. */
const powers: Record<string, ObservedGuest['power']> = {
  1: 'on',
  2: 'on',
  3: 'on',
  4: 'on',
  5: 'off',
  6: 'off',
};

/** Guests of ours out of `virsh domstats --raw --state --interface`; other people's domains are left alone. */
export function readDomstats(text: string): ObservedGuest[] {
  return text
    .split(/^Domain: /m)
    .slice(1)
    .flatMap((part) => {
      const name = /^'(vm-[1-9]\d{0,15})'/.exec(part)?.[1];
      if (name === undefined) return [];
      const values = new Map(
        [...part.matchAll(/^\s+([a-z0-9.]+)=(.*)$/gm)].map((match) => [match[1]!, match[2]!]),
      );
      return [
        { name, power: powers[values.get('state.state') ?? ''] ?? 'unknown', interfaces: countersOf(values) },
      ];
    });
}

function countersOf(values: ReadonlyMap<string, string>): ObservedGuest['interfaces'] {
  const count = Number(values.get('net.count') ?? 0);
  const found: ObservedGuest['interfaces'] = [];
  for (let index = 0; index < count; index += 1) {
    const device = values.get(`net.${index}.name`);
    const received = values.get(`net.${index}.rx.bytes`);
    const sent = values.get(`net.${index}.tx.bytes`);
    if (device === undefined || received === undefined || sent === undefined) continue;
    // Public NICs have the device that `deviceOf` names; libvirt names the others.
    const isPublic = device.startsWith('svc');
    found.push({ device, isPublic, receivedBytes: Number(received), sentBytes: Number(sent) });
  }
  return found;
}
