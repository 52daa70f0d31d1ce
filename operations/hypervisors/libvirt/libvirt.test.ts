// Own process: its PATH has another ssh.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, existsSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { hasCode } from '#common/errors/index.ts';
import { isPermanentRefusal } from '#operations/hypervisors/index.ts';
import { until } from '#service-kit/testing/until.ts';
import { type HypervisorDriver, refuseCapability } from '../guest.ts';
import { checkContract } from '../testing/contract.ts';
import { guest, neighbour, node } from '../testing/example-guest.ts';
import { createModelNode } from '../testing/model-node.ts';
import { seedFiles } from './cloud-seed.ts';
import { domainXml } from './domain-xml.ts';
import { createLibvirtDriver, readDomstats } from './driver.ts';
import { createVirsh, run, virshError } from './run-virsh.ts';

test('libvirt itself finds the definition valid, an unknown or unreachable node is told apart, and a missing image is refused for good', {
  skip: existsSync('/usr/bin/virsh') ? false : 'needs virsh',
}, async () => {
  const virsh = createVirsh('test:///default');
  const folder = await mkdtemp(join(tmpdir(), 'svc-define-'));
  const file = join(folder, 'domain.xml');
  const plan = {
    name: 'vm-7',
    mac: guest.mac!,
    vcpus: 2,
    memoryMb: 2_048,
    storagePool: 'guests',
    disk: 'vm-7.qcow2',
    seed: 'vm-7-seed.iso',
    bridge: 'br0',
    type: 'kvm' as const,
  };
  await writeFile(file, domainXml(plan).replace("type='kvm'", "type='test'"));
  await virsh(['define', file, '--validate']);
  await writeFile(file, domainXml(plan).replace('<vcpu>', '<vcpus>').replace('</vcpu>', '</vcpus>'));
  await assert.rejects(virsh(['define', file, '--validate']), isPermanentRefusal);
  await rm(folder, { recursive: true });
  const driver = createLibvirtDriver({ ...node, uri: 'test:///default' });
  assert.deepEqual(await driver.observeGuests(), [], 'other people’s domains are left alone');
  assert.equal(await driver.readPower('vm-7'), null);
  const absent = { ...guest, imageSlug: 'no-such-image' };
  await assert.rejects(
    createLibvirtDriver({ ...node, uri: 'test:///default', storagePool: 'default-pool' }).ensureGuest(
      absent,
      async () => {},
    ),
    (error) => isPermanentRefusal(error) && /default-pool has no image no-such-image/.test(String(error)),
  );
  const away = createLibvirtDriver({ ...node, uri: 'qemu+unix:///system?socket=/nonexistent' });
  await assert.rejects(away.observeGuests(), (error) => hasCode(error, 'hypervisor.unreachable'));
});

test('what can not serve as a name never reaches virsh, and nothing of a customer reaches the definition', async () => {
  const commands: (readonly string[])[] = [];
  const virsh = async (command: readonly string[]) => {
    commands.push(command);
    return '';
  };
  const driver = createLibvirtDriver({ ...node, uri: 'qemu:///system' }, { virsh });
  for (const name of ['vm-0', 'vm-1;reboot', '--all', 'vm-1 vm-2', "vm-1'", '../vm-1', 'test', '']) {
    await assert.rejects(driver.setPower(name, 'off'), isPermanentRefusal, name);
    await assert.rejects(driver.ensureGone(name), isPermanentRefusal, name);
  }
  assert.deepEqual(commands, []);
  for (const wrong of [
    { uri: null },
    { uri: 'qemu:///system --readonly' },
    { uri: '-c' },
    { uri: 'qemu+ext:///system?command=/bin/sh' },
    { uri: 'qemu+ssh://svc@node-1/system?command=/tmp/x' },
    { uri: 'qemu+ssh://svc@node-1/system?socket=/run/s&netcat=/tmp/x' },
    { uri: 'qemu+tls://node-1/system?no_verify=1' },
    { uri: 'qemu+ssh://-oProxyCommand/system' },
    { uri: 'qemu+ssh://-l@node-1/system' },
    { uri: 'qemu+libssh2://node-1/system' },
    { uri: 'xen:///system' },
    { storagePool: '--pool' },
    { storagePool: null },
    { bridge: 'a bridge of more than' },
    { bridge: 'br0"/>' },
    { networkBridges: 'brpn' },
    { networkBridges: 'brpn{200-100}' },
    { networkBridges: 'brpn{0-9}' },
    { networkBridges: 'br-of-private{1-4094}' },
    { networkBridges: 'br{1-9};reboot' },
  ])
    assert.throws(
      () => createLibvirtDriver({ ...node, uri: 'qemu:///system', ...wrong }),
      isPermanentRefusal,
    );
  for (const wrong of [
    { name: "vm-1'/>" },
    { mac: '52:54' },
    { bridge: '<br0>' },
    { disk: 'vm-1.img' },
    { memoryMb: 1.5 },
    { vcpus: -1 },
  ])
    assert.throws(
      () =>
        domainXml({
          name: 'vm-1',
          mac: guest.mac!,
          vcpus: 1,
          memoryMb: 64,
          storagePool: 'guests',
          disk: 'vm-1.qcow2',
          seed: 'vm-1-seed.iso',
          bridge: 'br0',
          type: 'qemu',
          ...wrong,
        }),
      isPermanentRefusal,
      JSON.stringify(wrong),
    );
});

