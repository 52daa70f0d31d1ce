/**
 * Examples made of the schemas, so that they can't show a field that does not exist. Values of well-known names are
 * such as a customer would see; all others follow from their schema. A test validates every one.
 */
import { type Json, type ReferenceDocument, resolveSchema } from './document.ts';

/** What members of these names usually hold; used where the schema lets them. */
const values: Readonly<Record<string, readonly unknown[]>> = {
  id: [48_211],
  'plan.id': [3],
  'image.id': [14],
  'location.id': [1],
  server_id: [48_211],
  server_ids: [[48_211]],
  tenant_id: [12],
  billing_account_id: [12],
  order_id: [9_912],
  network_id: [31],
  organization_id: [4],
  action_id: [70_123],
  endpoint_id: [3],
  webhook_id: [3],
  delivery_id: [5_120],
  rule_id: [901],
  'ssh-key_id': [17],
  'ssh_key.id': [17],
  snapshot_id: [86],
  address_id: [54],
  'address.id': [54],
  key_id: ['k3v9x2m7q8w1z5t4'],
  requested_by_key: ['k3v9x2m7q8w1z5t4'],
  prefix: ['svc_k3v9'],
  name: ['web-1'],
  server_name: ['web-1'],
  hostname: ['web-1.example.net'],
  slug: ['kvm-1'],
  country: ['DE'],
  family: ['debian', 4],
  locked: [false],
  retryable: [true],
  status: ['running', 'active', 'success'],
  provisioning_state: ['ready'],
  power_state: ['running'],
  state: ['synced', 'attached', 'active', 'ready'],
  command: ['reboot'],
  action: ['reboot'],
  progress: [100],
  total: [1],
  limit: [50],
  page: [1],
  has_more: [false],
  member_count: [2],
  available_ips: [251],
  address: ['203.0.113.10'],
  ip: ['10.20.0.5'],
  network_ip: ['10.20.0.5'],
  gateway: ['203.0.113.1', '10.20.0.1'],
  cidr: ['10.20.0.0/24'],
  prefix_length: [24],
  mac_address: ['bc:24:11:0a:7d:e0'],
  reverse_dns: ['web-1.example.net'],
  description: ['Between the web servers and the database'],
  currency: ['USD'],
  price_hourly: ['0.0089'],
  price_monthly: ['6.00'],
  price_monthly_cap: ['6.00'],
  credit_balance: ['42.50'],
  amount: ['1.00'],
  vcpus: [2],
  memory_mb: [4_096],
  disk_gb: [80],
  port_mbit: [1_000],
  size_bytes: [2_147_483_648],
  root_password: ['only-in-this-one-answer'],
  period: ['2026-11'],
  month: ['2026-11'],
  date: ['2026-11-03'],
  percent: [80],
  env: ['prod'],
  href: ['/api/v2/servers/48211?tenant=12'],
  code: ['conflict'],
  reason: ['server_busy'],
  message: ['Another action of this server is running.'],
  request_id: ['req_01JD3Z6Q4T0V9N8K2M5B7C1XWE'],
  doc_url: ['/docs/api/#error-server_busy'],
  ports: ['443'],
  protocol: ['tcp'],
  direction: ['inbound'],
  sources: [['0.0.0.0/0', '::/0']],
  destinations: [[]],
  position: [1],
  ssh_keys: [
    ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIcvEZ6PfU56tmbpZIWoyu5t5wHpTWVHJabI5CqJAZxo you@example.net'],
  ],
  public_key: [
    'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIcvEZ6PfU56tmbpZIWoyu5t5wHpTWVHJabI5CqJAZxo you@example.net',
  ],
  url: ['https://hooks.example.com/events'],
  user_data: ['#cloud-config\n'],
};
/** Mostly null in real answers, so null in the example. */
const usuallyNull = new Set([
  'failure',
  'error',
  'iso',
  'current_action',
  'next_cursor',
  'code',
  'reason',
  'expires_at',
  'finished_at',
]);
/** Left out of example requests unless they are required: things one sets rarely, and ids that only the reader knows. */
const rarelySent =
  /^(tenant|snapshot|network_id|billing_cycle|dry_run|user_data|ssh_keys|hostname|public_ip|network_ip|timeout_s|on_timeout|tenant_ids|expires_at|address|force|rescue_image)$/;

type Schemas = Readonly<Record<string, Json>>;

/** What examples order, and the server is made of: entries of this installation's catalog, by the API's names. */
export type Offered = Readonly<Record<'plan' | 'image' | 'iso' | 'location', Json & { slug: string }>>;

/** Where nothing can be ordered yet. */
export const usuallyOffered: Offered = {
  plan: { slug: 'kvm-1', name: 'KVM 1' },
  image: { slug: 'debian-13', name: 'Debian 13' },
  iso: { slug: 'virtio-win', name: 'virtio-win' },
  location: { slug: 'fra', name: 'Frankfurt' },
};

