/** `demo.json`: where scripts that try the system start from. Written by rename, readable by its owner alone. */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

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
  full_key: string;
  read_key: string;
  tenant_id: number;
  other_customer: Login;
  other_full_key: string;
  other_tenant_id: number;
  admin_token: string;
  cluster_id: number;
}

/** The monitor's part, as `monitor serve` writes it. */
export interface MonitorPart {
  monitor_operator: Login;
  monitor_viewer: Login;
  site_id: number;
  enrolment_token: string;
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
  const { admin_token: _token, cluster_id: _cluster, ...shown } = operations;
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

function writeByRename(file: string, value: object): void {
  writeFileSync(`${file}.new`, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}