test('the driver keeps the contract on a node in memory, as it does on libvirt itself', async (t) => {
  const model = createModelNode(['tiny', 'other', 'boot.iso']);
  const driver = createLibvirtDriver({ ...node, uri: 'qemu:///system' }, { virsh: model.virsh });
  await checkContract(t, {
    driver: {
      ...driver,
      // The model copies no disk and draws no screen.
      capabilities: driver.capabilities.filter((one) => one !== 'snapshots' && one !== 'console'),
      ...{ createSnapshot: refuseCapability, restoreSnapshot: refuseCapability },
      ...{ deleteSnapshot: refuseCapability, openConsole: refuseCapability, consoleKinds: [] },
    },
    ...{ guest, neighbour, otherImage: 'other', isBootable: true, knowsImages: true, hasRootPassword: null },
    async inspect(name) {
      const found = model.inspect(name);
      if (found === null) return null;
      const { backing: _, ...facts } = found;
      return facts;
    },
    listLeftovers: async () => model.listLeftovers(),
    async readSpeed(name) {
      const [now, later] = model.speedsOf(name);
      assert.equal(now, later);
      return now ? now / 125 : null;
    },
  });
});

test('a node says that it has done what it has not: what is done again until it resolves is done', async () => {
  const nic = {
    networkId: 31,
    segment: null,
    mac: '52:56:00:00:00:05',
    address: '10.20.0.5',
    prefixLength: 24,
  };
  /** Of a guest that runs, or of one that is off: one that runs may hold on to its NIC. */
  const changes: [string, 'on' | 'off', (driver: HypervisorDriver) => Promise<unknown>][] = [
    ['rebuild', 'on', (driver) => driver.rebuildGuest({ ...guest, imageSlug: 'other' }, 11, async () => {})],
    ['rescue', 'on', (driver) => driver.rescueGuest({ ...guest, imageSlug: 'other' }, 31, async () => {})],
    ['an ISO', 'on', (driver) => driver.changeIso(guest.name, 'boot', 41)],
    ['resize', 'off', (driver) => driver.resizeGuest(guest.name, { vcpus: 2, memoryMb: 128, diskGb: 2 })],
    [
      'other addresses',
      'on',
      (driver) => driver.setAddresses({ name: guest.name, mac: guest.mac!, addresses: neighbour.addresses }),
    ],
    ['destruction', 'on', (driver) => driver.ensureGone(guest.name)],
    ['a NIC less', 'off', (driver) => driver.detachInterface(guest.name, nic)],
    [
      'a NIC more',
      'on',
      (driver) => driver.attachInterface(guest.name, { ...nic, networkId: 32, mac: '52:56:00:00:00:06' }),
    ],
    ['removal of a network', 'off', (driver) => driver.removeNetwork(nic.networkId)],
  ];
  /** Changes a guest at a new node, which lies at the command of this number; what there is in the end, and the commands. */
  const run = async ([, power, change]: (typeof changes)[number], liesAt: number) => {
    const model = createModelNode(['tiny', 'other', 'boot.iso']);
    const commands: string[] = [];
    let isChanging = false;
    const virsh = async (command: readonly string[]) => {
      const isLie = isChanging && commands.push(command[0]!) - 1 === liesAt;
      return isLie ? '' : model.virsh(command);
    };
    const driver = createLibvirtDriver({ ...node, uri: 'qemu:///system' }, { virsh });
    await driver.ensureGuest({ ...guest, privateInterfaces: [nic] }, async () => {});
    await driver.setPower(guest.name, power);
    isChanging = true;
    for (let attempt = 0; attempt < 3; attempt += 1)
      if (!['booting', 'failed'].includes(String(await change(driver).catch(() => 'failed')))) break;
    const { live, config } = model.domains.get(guest.name) ?? { live: null, config: null };
    const stands = { facts: model.inspect(guest.name), left: model.listLeftovers().toSorted() };
    return { stands: { ...stands, isCurrent: live === null || live === config }, commands };
  };
  const lies =
    /^(start|destroy|undefine|define|attach-|detach-|update-|vol-(create|resize|delete)|nwfilter-(un)?def|net-(destroy|undef))/;
  for (const change of changes) {
    const honest = await run(change, -1);
    for (const [number, command] of honest.commands.entries())
      if (lies.test(command))
        assert.deepEqual((await run(change, number)).stands, honest.stands, `${change[0]}: ${command} lies`);
  }
});

