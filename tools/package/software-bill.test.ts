import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Ajv } from 'ajv';
import ajvFormats from 'ajv-formats';
import { makeBill } from './software-bill.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** What the schema of CycloneDX 1.6, with its list of SPDX identifiers, says against a bill. */
function faultsOf(bill: unknown): unknown[] {
  const manifest = fileURLToPath(import.meta.resolve('@cyclonedx/cyclonedx-library/package.json'));
  const schema = (name: string) =>
    JSON.parse(readFileSync(join(dirname(manifest), 'res/schema', `${name}.SNAPSHOT.schema.json`), 'utf8'));
  const ajv = new Ajv({
    strict: false,
    allErrors: true,
    formats: { 'iri-reference': true, 'idn-email': true },
  });
  ajvFormats.default(ajv);
  for (const name of ['spdx', 'jsf-0.82'])
    ajv.addSchema(schema(name), `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json`);
  ajv.validate(schema('bom-1.6'), bill);
  return ajv.errors ?? [];
}

test('a bill of materials is valid by the schema of CycloneDX 1.6', () => {
  const bill = makeBill({ root, name: 'svc', version: '0.1.0', epochSeconds: 0, hasNode: true });
  assert.deepEqual(faultsOf(bill), []);
  const [component] = bill.components;
  assert.notDeepEqual(faultsOf({ ...bill, components: [component, component] }), [], 'a component twice');
  const licenses = [{ license: { id: 'BSD-0-Clause' } }];
  assert.notDeepEqual(
    faultsOf({ ...bill, components: [{ ...component, licenses }] }),
    [],
    'no SPDX identifier',
  );
});

test('a bill says which version of a package another one loads', () => {
  const bill = makeBill({ root, name: 'svc', version: '0.1.0', epochSeconds: 0, hasNode: false });
  const refs = new Set(bill.components.map((one) => one['bom-ref']));
  assert.equal(refs.size, bill.components.length);
  const { packages: locked } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version: string; dev?: boolean; dependencies?: Record<string, string> }>;
  };
  let nested = 0;
  for (const [path, { version, dev }] of Object.entries(locked)) {
    const [, outer, inner] =
      /^node_modules\/((?:@[^/]+\/)?[^/]+)\/node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path) ?? [];
    const holder = locked[`node_modules/${outer}`];
    if (dev || !inner || !holder?.dependencies?.[inner]) continue;
    nested += 1;
    const used = bill.dependencies.find((one) => one.ref === `${outer}@${holder.version}`)!.dependsOn;
    assert.ok(used.includes(`${inner}@${version}`), `${outer} loads ${inner} ${version}`);
    assert.equal(used.filter((ref) => ref.startsWith(`${inner}@`)).length, 1, `${outer} loads one ${inner}`);
  }
  assert.ok(nested > 2, `${nested} nested packages`);
});