/** Gives the schemas and the paths of the document these entries as their examples. */
export function nameOffered(
  { schemas, resources }: Pick<ReferenceDocument, 'schemas' | 'resources'>,
  offered: Offered,
): void {
  const exemplify = (schema: Json | undefined, entry: Json) => {
    for (const [name, member] of Object.entries((schema?.properties ?? {}) as Record<string, Json>))
      if (name in entry) member.example = entry[name];
  };
  for (const [kind, entry] of Object.entries(offered)) {
    for (const [title, schema] of Object.entries(schemas)) {
      const properties = (schema.properties ?? {}) as Record<string, Json>;
      const { [kind]: one, [`${kind}s`]: several } = properties;
      if (one?.['x-resource'] === 'catalog') one.example = entry.slug;
      exemplify(one, entry);
      exemplify(several?.items as Json | undefined, entry);
      if (title.toLowerCase() === kind) exemplify(schema, entry);
    }
    for (const { path, parameters } of resources.flatMap(({ operations }) => operations))
      if (path === `/api/v2/${kind}s/{id}`) parameters[0]!.schema.example = entry.slug;
  }
}

/** An answer as it might come. */
export function exampleAnswer(schema: Json, schemas: Schemas): unknown {
  return build(schema, '', schemas, 'answer');
}

/** A request as one might send it: what is required, and what one mostly sets. */
export function exampleRequest(schema: Json, schemas: Schemas): unknown {
  return build(schema, '', schemas, 'request');
}

/** A value for one parameter. */
export function exampleParameter(name: string, schema: Json, schemas: Schemas): unknown {
  return build(schema, name, schemas, 'request');
}

function build(node: Json, name: string, schemas: Schemas, side: 'answer' | 'request'): unknown {
  const schema = resolveSchema(node, schemas);
  if (schema.const !== undefined) return schema.const;
  const given = [schema.example, ...((schema.examples as unknown[] | undefined) ?? [])].find(
    (one) => one !== undefined,
  );
  if (given !== undefined) return given;
  const choices = (schema.anyOf ?? schema.oneOf) as Json[] | undefined;
  if (choices) {
    const filled = choices.filter((choice) => choice.type !== 'null');
    if (filled.length < choices.length && usuallyNull.has(name)) return null;
    const known = (values[name] ?? []).find((value) => filled.some((choice) => fits(value, choice)));
    return known ?? build(filled[0] ?? choices[0]!, name, schemas, side);
  }
  const known = (values[name] ?? []).find((value) => fits(value, schema));
  if (known !== undefined) return known;
  if (schema.enum) return (schema.enum as unknown[])[0];
  if (schema.default !== undefined) return schema.default;
  switch (schema.type) {
    case 'object':
      return buildObject(schema, name, schemas, side);
    case 'array':
      return [build((schema.items ?? {}) as Json, name.replace(/s$/, ''), schemas, side)];
    case 'integer':
    case 'number':
      return Math.max((schema.minimum as number | undefined) ?? 0, 0);
    case 'boolean':
      return true;
    case 'string':
      return textOf(schema, name);
    default:
      return null;
  }
}

function buildObject(schema: Json, name: string, schemas: Schemas, side: 'answer' | 'request'): unknown {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, Json>);
  if (properties.length === 0) return name === 'labels' ? { env: 'prod' } : {};
  const required = new Set((schema.required ?? []) as string[]);
  const isShown = (member: string) => side === 'answer' || required.has(member) || !rarelySent.test(member);
  return Object.fromEntries(
    properties
      .filter(([member]) => isShown(member))
      .map(([member, property]) => [
        member,
        build(property, `${name}.${member}` in values ? `${name}.${member}` : member, schemas, side),
      ]),
  );
}

/** True for a value that a schema of one type certainly takes. */
function fits(value: unknown, schema: Json): boolean {
  if (schema.enum) return (schema.enum as unknown[]).includes(value);
  if (schema.type === 'array') {
    const items = (schema.items ?? {}) as Json;
    const choices = (items.anyOf as Json[] | undefined) ?? [items];
    return Array.isArray(value) && value.every((one) => choices.some((choice) => fits(one, choice)));
  }
  if (schema.type === 'boolean') return typeof value === 'boolean';
  if (schema.type === 'integer' || schema.type === 'number') return typeof value === 'number';
  if (schema.type !== 'string' || typeof value !== 'string' || schema.format !== undefined) return false;
  return (
    (schema.pattern === undefined || new RegExp(schema.pattern as string, 'u').test(value)) &&
    value.length <= ((schema.maxLength as number | undefined) ?? Number.POSITIVE_INFINITY) &&
    value.length >= ((schema.minLength as number | undefined) ?? 0)
  );
}

function textOf(schema: Json, name: string): string {
  if (schema.format === 'date-time') return '2026-11-03T09:01:40Z';
  if (schema.format === 'date') return '2026-11-03';
  if (schema.format === 'uuid') return '0b0e8c1a-5d7f-4c57-9a3e-2f1d6b8c4e90';
  if (schema.pattern === '^-?\\d+\\.\\d{2,4}$') return '1.00';
  return name === '' ? 'text' : name.replaceAll('_', '-');
}
