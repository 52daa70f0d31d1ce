/**
 * A libvirt node in memory that answers the commands of the driver as virsh does. It keeps the contract of drivers as libvirt itself does
 * (`libvirt.test.ts`, `qemu.test.ts`), in a thousandth of the time.
 */
import { readFile } from 'node:fs/promises';
import { type Virsh, virshError } from '../libvirt/run-virsh.ts';

interface Domain {
  /** What the next start takes. */
  config: string;
  /** Null while it is off. */
  live: string | null;
}

interface Volume {
  bytes: number;
  backing: string | null;
  /** The image that it came from in the end. */
  image: string;
}

export type ModelNode = ReturnType<typeof createModelNode>;

const gib = 1024 ** 3;

/** `images` are slugs, or the files of ISOs. */
export function createModelNode(images: readonly string[]) {
  const files = images.map((image) => (image.endsWith('.iso') ? image : `${image}.qcow2`));
  const domains = new Map<string, Domain>();
  const volumes = new Map<string, Volume>(
    files.map((file, i) => [file, { bytes: gib / 64, backing: null, image: images[i]! }]),
  );
  /** Guests that have copied their disk since they were started. */
  const copied = new Set<string>();
  const filters = new Map<string, string>();
  const networks = new Map<string, { bridge: string; isActive: boolean; xml: string }>();

  const refuse = (command: string, complaint: string): never => {
    throw virshError(command, `error: ${complaint}`);
  };
  const domainOf = (name: string, command: string): Domain =>
    domains.get(name) ??
    refuse(
      command,
      `failed to get domain '${name}'\nerror: Domain not found: no domain with matching name '${name}'`,
    );
  const runningOf = (name: string, command: string): Domain & { live: string } => {
    const domain = domainOf(name, command);
    if (domain.live === null)
      refuse(
        command,
        `Failed to ${command} domain '${name}'\nerror: Requested operation is not valid: domain is not running`,
      );
    return domain as Domain & { live: string };
  };
  const volumeOf = (name: string, command: string): Volume =>
    volumes.get(name) ??
    refuse(
      command,
      `failed to get vol '${name}'\nerror: Storage volume not found: no storage vol with matching path '${name}'`,
    );
  const networkOf = (name: string, command: string) =>
    networks.get(name) ??
    refuse(
      command,
      `failed to get network '${name}'\nerror: Network not found: no network with matching name '${name}'`,
    );
  const start = (domain: Domain, command: string) => {
    for (const [, volume] of domain.config.matchAll(/ volume='([^']+)'/g)) volumeOf(volume!, command);
    for (const [, filter] of domain.config.matchAll(/<filterref filter='([^']+)'/g))
      if (!filters.has(filter!)) refuse(command, `internal error: Could not get access to ACL tech driver`);
    for (const [, network] of domain.config.matchAll(/<source network='([^']+)'/g))
      if (!networkOf(network!, command).isActive)
        refuse(command, `Requested operation is not valid: network '${network}' is not active`);
    domain.live = domain.config;
    copied.delete(/<name>([^<]+)</.exec(domain.config)![1]!);
  };
  const isBound = (filter: string) =>
    [...filters.values()].some((xml) => xml.includes(`<filterref filter='${filter}'`)) ||
    [...domains.values()].some(({ live }) => live?.includes(`<filterref filter='${filter}'`));

  /** By the first word; `given` has the others. */
  const commands: Record<string, (given: string[], command: string) => string | Promise<string>> = {
    version: () => 'Running hypervisor: QEMU 7.2.22\nRunning against daemon: 9.0.0\n',
    capabilities: () => "<domain type='qemu'>",
    list: () => [...domains.keys()].join('\n'),
    domstate: ([name], command) => (domainOf(name!, command).live === null ? 'shut off\n' : 'running\n'),
    dumpxml([name, ...options], command) {
      const { config, live } = domainOf(name!, command);
      return options.includes('--inactive') ? config : (live ?? config);
    },
    async define([file]) {
      const xml = (await readFile(file!, 'utf8')).replace(
        /<memory unit='MiB'>(\d+)</,
        (_, mb) => `<memory unit='KiB'>${Number(mb) * 1024}<`,
      );
      const name = /<name>([^<]+)</.exec(xml)![1]!;
      domains.set(name, { live: domains.get(name)?.live ?? null, config: xml });
      return '';
    },
    undefine([name], command) {
      domainOf(name!, command);
      domains.delete(name!);
      return '';
    },
    /** A trial of a check. */
    create: () => '',
    domiftune([name, device, , inbound, , outbound, where], command) {
      if (name!.startsWith('svc-check-')) return '';
      const domain = where === '--live' ? runningOf(name!, command) : domainOf(name!, command);
      const limit =
        inbound === '0'
          ? ''
          : `<bandwidth><inbound average='${inbound}'/><outbound average='${outbound}'/></bandwidth>`;
      const tune = (xml: string) => {
        const target = `<target dev='${device}'/>`;
        if (!xml.includes(target)) refuse(command, `Interface '${device}' was not found`);
        return xml.replaceAll(/<bandwidth>.*?<\/bandwidth>/g, '').replace(target, `${target}${limit}`);
      };
      if (where === '--live') domain.live = tune(domain.live!);
      else domain.config = tune(domain.config);
      return '';
    },
    start([name], command) {
      const domain = domainOf(name!, command);
      if (domain.live !== null) refuse(command, 'Domain is already active');
      start(domain, command);
      return '';
    },
    destroy([name], command) {
      if (name!.startsWith('svc-check-')) return '';
      runningOf(name!, command).live = null as never;
      return '';
    },
    shutdown: ([name], command) => commands.destroy!([name!], command),
    reboot([name], command) {
      runningOf(name!, command);
      return '';
    },
    reset: ([name], command) => commands.reboot!([name!], command),
    domstats: () =>
      [...domains]
        .map(([name, { live }]) => {
          const devices = [...(live ?? '').matchAll(/<target dev='(svc\d+)'/g)].map(([, device]) => device!);
          const nics = devices.flatMap((device, i) => [
            `  net.${i}.name=${device}`,
            `  net.${i}.rx.bytes=0`,
            // What boots sends at once.
            `  net.${i}.tx.bytes=64`,
          ]);
          const state = [`  state.state=${live === null ? 5 : 1}`, `  net.count=${devices.length}`];
          return [`Domain: '${name}'`, ...state, ...nics].join('\n');
        })
        .join('\n\n'),
    domiflist([name, ...options], command) {
      const { config, live } = domainOf(name!, command);
      const nics = (options.includes('--inactive') ? config : (live ?? config)).split('<interface ').slice(1);
      return nics
        .map((nic) => {
          const [, kind, source] = /<source (bridge|network)='([^']+)'/.exec(nic)!;
          return ` -  ${kind}  ${source}  virtio  ${/<mac address='([^']+)'/.exec(nic)![1]}`;
        })
        .join('\n');
    },
    async 'attach-device'([name, file, ...options], command) {
      const domain = domainOf(name!, command);
      const xml = await readFile(file!, 'utf8');
      const add = (to: string) => to.replace('  </devices>', `${xml}  </devices>`);
      if (options.includes('--live')) domain.live = add(runningOf(name!, command).live);
      domain.config = add(domain.config);
      return '';
    },
    async 'update-device'([name, file], command) {
      const domain = runningOf(name!, command);
      const drive = await readFile(file!, 'utf8');
      domain.live = domain.live.replace(/ *<disk type='\w+' device='cdrom'>[\s\S]*?<\/disk>\n/, drive);
      return '';
    },
    'detach-interface'([name, , , mac, where], command) {
      const domain = domainOf(name!, command);
      const remove = (from: string) =>
        from.replace(
          new RegExp(`<interface type='network'>(?:(?!</interface>)[^])*${mac}[^]*?</interface>\n`),
          '',
        );
      if (where === '--live') domain.live = remove(runningOf(name!, command).live);
      else domain.config = remove(domain.config);
      return '';
    },
    'domif-setlink': () => '',
    /** A copy is complete at once. */
    'backup-dumpxml'([name], command) {
      runningOf(name!, command);
      return refuse(command, 'Domain backup job id not found: no domain backup job present');
    },
    async 'backup-begin'([name, file], command) {
      const { live } = runningOf(name!, command);
      const { bytes, image } = volumeOf(/volume='(vm-[^']+)'/.exec(live)![1]!, command);
      const target = /<target file='\/pool\/([^']+)'/.exec(await readFile(file!, 'utf8'))![1]!;
      volumes.set(target, { bytes, image, backing: null });
      copied.add(name!);
      return '';
    },
    domjobinfo([name], command) {
      runningOf(name!, command);
      return `Job type: ${copied.has(name!) ? 'Completed' : 'None'}\n`;
    },
    blockpull([name], command) {
      const { live } = runningOf(name!, command);
      volumeOf(/volume='(vm-[^']+)'/.exec(live)![1]!, command).backing = null;
      return '';
    },
    'set-user-password'([name], command) {
      domainOf(name!, command);
      return refuse(command, 'Guest agent is not responding: QEMU guest agent is not connected');
    },

    'pool-info': () => `State: running\nAutostart: yes\nCapacity: ${100 * gib}\nAvailable: ${50 * gib}\n`,
    'pool-dumpxml': () => "<pool type='dir'>",
    'pool-refresh': () => '',
    'vol-list': () => [...volumes.keys()].map((name) => ` ${name}  /pool/${name}`).join('\n'),
    'vol-dumpxml'([, , name], command) {
      const { backing } = volumeOf(name!, command);
      return `<format type='qcow2'/>${backing === null ? '' : `<path>/pool/${backing}</path>`}`;
    },
    'vol-path': ([, , name], command) => {
      volumeOf(name!, command);
      return `/pool/${name}\n`;
    },
    'vol-info'([, , name], command) {
      const { bytes } = volumeOf(name!, command);
      return `Capacity:  ${bytes}\nAllocation:  ${bytes}\n`;
    },
    'vol-create-as'([, name, size, , , , backing], command) {
      const image = backing === undefined ? '' : volumeOf(backing, command).image;
      if (volumes.has(name!))
        refuse(
          command,
          `Failed to create vol ${name}\nerror: operation failed: storage volume '${name}' exists already`,
        );
      const bytes = size!.endsWith('G') ? Number.parseInt(size!, 10) * gib : Number(size);
      volumes.set(name!, { bytes, image, backing: backing ?? null });
      return '';
    },
    'vol-upload'([, , name], command) {
      volumeOf(name!, command);
      return '';
    },
    'vol-resize'([, , name, bytes], command) {
      volumeOf(name!, command).bytes = Number(bytes);
      return '';
    },
    'vol-delete'([, , name], command) {
      volumeOf(name!, command);
      volumes.delete(name!);
      return '';
    },

    'nwfilter-list': () => [...filters.keys()].map((name) => ` 0-0-0-0  ${name}`).join('\n'),
    async 'nwfilter-define'([file]) {
      const xml = await readFile(file!, 'utf8');
      filters.set(/<filter name='([^']+)'/.exec(xml)![1]!, xml);
      return '';
    },
    'nwfilter-dumpxml'([name], command) {
      return filters.get(name!) ?? refuse(command, `failed to get nwfilter '${name}'`);
    },
    'nwfilter-undefine'([name], command) {
      if (!filters.has(name!)) refuse(command, `failed to get nwfilter '${name}'`);
      if (isBound(name!)) refuse(command, 'Requested operation is not valid: nwfilter is in use');
      filters.delete(name!);
      return '';
    },

    'net-list': () => [...networks.keys()].join('\n'),
    'net-info'([name], command) {
      const { bridge, isActive } = networkOf(name!, command);
      return `Name: ${name}\nActive: ${isActive ? 'yes' : 'no'}\nBridge: ${bridge}\n`;
    },
    async 'net-define'([file], command) {
      const xml = await readFile(file!, 'utf8');
      const bridge = /<bridge name='([^']+)'/.exec(xml)![1]!;
      const name = /<name>([^<]+)</.exec(xml)![1]!;
      // It is replaced under its own UUID alone.
      if (networks.has(name) && !xml.includes('<uuid>'))
        refuse(command, `operation failed: network '${name}' already exists with uuid 0-0`);
      networks.set(name, { bridge, isActive: networks.get(name)?.isActive ?? false, xml });
      return '';
    },
    'net-dumpxml': ([name], command) => networkOf(name!, command).xml,
    'net-start'([name], command) {
      const network = networkOf(name!, command);
      if (network.isActive) refuse(command, 'Requested operation is not valid: network is already active');
      network.isActive = true;
      return '';
    },
    'net-autostart'([name], command) {
      networkOf(name!, command);
      return '';
    },
    'net-destroy'([name], command) {
      const network = networkOf(name!, command);
      if (!network.isActive) refuse(command, 'Requested operation is not valid: network is not active');
      network.isActive = false;
      return '';
    },
    'net-undefine'([name], command) {
      networkOf(name!, command);
      networks.delete(name!);
      return '';
    },
  };
  const virsh: Virsh = async ([command = '', ...given]) => {
    const run = commands[command];
    if (run === undefined) throw new Error(`the model of a node has no command ${command}`);
    return run(given, command);
  };
  return {
    virsh,
    domains,
    filters,
    /** Forgets everything but the images. */
    clear() {
      for (const name of volumes.keys()) if (!files.includes(name)) volumes.delete(name);
      for (const list of [domains, filters, networks]) list.clear();
    },
    /** What there is of guests and networks. */
    listLeftovers: () => [
      ...domains.keys(),
      ...[...volumes.keys()].filter((name) => !files.includes(name)),
      ...filters.keys(),
      ...networks.keys(),
    ],
    /** The speed limit in kilobytes a second of the running guest and of its next start. */
    speedsOf(name: string): (number | null)[] {
      const { config, live } = domains.get(name)!;
      const speedIn = (xml: string) => Number(/<inbound average='(\d+)'/.exec(xml)?.[1] ?? 0) || null;
      return [speedIn(live ?? config), speedIn(config)];
    },
    /** The guest by the definition that its next start takes; null when there is none. */
    inspect(name: string) {
      const { config, live } = domains.get(name) ?? {};
      if (config === undefined) return null;
      const isoOf = (xml: string) => /volume='((?!vm-)[^']+)\.iso'/.exec(xml)?.[1] ?? null;
      const find = (pattern: RegExp) => pattern.exec(config)?.[1] ?? 'none';
      const disk = find(/volume='(vm-\d+(?:-r\d+)?\.qcow2)'/);
      const rescue = volumes.get(find(/volume='(vm-\d+-rescue-\d+\.qcow2)'/));
      const volume = volumes.get(disk);
      const guard = filters.get(`svc-${name}-guard`) ?? '';
      const sources = [...guard.matchAll(/<ip(?:v6)? srcipaddr='([^']+)'/g)].map(([, address]) => address!);
      return {
        image: volume?.image ?? null,
        rescue: rescue?.image ?? null,
        iso: isoOf(live ?? config) === isoOf(config) ? isoOf(config) : 'unlike',
        backing: volume?.backing ?? null,
        disk,
        vcpus: Number(find(/<vcpu[^>]*>(\d+)</)),
        memoryMb: Number(find(/<memory unit='KiB'>(\d+)</)) / 1024,
        diskGb: (volume?.bytes ?? 0) / gib,
        macs: [...config.matchAll(/<mac address='([^']+)'/g)].map(([, mac]) => mac!),
        addresses: [...new Set(sources)].filter((address) => !/^(fe80:|::$|0\.0\.0\.0$)/.test(address)),
      };
    },
  };
}
