import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  booleanSetting,
  databaseUrlSetting,
  decimalSetting,
  findUnknownNames,
  hostListSetting,
  httpUrlSetting,
  integerSetting,
  prefixListSetting,
  readSettings,
} from './index.ts';

const settings = {
  port: integerSetting('SVC_X_PORT', 8080, { min: 1, max: 65535 }, 'Port.'),
  url: databaseUrlSetting('SVC_X_DATABASE_URL', 'Database.'),
  isOn: booleanSetting('SVC_X_ON', true, 'On.'),
  base: httpUrlSetting('SVC_X_BASE', null, 'Base.'),
};

test('unset and empty settings take their defaults', () => {
  assert.deepEqual(readSettings(settings, { SVC_X_PORT: '' }), {
    port: 8080,
    url: null,
    isOn: true,
    base: null,
  });
});

test('all faults are said at once, each with what to do, and a database password is never repeated', () => {
  const environment = {
    SVC_X_PORT: '80a',
    SVC_X_DATABASE_URL: 'mysql://me:correct-horse-battery-staple@h/db',
    SVC_X_ON: 'yes',
    SVC_X_BASE: 'ftp://x',
  };
  assert.throws(
    () => readSettings(settings, environment),
    (error: Error) => {
      for (const name of Object.keys(environment)) assert.match(error.message, new RegExp(name));
      assert.doesNotMatch(error.message, /correct-horse-battery-staple/);
      return true;
    },
  );
});

test('a base URL loses its trailing slash', () => {
  assert.equal(
    readSettings(settings, { SVC_X_BASE: 'http://127.0.0.1:8080/' }).base,
    'http://127.0.0.1:8080',
  );
});

test('a decimal is read as whole steps, exactly, and nothing finer is taken', () => {
  const rate = decimalSetting('SVC_X_RATE', '1.00', { places: 4, max: 10 }, 'A rate.');
  const read = (text: string) => readSettings({ rate }, { SVC_X_RATE: text }).rate;
  assert.deepEqual(['', '0', '1.5', '0.0001', '10'].map(read), [10_000, 0, 15_000, 1, 100_000]);
  for (const text of ['1.00001', '-1', '10.1', '1e1', ' 1', '.5']) assert.throws(() => read(text), text);
});

test('a list of prefixes is read strictly, and empty when unset', () => {
  const list = prefixListSetting('SVC_X_LIST', 'A list.');
  const read = (text: string) => readSettings({ list }, { SVC_X_LIST: text }).list;
  assert.deepEqual(read(''), []);
  assert.deepEqual(read('127.0.0.1, 10.0.0.0/8,2001:db8::/32'), ['127.0.0.1', '10.0.0.0/8', '2001:db8::/32']);
  for (const text of ['10.0.0.1/8', 'proxy.example.com', '127.0.0.1;::1', '*'])
    assert.throws(() => read(text), text);
});

test('a list of host names is read in lower case and strictly, and empty when unset', () => {
  const list = hostListSetting('SVC_X_HOSTS', 'A list.');
  const read = (text: string) => readSettings({ list }, { SVC_X_HOSTS: text }).list;
  assert.deepEqual(read(''), []);
  assert.deepEqual(read('My.Example.com, monitor_web,10.0.0.7'), [
    'my.example.com',
    'monitor_web',
    '10.0.0.7',
  ]);
  for (const text of ['https://my.example.com', 'my.example.com:443', '*.example.com', 'a b', 'a/b'])
    assert.throws(() => read(text), text);
});

test('NAME_FILE names a file with the value, which appears in no error; both at once, or an unreadable file, is a fault', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-config-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'url');
  const read = (environment: Record<string, string>) => readSettings({ url: settings.url }, environment).url;
  writeFileSync(file, 'postgres://me:correct-horse-battery-staple@h/db\n');
  assert.equal(read({ SVC_X_DATABASE_URL_FILE: file }), 'postgres://me:correct-horse-battery-staple@h/db');
  assert.equal(
    read({ SVC_X_DATABASE_URL_FILE: file, SVC_X_DATABASE_URL: '' }),
    'postgres://me:correct-horse-battery-staple@h/db',
  );
  assert.equal(read({ SVC_X_DATABASE_URL_FILE: '' }), null);
  assert.throws(
    () => read({ SVC_X_DATABASE_URL_FILE: file, SVC_X_DATABASE_URL: 'postgres://h/db' }),
    /SVC_X_DATABASE_URL and SVC_X_DATABASE_URL_FILE are both set/,
  );
  assert.throws(
    () => read({ SVC_X_DATABASE_URL_FILE: join(folder, 'none') }),
    /SVC_X_DATABASE_URL can't be read from/,
  );
  writeFileSync(file, 'mysql://me:correct-horse-battery-staple@h/db');
  assert.throws(
    () => read({ SVC_X_DATABASE_URL_FILE: file }),
    (error: Error) =>
      /SVC_X_DATABASE_URL must be/.test(error.message) && !/correct-horse-battery-staple/.test(error.message),
  );
  writeFileSync(file, '');
  assert.equal(read({ SVC_X_DATABASE_URL_FILE: file }), null);
});

test('a name that is no setting is found: with the prefix of the program, or almost a setting; other programs have their own', () => {
  const environment = {
    SVC_X_PORT: '1',
    SVC_X_DATABASE_URL_FILE: '/run/url',
    SVC_X_DATABSE_URL: 'postgres://h/db',
    SVC_X_COLOUR: 'red',
    SVC_Y_COLOUR: 'red',
    SVC_X_OTHER: '1',
    PATH: '/bin',
  };
  assert.deepEqual(findUnknownNames(settings, environment, 'SVC_X_', ['SVC_X_OTHER']), [
    { name: 'SVC_X_DATABSE_URL', meant: 'SVC_X_DATABASE_URL' },
    { name: 'SVC_X_COLOUR', meant: null },
  ]);
});
