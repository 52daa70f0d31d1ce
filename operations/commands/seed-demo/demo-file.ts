import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { dirname } from 'node:path';

export interface Login {
  email: string;
  password: string;
}

/** What stands in `demo.json`. */
export interface DemoFile {
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
  /** Of customers' servers whose traffic is made up; absent: there are none. */
  simulated_cluster_id?: number;
}

/** The file of an earlier start; null when there is none or it can't be used, which makes a new one. */
export async function readDemoFile(file: string): Promise<DemoFile | null> {
  try {
    const content = JSON.parse(await readFile(file, 'utf8')) as DemoFile;
    return typeof content.full_key === 'string' && typeof content.tenant_id === 'number' ? content : null;
  } catch {
    return null;
  }
}

/** Written beside, flushed, then renamed, so a reader never sees half of the file. */
export async function writeDemoFile(file: string, content: DemoFile): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  const fresh = `${file}.new`;
  const handle = await open(fresh, 'w', 0o600);
  try {
    await handle.chmod(0o600);
    await handle.writeFile(`${JSON.stringify(content, null, 2)}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(fresh, file);
}
