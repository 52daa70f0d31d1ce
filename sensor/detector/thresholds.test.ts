import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultThresholds, parseThresholds, ThresholdError } from './thresholds.ts';

test('NET-1.1: a threshold file changes what it names; null is not judged', () => {
  const found = parseThresholds('{"inbound": {"pps": 20, "udp_bps": null}}');
  assert.deepEqual(found, {
    inbound: { ...defaultThresholds.inbound, pps: 20, udp_bps: Number.POSITIVE_INFINITY },
    outbound: defaultThresholds.outbound,
  });
});

for (const [text, message] of [
  ['{', /not JSON. Write for example/],
  ['[]', /The file must be a JSON object/],
  ['{"inbuond": {}}', /no threshold "inbuond". Known: inbound, outbound/],
  ['{"inbound": 5}', /"inbound" must be a JSON object/],
  ['{"inbound": {"packets": 5}}', /no threshold "packets". Known: pps, bps/],
  ['{"inbound": {"pps": "5"}}', /"inbound.pps" must be a number of at least 1/],
  ['{"outbound": {"bps": 0}}', /"outbound.bps" must be a number of at least 1/],
  ['{"outbound": {"bps": 1e400}}', /"outbound.bps" must be a number/],
] as const)
  test(`NET-1.1: the threshold file ${text} is refused with what to write`, () => {
    assert.throws(
      () => parseThresholds(text),
      (error) => error instanceof ThresholdError && message.test(error.message),
    );
  });
