import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { checkBoundaries } from './index.ts';
import { rules } from './rules.ts';

/** A small tree that breaks no rule. */
const clean: Record<string, string> = {
  'common/clock/index.ts': `import { x } from 'node:os'; export const a = x;`,
  'contracts/admin-api/schemas.ts': `import { Type } from 'typebox'; export const b = Type;`,
  'operations/main.ts': `import { p } from './surfaces/portal/index.ts'; export const m = p;`,
  'operations/servers/index.ts': `export { s } from './store.ts';`,
  'operations/servers/store.ts': `import { sql } from 'kysely'; export const s = sql\`select 1 from servers\`;`,
  'operations/surfaces/portal/index.ts': `import { s } from '#operations/servers/index.ts'; export const p = s;`,
  'sensor/capture/index.ts': `import { r } from '#common/bytes/index.ts'; export const c = r;`,
  'common/bytes/index.ts': `export const r = 1;`,
};

/** Rule → one offender planted beside the clean tree. */
const offenders: Record<string, Record<string, string>> = {
  'a program imports no other program': {
    'monitor/sites/index.ts': `import { s } from '#operations/servers/index.ts'; export const x = s;`,
  },
  'a feature reaches a sibling only through its index.ts': {
    'operations/billing/charge.ts': `import { s } from '../servers/store.ts'; export const x = s;`,
  },
  'a feature imports no surface, command or main file': {
    'operations/billing/charge.ts': `import { p } from '#operations/surfaces/portal/index.ts'; export const x = p;`,
  },
  'a surface imports no other surface': {
    'operations/surfaces/console/index.ts': `import { p } from '../portal/index.ts'; export const x = p;`,
  },
  'a surface reaches a feature only through its index.ts': {
    'operations/surfaces/console/index.ts': `import { s } from '#operations/servers/store.ts'; export const x = s;`,
  },
  'SQL stands only in store files and migrations': {
    'operations/billing/charge.ts': `export const x = (n: string) => \`update accounts set name = \${n}\`;`,
  },
  'the sensor imports only common and contracts': {
    'sensor/spool/index.ts': `import { d } from '#service-kit/postgres/index.ts'; export const x = d;`,
  },
  'sensor/capture imports common/bytes only': {
    'sensor/capture/names.ts': `import { parse } from 'tldts'; export const x = parse;`,
  },
  'common, contracts and service-kit import no program': {
    'service-kit/http/index.ts': `export { s } from '#operations/servers/index.ts';`,
  },
  'common imports nothing but itself and Node': {
    'common/ip/index.ts': `import ip from 'ipaddr.js'; export const x = ip;`,
  },
  'contracts import only common and schema libraries': {
    'contracts/admin-api/client.ts': `import Fastify from 'fastify'; export const x = Fastify;`,
  },
  'no program imports lab, demo, tools or system-tests': {
    'operations/hypervisors/index.ts': `const x = await import('#lab/index.ts'); export { x };`,
  },
  'no program imports what is made for tests': {
    'service-kit/sessions/testing/cheap-passwords.ts': `export const c = 1;`,
    'operations/servers/cheap.ts': `import '#service-kit/sessions/testing/cheap-passwords.ts'; export const x = 1;`,
  },
  'clients import nothing but themselves': {
    'clients/typescript/index.ts': `import { b } from '#contracts/admin-api/schemas.ts'; export const x = b;`,
  },
  'lab and demo know the programs from outside only': {
    'lab/index.ts': `import { m } from '#operations/main.ts'; export const x = m;`,
  },
  'features form no cycle': {
    'operations/billing/index.ts': `import { s } from '#operations/orders/index.ts'; export const x = s;`,
    'operations/orders/index.ts': `import { x } from '#operations/billing/index.ts'; export const s = x;`,
  },
};

function checkTree(files: Record<string, string>, modulesMin = 1) {
  const root = mkdtempSync(join(tmpdir(), 'svc-boundaries-'));
  try {
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(dirname(join(root, file)), { recursive: true });
      writeFileSync(join(root, file), text);
    }
    return checkBoundaries(root, Object.keys(files), modulesMin);
  } finally {
    rmSync(root, { recursive: true });
  }
}

test('a tree that follows the law has no offence', () => {
  assert.deepEqual(checkTree(clean), []);
});

test('every rule has a planted offender here', () => {
  assert.deepEqual(
    Object.keys(offenders).sort(),
    [...rules.map((rule) => rule.name), 'features form no cycle'].sort(),
  );
});

for (const [rule, planted] of Object.entries(offenders)) {
  test(`the planted offender is caught: ${rule}`, () => {
    const offences = checkTree({ ...clean, ...planted });
    assert.ok(
      offences.some((offence) => offence.rule === rule && offence.file in planted) ||
        offences.some((offence) => offence.rule === rule && rule === 'features form no cycle'),
      JSON.stringify(offences),
    );
  });
}

test('a check that reads too few modules fails instead of passing', () => {
  assert.throws(() => checkTree({}, 1), /only 0 modules/);
  assert.throws(() => checkTree(clean, 1000), /the check is broken/);
});
