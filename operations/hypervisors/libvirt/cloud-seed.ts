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
  guest: GuestDefinition,
  use: (path: string) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-seed-'));
  try {
    const files = seedFiles(guest, await hashPassword(guest.rootPassword));
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

/** The files of the image. JSON is YAML, so nothing that a customer chose needs quoting rules of its own. */
export function seedFiles(guest: GuestDefinition, passwordHash: string): Record<string, string> {
  const vendor = {
    disable_root: false,
    ssh_pwauth: true,
    chpasswd: { expire: false, users: [{ name: 'root', type: 'hash', password: passwordHash }] },
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
    'vendor-data': `#cloud-config\n${JSON.stringify(vendor)}\n`,
    'network-config': `${JSON.stringify(network)}\n`,
  };
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
