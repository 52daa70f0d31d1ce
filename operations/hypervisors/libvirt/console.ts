/**
 * The console of a libvirt guest: QEMU's VNC server, which listens on a socket of the node's file system and on no port. A node
 * that is reached by ssh forwards it as `virsh` does, by netcat.
 */
import { spawn } from 'node:child_process';
import { connect } from 'node:net';
import { Duplex } from 'node:stream';
import { CodedError } from '#common/errors/index.ts';
import { readXml, type Virsh } from './run-virsh.ts';

const greetingMs = 20_000;

/** See `HypervisorDriver.openConsole`. Resolves when the VNC server has sent its greeting. */
export async function openVnc(call: Virsh, name: string, dial: (path: string) => Duplex): Promise<Duplex> {
  const xml = await readXml(call, name);
  const graphics = /<graphics type='vnc'[^>]*>/.exec(xml)?.[0];
  if (graphics === undefined)
    throw refused(
      `The guest ${name} was made without a console. Provision it again, or add one by virsh edit.`,
    );
  const path = / socket='(\/[\w./-]{1,200})'/.exec(graphics)?.[1];
  if (path === undefined) throw refused(`The guest ${name} does not run.`);
  const stream = dial(path);
  await new Promise<void>((resolve, reject) => {
    const fail = (error?: Error | null) =>
      reject(
        new CodedError(
          'hypervisor.failed',
          `console: ${error?.message ?? 'closed without a word'}`,
          {},
          error,
        ),
      );
    const timer = setTimeout(() => stream.destroy(new Error('no greeting in time')), greetingMs);
    stream.on('readable', function greeted() {
      // Also said of the end.
      if (stream.readableLength === 0) return;
      clearTimeout(timer);
      stream.off('readable', greeted);
      resolve();
    });
    stream.once('error', fail).once('close', () => {
      clearTimeout(timer);
      fail();
    });
  });
  return stream;
}

/** A connection to a socket of the node's file system. */
export function connectToNode(uri: string, path: string): Duplex {
  const { protocol, hostname, port, username, searchParams } = new URL(uri);
  if (protocol === 'qemu+unix:' || (protocol === 'qemu:' && hostname === '')) return connect(path);
  if (protocol !== 'qemu+ssh:')
    throw refused('Consoles need a node that is reached by ssh or by a local socket.');
  const option = (flag: string, value: string | null) => (value ? [flag, value] : []);
  const knownHosts = searchParams.get('known_hosts');
  const args = [
    ...['-T', '-o', 'BatchMode=yes'],
    ...option('-o', knownHosts && `UserKnownHostsFile=${knownHosts}`),
    ...option('-i', searchParams.get('keyfile')),
    ...option('-p', port),
    ...option('-l', decodeURIComponent(username)),
    ...['--', hostname.replace(/^\[|\]$/g, ''), `nc -U ${path}`],
  ];
  const child = spawn('ssh', args, { stdio: ['pipe', 'pipe', 'pipe'] });
  // Not Duplex.from: it ends with its own error before ssh has said why.
  const stream = new Duplex({
    read: () => void child.stdout.resume(),
    write: (piece, _encoding, done) => void child.stdin.write(piece, () => done()),
    destroy(error, done) {
      child.kill();
      done(error);
    },
  });
  let said = '';
  child.stdout.on('data', (piece: Buffer) => {
    if (!stream.push(piece)) child.stdout.pause();
  });
  child.stderr.on('data', (piece: Buffer) => {
    said = `${said}${piece}`.slice(0, 500);
  });
  child.stdin.on('error', () => {});
  child.once('error', (error) => stream.destroy(error));
  child.once('close', (code) => stream.destroy(code ? new Error(`ssh: ${said.trim()}`) : undefined));
  return stream;
}

const refused = (message: string) => new CodedError('hypervisor.refused', message);
