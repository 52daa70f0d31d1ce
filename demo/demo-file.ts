/** `demo.json`: where scripts that try the system start from. Written by rename, readable by its owner alone. */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { keyText } from '#contracts/sign-on/index.ts';

export interface Login {
  email: string;
  password: string;
}

/** Operations' part of the demo world, as `operations serve` writes it. */
export interface OperationsPart {
  customer: Login;
  customer_member: Login;
  operator: Login;
  support: Login;
  /** Ids of both; absent in files of earlier versions. */
  operator_id?: number;
  support_id?: number;
  full_key: string;
  read_key: string;
  tenant_id: number;
  other_customer: Login;
  other_full_key: string;
  other_tenant_id: number;
  admin_token: string;
  cluster_id: number;
  /** Of customers' servers at the simulated site; absent: there are none. */
  simulated_cluster_id?: number;
}

/** The monitor's part, as `monitor serve` writes it. */
export interface MonitorPart {
  monitor_operator: Login;
  monitor_viewer: Login;
  site_id: number;
  enrolment_token: string;
  /** Null or, in files of earlier versions, absent: there is none. */
  simulated_site_id?: number | null;
  /** Enrolment tokens of simulated hypervisors that had none, by node. */
  simulated_tokens: Record<string, string>;
}

export function readPart<T>(dataDir: string, program: string): T | null {
  try {
    return JSON.parse(readFileSync(join(dataDir, program, 'demo.json'), 'utf8')) as T;
  } catch {
    return null;
  }
}

/** Without `demo.json` the keys in it are lost: forgetting operations' part makes it mint new ones and revoke those. */
export function forgetLostKeys(dataDir: string): void {
  if (!existsSync(join(dataDir, 'demo.json')))
    rmSync(join(dataDir, 'operations', 'demo.json'), { force: true });
}

export function writeDemoFile(
  dataDir: string,
  urls: { operations_url: string; monitor_url: string },
  operations: OperationsPart,
  monitor: MonitorPart,
): string {
  const { admin_token: _token, cluster_id: _cluster, operator_id: _operator, ...others } = operations;
  const { support_id: _support, simulated_cluster_id: _simulated, ...shown } = others;
  const { monitor_operator, monitor_viewer } = monitor;
  const file = join(dataDir, 'demo.json');
  writeByRename(file, { ...urls, ...shown, monitor_operator, monitor_viewer });
  return file;
}

/** The secret that both programs sign and check notices with, made once. */
export function noticeSecret(dataDir: string): string {
  const file = join(dataDir, 'demo', 'notice-secret.json');
  try {
    return (JSON.parse(readFileSync(file, 'utf8')) as { secret: string }).secret;
  } catch {
    const secret = randomBytes(32).toString('base64url');
    mkdirSync(join(dataDir, 'demo'), { recursive: true });
    writeByRename(file, { secret });
    return secret;
  }
}

/** Keys by which the two consoles sign operators in at each other, made once; PKCS #8 in base64, and as consoles show them. */
export interface SignOnKeys {
  operations: { key: string; public_key: string };
  monitor: { key: string; public_key: string };
}

export function signOnKeys(dataDir: string): SignOnKeys {
  const file = join(dataDir, 'demo', 'sign-on-keys.json');
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as SignOnKeys;
  } catch {
    const keys = { operations: makeKey(), monitor: makeKey() };
    mkdirSync(join(dataDir, 'demo'), { recursive: true });
    writeByRename(file, keys);
    return keys;
  }
}

function makeKey() {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  return {
    key: privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64'),
    public_key: keyText(publicKey),
  };
}

function writeByRename(file: string, value: object): void {
  writeFileSync(`${file}.new`, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}
