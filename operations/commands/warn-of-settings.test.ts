import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { hasCode } from '#common/errors/index.ts';
import { createReporter } from '#common/reporter/index.ts';
import { readOperationsSettings, requirePaymentGateway } from '../config.ts';
import { warnOfSettings } from './serve.ts';

test('what is dangerous on the internet is said at the start, and nothing else', () => {
  const told = (environment: Record<string, string>) => {
    const lines: string[] = [];
    const reporter = createReporter({ program: 'test', write: (line) => lines.push(line) });
    warnOfSettings(readOperationsSettings(environment), reporter);
    return lines.join('\n').match(/setting=\S+/g) ?? [];
  };
  const stripe = { SVC_PAYMENT_GATEWAY: 'stripe', SVC_STRIPE_SECRET_KEY: 'sk_live_x' };
  const https = {
    SVC_OPERATIONS_PUBLIC_URL: 'https://my.example.com',
    SVC_SMTP_URL: 'smtps://mail.example.com',
  };
  assert.deepEqual(told({ SVC_PAYMENT_GATEWAY: 'test' }), [
    'setting=SVC_PAYMENT_GATEWAY',
    'setting=SVC_SMTP_URL',
  ]);
  assert.deepEqual(told({ ...stripe, ...https }), ['setting=SVC_OPERATIONS_TRUSTED_PROXIES']);
  assert.deepEqual(told({ ...stripe, ...https, SVC_OPERATIONS_TRUSTED_PROXIES: '127.0.0.1' }), []);
  assert.deepEqual(told({ ...https, SVC_DEMO_WORLD: '1' }), []);
  const notices = {
    ...stripe,
    ...https,
    SVC_OPERATIONS_TRUSTED_PROXIES: '127.0.0.1',
    SVC_OPERATIONS_NOTICE_SECRET: 'x',
  };
  const monitor = (SVC_OPERATIONS_NOTICE_URL: string, more = {}) =>
    told({ ...notices, SVC_OPERATIONS_NOTICE_URL, ...more });
  assert.deepEqual(monitor('https://monitor.example'), []);
  assert.deepEqual(monitor('http://127.0.0.1:8090'), []);
  assert.deepEqual(monitor('http://10.0.0.1:8090'), ['setting=SVC_OPERATIONS_NOTICE_URL']);
  assert.deepEqual(monitor('http://10.0.0.1:8090', { SVC_ALLOW_INSECURE_HTTP: '1' }), [
    'setting=SVC_ALLOW_INSECURE_HTTP',
  ]);
});

test('serve does not start without a choice of payment gateway, and names the setting', () => {
  const choose = (environment: Record<string, string>) =>
    requirePaymentGateway(readOperationsSettings(environment));
  assert.throws(
    () => choose({}),
    (error) => hasCode(error, 'config.invalid') && /SVC_PAYMENT_GATEWAY/.test(String(error)),
  );
  assert.throws(() => choose({ SVC_PAYMENT_GATEWAY: '' }), /SVC_PAYMENT_GATEWAY is not set/);
  assert.throws(() => choose({ SVC_PAYMENT_GATEWAY: 'stripe' }), /needs SVC_STRIPE_SECRET_KEY/);
  assert.equal(choose({ SVC_PAYMENT_GATEWAY: 'test' }), 'test');
  assert.equal(choose({ SVC_DEMO_WORLD: '1' }), 'test', 'the demo world moves no money');
  const { SVC_PAYMENT_GATEWAY: _, ...environment } = process.env;
  const env = { ...environment, SVC_OPERATIONS_PORT: '0', SVC_DATA_DIR: '/nonexistent' };
  const served = spawnSync(process.execPath, ['svc.ts', 'operations', 'serve'], { env, encoding: 'utf8' });
  assert.equal(served.status, 1);
  assert.match(served.stderr, /SVC_PAYMENT_GATEWAY is not set\. Set it to stripe/);
});
