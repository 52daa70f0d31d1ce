import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createReporter } from '#common/reporter/index.ts';
import { readOperationsSettings } from '../config.ts';
import { warnOfSettings } from './warn-of-settings.ts';

test('what is dangerous on the internet is said at the start, and nothing else', () => {
  const told = (environment: Record<string, string>) => {
    const lines: string[] = [];
    const reporter = createReporter({ program: 'test', write: (line) => lines.push(line) });
    warnOfSettings(readOperationsSettings(environment), reporter);
    return lines.join('\n').match(/setting=\S+/g) ?? [];
  };
  const stripe = { SVC_PAYMENT_GATEWAY: 'stripe', SVC_STRIPE_SECRET_KEY: 'sk_live_x' };
  const https = { SVC_OPERATIONS_PUBLIC_URL: 'https://my.example.com' };
  assert.deepEqual(told({}), ['setting=SVC_PAYMENT_GATEWAY']);
  assert.deepEqual(told({ ...stripe, ...https }), ['setting=SVC_OPERATIONS_TRUSTED_PROXIES']);
  assert.deepEqual(told({ ...stripe, ...https, SVC_OPERATIONS_TRUSTED_PROXIES: '127.0.0.1' }), []);
  assert.deepEqual(told({ ...https, SVC_DEMO_WORLD: '1' }), []);
});