test('at a node with the hook each NIC has its rules for nft, in the end for none, and a destroyed guest has none', async () => {
  const model = createModelNode(['tiny']);
  const applied: string[] = [];
  let marker = '';
  const virsh = async (command: readonly string[]) => {
    const said = await model.virsh(command);
    const [what, name = ''] = command;
    if (what === 'net-start' && name.startsWith('svc-guard-')) {
      const xml = await model.virsh(['net-dumpxml', name]);
      applied.push(Buffer.from(/>([A-Za-z0-9+/=]+)<\/svc:guard>/.exec(xml)![1]!, 'base64').toString());
    }
    return what === 'net-list' ? `${said}\n${marker}` : said;
  };
  const driver = createLibvirtDriver({ ...node, uri: 'qemu:///system' }, { virsh });
  await driver.ensureGuest(guest, async () => {});
  assert.equal(applied.length, 0);
  marker = 'svc-guard';
  await driver.applyGuard(guest.name, true);
  const element = 'element bridge svc_guard nics { 52:54:00:00:00:07 : goto svc-vm-7-port }\n';
  assert.match(
    applied.at(-1)!,
    /ip saddr \{ 203\.0\.113\.17 \}[\s\S]*fe80::5054:ff:fe00:7, 2001:db8:113::17/,
  );
  assert.ok(applied.at(-1)!.endsWith(`add ${element}`));
  await driver.setAddresses({ name: guest.name, mac: guest.mac!, addresses: neighbour.addresses });
  assert.match(applied.at(-1)!, /ip saddr \{ 203\.0\.113\.18 \}/);
  await driver.applyGuard(guest.name, false);
  assert.match(applied.at(-1)!, new RegExp(`delete ${element}`));
  await driver.setAddresses({ name: guest.name, mac: guest.mac!, addresses: guest.addresses });
  assert.match(applied.at(-1)!, new RegExp(`delete ${element}`), 'one that is not guarded stays so');
  await driver.applyGuard(guest.name, true);
  await driver.ensureGone(guest.name);
  assert.match(applied.at(-1)!, new RegExp(`delete ${element}`));
  assert.deepEqual(model.listLeftovers(), []);
});

test('the first two members of a private network come at once', async () => {
  const model = createModelNode(['tiny']);
  const driver = createLibvirtDriver({ ...node, uri: 'qemu:///system' }, { virsh: model.virsh });
  const nics = [guest, neighbour].map((of, i) => {
    const address = `10.20.0.${5 + i}`;
    return {
      of,
      nic: { networkId: 31, segment: null, mac: `52:56:00:00:00:0${5 + i}`, address, prefixLength: 24 },
    };
  });
  for (const { of } of nics) await driver.ensureGuest(of, async () => {});
  await Promise.all(nics.map(({ of, nic }) => driver.attachInterface(of.name, nic)));
  for (const { of, nic } of nics) assert.deepEqual(model.inspect(of.name)?.macs, [of.mac, nic.mac]);
});

