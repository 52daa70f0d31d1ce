import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isPrivateTransport, requirePrivateTransport, staysOnMachine } from './index.ts';

test('secrets travel over https, and over http within the machine alone', () => {
  for (const url of [
    'https://monitor.example',
    'HTTPS://192.0.2.1:8090/x',
    'http://127.0.0.1:8090',
    'http://127.9.9.9',
    'http://2130706433',
    'http://localhost:8090',
    'http://LOCALHOST',
    'http://[::1]:8090',
    'http://[0:0:0:0:0:0:0:1]',
  ])
    assert.equal(isPrivateTransport(url), true, url);
  for (const url of [
    'http://monitor.example',
    'http://10.0.0.1:8090',
    'http://127.0.0.1.example.com',
    'http://localhost.example.com',
    'http://0.0.0.0',
    'http://[::]',
    'http://[::ffff:10.0.0.1]',
    'ftp://127.0.0.1',
    'ws://127.0.0.1',
    '127.0.0.1',
    '',
  ])
    assert.equal(isPrivateTransport(url), false, url);
});

test('only http and https to the loopback stay on the machine', () => {
  for (const url of ['http://127.0.0.1:8090/x', 'https://localhost', 'http://[::1]:1'])
    assert.equal(staysOnMachine(url), true, url);
  for (const url of [
    'https://services.nvd.nist.gov/rest/json/cves/2.0',
    'http://127.0.0.1.example.com',
    'http://0.0.0.0',
    'ftp://127.0.0.1',
    '',
  ])
    assert.equal(staysOnMachine(url), false, url);
});

test('the refusal names the URL and says what to do; the setting lifts it', () => {
  const options = { isAllowed: false, advice: 'Use https.' };
  assert.throws(() => requirePrivateTransport('http://10.0.0.1', options), {
    code: 'transport.insecure',
    message: 'http://10.0.0.1 is not encrypted, so secrets are not sent to it. Use https.',
  });
  requirePrivateTransport('http://10.0.0.1', { ...options, isAllowed: true });
  requirePrivateTransport('https://10.0.0.1', options);
});
