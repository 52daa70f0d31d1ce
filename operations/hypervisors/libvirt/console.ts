/**
 * The consoles of a libvirt guest: its screen by QEMU's VNC server, which listens on a socket of the node's file system and on no port, and
 * its serial port by `virsh console`. A node that is reached by ssh forwards the socket as `virsh` does, by netcat.
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
  await greeted(stream, (head) => head);
  return stream;
}

/**
 * Resolves when the console has greeted. `rest` says what of its first bytes is for the reader; null: the greeting is not complete.
 */
async function greeted(stream: Duplex, rest: (head: Buffer) => Buffer | null): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    let head = Buffer.alloc(0);
    const fail = (error?: Error | null) => {
      const said = head
        .toString('latin1')
        .replaceAll(/[^ -~]+/g, ' ')
        .trim()
        .slice(-300);
      const why = [error?.message, said].filter(Boolean).join(': ') || 'closed without a word';
      reject(new CodedError('hypervisor.failed', `console: ${why}`, {}, error));
    };
    const timer = setTimeout(() => stream.destroy(new Error('no greeting in time')), greetingMs);
    stream.on('readable', function read() {
      const piece = stream.read() as Buffer | null;
      // Also said of the end.
      if (piece === null) return;
      head = Buffer.concat([head, piece]);
      const left = rest(head);
      if (left === null) return;
      clearTimeout(timer);
      stream.off('readable', read);
      if (left.length > 0) stream.unshift(left);
      resolve();
    });
    stream.once('error', fail).once('close', () => {
      clearTimeout(timer);
      fail();
    });
  });
}

/**
 * The serial port of a guest; who opens it ends the console of who has it. Resolves when virsh has it.
 *
 * virsh needs a terminal, which `script` gives it. What a customer types goes to the guest as it is, but for Ctrl+], which ends the console.
 */
export async function openSerial(call: Virsh, uri: string, name: string): Promise<Duplex> {
  if (!/<console type='pty' tty='/.test(await readXml(call, name)))
    throw refused(`The guest ${name} does not run.`);
  const command = 'exec virsh -c "$SVC_URI" console "$SVC_GUEST" --force';
  const env = { ...process.env, SHELL: '/bin/sh', LC_ALL: 'C', SVC_URI: uri, SVC_GUEST: name };
  // A killed operations would leave both there.
  const args = ['--pdeathsig', 'KILL', 'script', '-qec', command, '/dev/null'];
  const stream = streamOf('setpriv', args, env);
  await greeted(stream, (head) => {
    const greeting = /^Escape character is [^\n]*\n/m.exec(head.toString('latin1'));
    return greeting && head.subarray(greeting.index + greeting[0].length);
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
  return streamOf('ssh', args);
}

/** What a program says and takes. */
function streamOf(program: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): Duplex {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], env });
  // Not Duplex.from: it ends with its own error before the program has said why.
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
  child.once('close', (code) =>
    stream.destroy(code ? new Error([program, said.trim()].filter(Boolean).join(': ')) : undefined),
  );
  return stream;
}

const refused = (message: string) => new CodedError('hypervisor.refused', message);