const vendorOf = (files: Record<string, string>) => {
  const parts = JSON.parse(files['vendor-data']!.replace('#cloud-config-archive\n', '')) as {
    type: string;
    content: string;
  }[];
  const config = parts.find(({ type }) => type === 'text/cloud-config')!.content;
  const hook = parts.find(({ type }) => type === 'text/cloud-boothook')?.content;
  return { hook, ...JSON.parse(config.replace('#cloud-config\n', '')) };
};

test('the seed carries the password as a hash, the customer’s user data as it is, and every address with its gateway', () => {
  const userData = '#!/bin/sh\necho "<hello> & \\"bye\\""\n';
  const password = { hash: '$6$salt$hash', change: null };
  const files = seedFiles({ ...guest, userData, hostname: 'a"b: c' }, password);
  assert.ok(!Object.values(files).join().includes('never in clear'));
  assert.equal(files['user-data'], userData);
  assert.equal(JSON.parse(files['meta-data']!)['local-hostname'], 'a"b: c');
  const vendor = vendorOf(files);
  assert.equal(vendor.chpasswd.users[0].password, '$6$salt$hash');
  assert.equal(vendor.hook, undefined);
  assert.deepEqual(vendor.users[0].ssh_authorized_keys, guest.sshKeys);
  const { public0 } = JSON.parse(files['network-config']!).ethernets;
  assert.deepEqual(public0.addresses, ['203.0.113.17/24', '2001:db8:113::17/64']);
  assert.deepEqual(public0.routes, [
    { to: '0.0.0.0/0', via: '203.0.113.1' },
    { to: '::/0', via: '2001:db8:113::1' },
  ]);
});

test('a password for the next boot is in the seed as a hash until it is forgotten', () => {
  const { hook } = vendorOf(seedFiles(guest, { hash: '$6$salt$hash', change: 21 }));
  assert.match(
    hook,
    /^#cloud-boothook\n#!\/bin\/sh\n[\s\S]* = x21 \][\s\S]*'root:\$6\$salt\$hash' \| chpasswd -e/,
  );
  assert.doesNotMatch(Object.values(seedFiles(guest, null)).join(), /chpasswd|\$6\$/);
});

test('a guest without keys has no list of them, which the schema of cloud-init would refuse', () => {
  const vendor = vendorOf(seedFiles({ ...guest, sshKeys: [] }, null));
  assert.deepEqual(vendor.users, [{ name: 'root', lock_passwd: false }]);
});

test('states and counters are read out of what virsh says', () => {
  const text = `Domain: 'vm-7'
  state.state=1
  state.reason=1
  net.count=2
  net.0.name=svc7
  net.0.rx.bytes=806
  net.0.tx.bytes=1676
  net.1.name=svcp7

Domain: 'other-host'
  state.state=1

Domain: 'vm-8'
  state.state=5
  net.count=0
`;
  assert.deepEqual(readDomstats(text), [
    {
      name: 'vm-7',
      power: 'on',
      interfaces: [{ device: 'svc7', isPublic: true, receivedBytes: 806, sentBytes: 1_676 }],
      guards: [],
    },
    { name: 'vm-8', power: 'off', interfaces: [], guards: [] },
  ]);
});

test('a virsh that hangs is ended with what it started, and may be asked again', async () => {
  // As virsh by ssh: its child holds the pipes.
  const hanging = await run('sh', ['-c', 'sleep 600 & echo $!; wait'], undefined, 1_000);
  assert.notEqual(hanging.code, 0);
  assert.match(hanging.err, /ended by SIGKILL: no answer/);
  const child = Number(hanging.out);
  // It has got its signal; when it acts on it is the kernel's.
  await until('the child has ended', 30_000, async () =>
    /^gone$|\) [XZ] /.test(await readFile(`/proc/${child}/stat`, 'utf8').catch(() => 'gone')),
  );
  assert.ok(hasCode(virshError('start', hanging.err), 'hypervisor.failed'));
});

test('virsh that asks for a guest which is not there, or for an image, is refused for good', () => {
  for (const complaint of [
    "error: failed to get domain 'vm-7'",
    'error: Storage pool not found: no storage pool with matching name',
    'error: XML error: no',
  ])
    assert.ok(isPermanentRefusal(virshError('start', complaint)), complaint);
  assert.ok(
    !isPermanentRefusal(virshError('start', 'error: Failed to start domain: no space left on device')),
  );
});

