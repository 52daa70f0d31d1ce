/**
 * One language in all explorers: the same text is the same filter in the monitor's console, the operators' console, the portal and a
 * server's Traffic tab, or the box says that it has no such filter.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { queryBox } from '#monitor/explorer/index.ts';
import { customerBox, staffBox } from '#operations/protect/index.ts';
import { serverBox } from '#operations/surfaces/portal/traffic/server-explorer.ts';
import { parseFilters, printFilters } from '#service-kit/explorer/index.ts';

const boxes = { monitor: queryBox, console: staffBox, portal: customerBox, server: serverBox };
type Place = keyof typeof boxes;
const all: Place[] = ['monitor', 'console', 'portal', 'server'];
/** Where servers are chosen. */
const ofMany: Place[] = ['monitor', 'console', 'portal'];
const monitor: Place[] = ['monitor'];
const console_: Place[] = ['console'];

/** What is typed, what it is in one spelling, and where it is known. */
const texts: readonly [text: string, meaning: string, places: readonly Place[]][] = [
  ['', '', all],
  ['app:github.com', 'app:github.com', all],
  ['application:github.com', 'app:github.com', all],
  ['APP:GitHub', 'app:GitHub', all],
  ['app:a,b app:c', 'app:a,b,c', all],
  ['app:a -app:b', 'app:a -app:b', all],
  ['app:"two words"', 'app:"two words"', all],
  ['app:"say \\"hi\\""', 'app:"say \\"hi\\""', all],
  ['app:"a,b"', 'app:"a,b"', all],
  ['app:2001:db8::1', 'app:2001:db8::1', all],
  ['app:a app:a', 'app:a', all],
  ['port:443', 'port:443', all],
  ['port:443,80', 'port:443,80', all],
  ['-port:22', '-port:22', all],
  ['port:udp/53', 'port:udp/53', all],
  ['port:UDP/53', 'port:udp/53', all],
  ['port:17/53', 'port:udp/53', all],
  ['port:none', 'port:none', all],
  ['port:0', 'port:0', all],
  ['transport:tcp', 'transport:tcp', all],
  ['transport:TCP', 'transport:tcp', all],
  ['proto:6', 'transport:tcp', all],
  ['protocol:gre', 'transport:gre', all],
  ['transport:99', 'transport:ip-99', all],
  ['transport:ip-99', 'transport:ip-99', all],
  ['direction:in', 'direction:in', all],
  ['direction:OUT', 'direction:out', all],
  ['-direction:in', '-direction:in', all],
  ['port:443 direction:in', 'port:443 direction:in', all],
  ['direction:in app:a', 'app:a direction:in', all],
  ['direction:inbound', 'direction:inbound', monitor],
  ['direction:transit', 'direction:transit', monitor],
  ['direction:in direction:outbound', 'direction:in direction:outbound', monitor],
  ['server:web-1', 'server:web-1', ofMany],
  ['vm:web-1', 'server:web-1', ofMany],
  ['server:42', 'server:42', ofMany],
  ['server:7/42', 'server:7/42', ofMany],
  ['-server:"web 1"', '-server:"web 1"', ofMany],
  ['192.0.2.10', 'address:192.0.2.10', all],
  ['-192.0.2.10', '-address:192.0.2.10', all],
  ['192.0.2.0/24', 'address:192.0.2.0/24', all],
  ['2001:DB8:0::1', 'address:2001:db8::1', all],
  ['2001:db8::/32', 'address:2001:db8::/32', all],
  ['address:192.0.2.10,192.0.2.11', 'address:192.0.2.10,192.0.2.11', all],
  ['ip:192.0.2.10', 'address:192.0.2.10', all],
  ['host:192.0.2.10', 'address:192.0.2.10', all],
  ['address:10.0.0.9%br0', 'address:10.0.0.9%br0', monitor],
  ['customer:42', 'customer:42', ['monitor', 'console']],
  ['customer:Acme', 'customer:Acme', ['monitor', 'console']],
  ['peer:198.51.100.0/24', 'peer:198.51.100.0/24', monitor],
  ['country:de', 'country:DE', monitor],
  ['asn:64496', 'as:AS64496', monitor],
  ['device:02:00:00:00:00:0a', 'device:02:00:00:00:00:0a', monitor],
  ['sensor:hv-1', 'sensor:hv-1', monitor],
  ['scope:uplink', 'scope:uplink', monitor],
  ['cluster:north', 'cluster:north', console_],
];

/** What no box reads, and what all that know the dimension say. */
const faulty: readonly [text: string, message: RegExp][] = [
  ['nonsense', /^Write what it is, such as app:nonsense or server:nonsense\.$/],
  ['colour:red', /^There is no filter colour\. Use .*app.*\.$/],
  ['app:', /^Write a value after app:\.$/],
  ['port:abc', /^abc is no port\. /],
  ['port:70000', /^70000 is no port\. /],
  ['port:wan/53', /^wan\/53 is no port\. /],
  ['transport:carrier-pigeon', /^carrier-pigeon is no transport\. /],
  ['direction:up', /^up is no direction\. Use in, out/],
  ['address:192.0.2.1/24', /^192\.0\.2\.1\/24 is no address and no network\. /],
];

const notHere = /is not a filter of this page|not a filter of this page/;

test('60 texts are the same filters in all four boxes, or the box says that it has no such filter', () => {
  assert.ok(texts.length + faulty.length >= 60);
  for (const [text, meaning, places] of texts)
    for (const place of all) {
      const { filters, faults } = parseFilters(text, boxes[place]);
      const told = faults.map(({ message }) => message).join(' ');
      if (places.includes(place))
        assert.deepEqual([printFilters(filters), told], [meaning, ''], `${place} ${text}`);
      else assert.match(told, notHere, `${place} ${text}`);
    }
});

test('what can not be read is said in the same words in all four boxes', () => {
  for (const [text, message] of faulty)
    for (const place of all) {
      const { filters, faults } = parseFilters(text, boxes[place]);
      assert.deepEqual([filters, faults.map((one) => one.text)], [[], [text]], `${place} ${text}`);
      assert.match(faults[0]!.message, message, `${place} ${text}`);
    }
});

test('a node is the sensor on it where nodes are not known', () => {
  const meanings = all.map((place) => printFilters(parseFilters('node:hv-1', boxes[place]).filters));
  assert.deepEqual(meanings, ['sensor:hv-1', 'node:hv-1', '', '']);
});
