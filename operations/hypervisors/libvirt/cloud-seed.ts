/**
 * The seed image from which cloud-init sets a guest up (NoCloud): its host name, its addresses by MAC, its root password
 * as a salted hash, its keys. What the customer gave as user data is the user data; ours is vendor data below it.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CodedError } from '#common/errors/index.ts';
import type { GuestDefinition } from '../guest.ts';
import { run } from './run-virsh.ts';

/** Writes the image into a folder of its own, passes its path on, and always removes the folder. */
export async function withSeedImage<T>(
  files: Record<string, string>,
  use: (path: string) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-seed-'));
  try {
    const paths: string[] = [];
    for (const [name, text] of Object.entries(files)) {
      paths.push(join(folder, name));
      await writeFile(paths.at(-1)!, text, { mode: 0o600 });
    }
    const image = join(folder, 'seed.iso');
    const args = ['-quiet', '-output', image, '-volid', 'cidata', '-joliet', '-rock', ...paths];
    const { code, err } = await run('genisoimage', args);
    if (code !== 0)
      throw new CodedError('hypervisor.failed', `genisoimage: ${err.trim().slice(0, 300) || 'failed'}`);
    return await use(image);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Root's password as a salted hash. */
export interface SeedPassword {
  hash: string;
  /** The number of the change that the next boot makes; null: only the first boot sets the password. */
  change: number | null;
}

/** The files of the image. JSON is YAML, so nothing that a customer chose needs quoting rules of its own. */
export function seedFiles(guest: GuestDefinition, password: SeedPassword | null): Record<string, string> {
  const config = {
    disable_root: false,
    ssh_pwauth: true,
    ...(password !== null && {
      chpasswd: { expire: false, users: [{ name: 'root', type: 'hash', password: password.hash }] },
    }),
    // cloud-init's schema refuses an empty list of keys.
    users: [
      {
        ...{ name: 'root', lock_passwd: false },
        ...(guest.sshKeys.length > 0 && { ssh_authorized_keys: guest.sshKeys }),
      },
    ],
    growpart: { mode: 'auto', devices: ['/'] },
  };
  const network = {
    version: 2,
    ethernets: {
      ...(guest.mac === null ? {} : { public0: publicNic(guest, guest.mac) }),
      ...Object.fromEntries(
        guest.privateInterfaces.map((nic) => [
          `private${nic.networkId}`,
          { match: { macaddress: nic.mac }, addresses: [`${nic.address}/${nic.prefixLength}`] },
        ]),
      ),
    },
  };
  return {
    'meta-data': `${JSON.stringify({ 'instance-id': guest.name, 'local-hostname': guest.hostname })}\n`,
    'user-data': guest.userData ?? '#cloud-config\n{}\n',
    'vendor-data': `#cloud-config-archive\n${JSON.stringify([
      { type: 'text/cloud-config', content: `#cloud-config\n${JSON.stringify(config)}` },
      ...(password === null || password.change === null
        ? []
        : [{ type: 'text/cloud-boothook', content: passwordHook(password.hash, password.change) }]),
    ])}\n`,
    'network-config': `${JSON.stringify(network)}\n`,
  };
}

/** cloud-init runs it at each boot, also of a guest that it has set up before; the disk remembers that it is done. */
function passwordHook(hash: string, change: number): string {
  const marker = '/var/lib/cloud/svc-root-password';
  return `#cloud-boothook
#!/bin/sh
[ x$(cat ${marker} 2>/dev/null) = x${change} ] && exit 0
echo 'root:${hash}' | chpasswd -e && echo ${change} > ${marker}
`;
}

function publicNic(guest: GuestDefinition, mac: string): object {
  return {
    match: { macaddress: mac },
    addresses: guest.addresses.map((one) => `${one.address}/${one.prefixLength}`),
    routes: guest.addresses.map((one) => ({
      to: one.address.includes(':') ? '::/0' : '0.0.0.0/0',
      via: one.gateway,
    })),
  };
}

/** SHA-512 crypt by openssl; the password goes in by standard input, where no list of processes shows it. */
export async function hashPassword(password: string): Promise<string> {
  const { code, out, err } = await run('openssl', ['passwd', '-6', '-stdin'], `${password}\n`);
  const hash = out.trim();
  if (code === 0 && hash.startsWith('$6$')) return hash;
  throw new CodedError('hypervisor.failed', `openssl passwd: ${err.trim().slice(0, 300) || 'failed'}`);
}