test('the console of a node by ssh is its VNC socket, and a node by TLS has none', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-ssh-'));
  const { PATH } = process.env;
  process.env.PATH = `${folder}:${PATH}`;
  t.after(() => {
    process.env.PATH = PATH;
    return rm(folder, { recursive: true });
  });
  const ssh = join(folder, 'ssh');
  await writeFile(
    ssh,
    `#!/bin/sh\nprintf '%s\\n' "$@" > ${folder}/asked\nprintf 'RFB 003.008\\n'\nexec cat\n`,
  );
  await chmod(ssh, 0o755);
  let socket = '/var/lib/libvirt/qemu/domain-1-vm-7/vnc.sock';
  const virsh = async () => `<graphics type='vnc' socket='${socket}'>`;
  const on = (uri: string) => createLibvirtDriver({ ...node, uri }, { virsh });
  const byKey = on(
    'qemu+ssh://svc@[2001:db8::1]:2222/system?keyfile=/etc/svc/key&known_hosts=/etc/svc/hosts',
  );
  const stream = await byKey.openConsole('vm-7', 'vnc');
  assert.equal(String((await once(stream, 'data'))[0]), 'RFB 003.008\n');
  stream.write('RFB 003.008\n');
  assert.equal(String((await once(stream, 'data'))[0]), 'RFB 003.008\n');
  stream.destroy();
  const asked = (await readFile(join(folder, 'asked'), 'utf8')).trim().split('\n');
  assert.deepEqual(asked, [
    ...['-T', '-o', 'BatchMode=yes', '-o', 'UserKnownHostsFile=/etc/svc/hosts', '-i', '/etc/svc/key'],
    ...['-p', '2222', '-l', 'svc', '--', '2001:db8::1', `nc -U ${socket}`],
  ]);
  await assert.rejects(on('qemu+tls://node-1/system').openConsole('vm-7', 'vnc'), isPermanentRefusal);
  socket = '/run/vnc.sock; reboot';
  await assert.rejects(byKey.openConsole('vm-7', 'vnc'), isPermanentRefusal);
  await writeFile(ssh, '#!/bin/sh\necho Permission denied >&2\nexit 255\n');
  socket = '/run/vnc.sock';
  await assert.rejects(byKey.openConsole('vm-7', 'vnc'), /Permission denied/);
});

