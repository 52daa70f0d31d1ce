import assert from 'node:assert/strict';
import { test } from 'node:test';
import { destinationFault, discoveryArguments, identificationArguments } from './nmap-arguments.ts';

const v4 = { address: '198.51.100.7', interfaceName: 'br0', sourceAddress: '198.51.100.1' };
const v6 = { address: '2001:db8::7', interfaceName: 'br0.12', sourceAddress: '2001:db8::1' };
const begin = (source: string, name: string) =>
  '-n -Pn -T4 --min-rtt-timeout 50ms --initial-rtt-timeout 100ms --max-rtt-timeout 500ms --max-retries 1 ' +
  `--max-parallelism 256 --max-rate 7800 --min-parallelism 32 -S ${source} -e ${name} --privileged --noninteractive -v ` +
  '--stats-every 5s --no-stylesheet -oX /dev/fd/3';

test('NET-2.7.5, NET-2.7.6, NET-2.7.7: the arguments of every phase are these and no others', () => {
  const first = begin('198.51.100.1', 'br0');
  const shown = (words: string[]) => words.join(' ');
  assert.equal(
    shown(discoveryArguments(v4, 'common', 'tcp')),
    `${first} -sS --defeat-rst-ratelimit --top-ports 100 198.51.100.7`,
  );
  assert.equal(
    shown(discoveryArguments(v4, 'full', 'udp')),
    `${first} -sU --defeat-icmp-ratelimit -p 1-65535 198.51.100.7`,
  );
  assert.equal(
    shown(identificationArguments(v4, 'tcp', [22, 443])),
    `${first} -sS --defeat-rst-ratelimit -sV --version-intensity 9 -p T:22,443 198.51.100.7`,
  );
  assert.equal(
    shown(identificationArguments(v6, 'udp', [53])),
    `${begin('2001:db8::1', 'br0.12')} -6 -sU --defeat-icmp-ratelimit -sV --version-intensity 9 -p U:53 2001:db8::7`,
  );
});

test('NET-2.7.8: what is not one address, from a source of its family and by one interface, never becomes an argument', () => {
  assert.equal(destinationFault(v4), null);
  assert.equal(destinationFault(v6), null);
  const addresses = [
    ...['', '-oN', '--script=vuln', '198.51.100.0/24', '198.51.100.7-9', '198.51.100.7 -A', '198.51.100.07'],
    ...['198.51.100.*', 'example.org', '198.51.100.7\n', '2001:DB8::7', '2001:db8::7%br0', '-6', '0.0.0.0'],
    ...['224.0.0.1', '255.255.255.255', '::', 'ff02::1'],
  ];
  for (const address of addresses) {
    for (const given of [v4, v6]) assert.notEqual(destinationFault({ ...given, address }), null, address);
    assert.throws(() => discoveryArguments({ ...v4, address }, 'full', 'tcp'), address);
  }
  for (const sourceAddress of ['', '-S', '2001:db8::1', '198.51.100.1 --script=x'])
    assert.notEqual(destinationFault({ ...v4, sourceAddress }), null, sourceAddress);
  for (const interfaceName of ['', '-e', '--iL', 'br0 -A', 'a/b', 'sixteen-letters-'])
    assert.notEqual(destinationFault({ ...v4, interfaceName }), null, interfaceName);
  for (const port of [0, 65_536, 1.5, Number.NaN])
    assert.throws(() => identificationArguments(v4, 'tcp', [port]));
  assert.throws(() => identificationArguments(v4, 'tcp', []));
});