test('a terminal says why virsh opens none, and ends with an operations that is killed', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-terminal-'));
  t.after(() => rm(folder, { recursive: true }));
  const virsh = join(folder, 'virsh');
  const module = new URL('./console.ts', import.meta.url).href;
  const program = `
    import { openSerial } from '${module}';
    const running = async () => "<console type='pty' tty='/dev/pts/1'>";
    try {
      await openSerial(running, 'qemu:///system', 'vm-7');
      process.kill(process.pid, 'SIGKILL');
    } catch (error) {
      console.log(error.message);
    }`;
  const runOperations = async (script: string) => {
    await writeFile(virsh, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
      env: { ...process.env, PATH: `${folder}:${process.env.PATH}`, SSH_AUTH_SOCK: '/run/agent' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    return text(child.stdout);
  };
  const refused = await runOperations('echo "error: no key in $SSH_AUTH_SOCK"; exit 1');
  assert.match(refused, /^console: setpriv: error: no key in \/run\/agent\n$/);
  // The terminal holds the pipe for as long as it is there.
  const pipe = join(folder, 'pipe');
  const [made] = await once(spawn('mkfifo', [pipe]), 'close');
  assert.equal(made, 0);
  const held = text(createReadStream(pipe));
  await runOperations(
    `exec 7> ${pipe}; echo 'Escape character is ^] (Ctrl + ])'; echo opened >&7; exec sleep 600`,
  );
  assert.equal(await held, 'opened\n');
});

test('a check of a node says all that is missing, and ends when virsh hangs', async () => {
  const healthy: Record<string, string> = {
    version: 'Running hypervisor: QEMU 7.2.22\nRunning against daemon: 9.0.0\n',
    capabilities: "<domain type='kvm'/>",
    'pool-info': `State: running\nAutostart: yes\nCapacity: ${100 * 2 ** 30}\nAvailable: ${50 * 2 ** 30}\n`,
    'pool-dumpxml': "<pool type='dir'>",
    'vol-list': ' tiny.qcow2  /pool/tiny.qcow2\n',
    'vol-dumpxml': "<format type='qcow2'/>",
    list: 'vm-7\nvm-8\nother\n',
    dumpxml: "<target name='org.qemu.guest_agent.0' state='connected'/>",
  };
  const check = async (answers: Record<string, string>) => {
    const asked: string[] = [];
    let filter = '';
    const virsh = async ([command = '', file = '']: readonly string[]) => {
      asked.push(command);
      const answer = answers[command] ?? healthy[command] ?? '';
      if (/^error|ended by/.test(answer)) throw virshError(command, answer);
      if (command === 'nwfilter-define') filter = await readFile(file, 'utf8');
      return command === 'nwfilter-dumpxml' ? filter : answer;
    };
    const driver = createLibvirtDriver(
      { ...node, uri: 'qemu:///system', networkBridges: 'brpn{100-199}' },
      { virsh },
    );
    const checks = await driver.checkNode(['tiny.qcow2']);
    const of = (state: string) => checks.filter((one) => one.state === state).map(({ subject }) => subject);
    return { asked, bad: of('bad'), unknown: of('unknown'), text: checks.map(({ text }) => text).join(' ') };
  };
  const good = await check({});
  assert.deepEqual([good.bad, good.unknown], [[], []], good.text);
  assert.match(good.text, /connected to brpn100 and brpn199\./);
  assert.match(good.text, /50\.0 of 100\.0 GiB are free\. .*2 of 2 servers run a guest agent\.$/);
  const ofNetwork = ['private networks', 'network filters', 'speed limits'];
  for (const [answers, bad, unknown, words] of [
    [{ version: 'Running against daemon: 6.0.0' }, ['connection'], null, /libvirt 7 is needed/],
    [
      { version: 'error: failed to connect to the hypervisor\nerror: Connection refused' },
      ['connection'],
      null,
      /Connection refused/,
    ],
    [
      { 'pool-info': "error: failed to get pool 'guests'" },
      ['storage pool'],
      ['images'],
      /no storage pool guests/,
    ],
    [{ 'pool-info': 'State: inactive' }, ['storage pool'], ['images'], /virsh pool-start guests/],
    [{ 'pool-dumpxml': "<pool type='logical'>" }, ['storage pool'], ['images'], /of the type logical/],
    [{ 'vol-list': '' }, ['images'], [], /lacks tiny\.qcow2/],
    [{ 'vol-dumpxml': "<format type='raw'/>" }, ['images'], [], /not of the format qcow2/],
    [
      { create: "error: Cannot get interface MTU on 'br0': No such device" },
      ['bridge'],
      ofNetwork,
      /no bridge br0/,
    ],
    [
      { 'nwfilter-define': 'error: this function is not supported by the connection driver' },
      ['network filters'],
      [],
      /not supported/,
    ],
    [{ 'net-list': 'svc-guard' }, ['network filters'], [], /hook svc-guard does not run: restart libvirtd/],
    [
      { 'net-list': 'svc-guard', 'net-create': 'error: Hook script execution failed: nft' },
      [],
      [],
      /firewalls can be applied\. Interfaces/,
    ],
    [
      { domiftune: 'error: tc: command not found' },
      [],
      [],
      /Interfaces can’t be limited\. tc: command not found/,
    ],
    [
      { dumpxml: '' },
      [],
      [],
      /0 of 2 servers run a guest agent; in the others a new root password holds from/,
    ],
  ] as const) {
    const found = await check(answers);
    assert.deepEqual(found.bad, bad, found.text);
    if (unknown !== null) assert.deepEqual(found.unknown, unknown, found.text);
    assert.match(found.text, words);
  }
  const hung = await check({ 'pool-info': ' ended by SIGKILL: no answer within 8 s, or too long a one' });
  assert.deepEqual(hung.bad, ['storage pool']);
  assert.equal(hung.asked.at(-1), 'pool-info', 'nothing is asked after it');
  assert.match(hung.text, /no answer within 8 s.*Not checked: virsh does not answer\./);
});
