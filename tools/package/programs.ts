import { sensorVersion } from '#sensor/version.ts';

/** The programs that can be packaged. A new one is one more entry here and a folder of its files in `packaging/`. */
export interface PackagedProgram {
  /** The package's name, of its folder below /usr/lib and of its folder in `packaging/`. */
  name: string;
  version: string;
  /** The module that its command line begins with. */
  entry: string;
  summary: string;
  /** Further lines of the description. */
  description: string[];
  depends: string[];
  /** The heading of its changes in CHANGELOG.md. */
  changes: string;
  /** Findings of lintian that are meant, with the reason. */
  lintianOverrides: { tag: string; why: string }[];
  /** Files of `packaging/<name>/` and where they go; a name that ends with a slash is a folder. */
  files: { from: string; to: string; mode: number; isConfiguration?: boolean }[];
  /** Its manual page, without the part that is made from its settings. */
  manual: { section: number; settings: () => Promise<readonly ManualSetting[]> };
}

export interface ManualSetting {
  name: string;
  sentence: string;
  defaultText: string;
  unit?: string;
}

export const packagedPrograms: readonly PackagedProgram[] = [
  {
    name: 'svc-sensor',
    version: sensorVersion,
    entry: 'sensor/svc-sensor.ts',
    summary: 'counts packets on a hypervisor and names applications',
    description: [
      'The sensor of svc listens on uplinks and bridges, counts the traffic of each',
      'address, names applications by TLS, HTTP and DNS, keeps every minute on disk',
      'until the monitor has given a receipt for it, and reads capture files. It has',
      'the Node.js that it runs on.',
    ],
    // What the Node.js binary is linked with, nmap of port scans, and useradd of the maintainer scripts.
    depends: ['libbpf1', 'libc6 (>= 2.28)', 'libstdc++6 (>= 9)', 'nmap', 'passwd'],
    changes: 'sensor',
    lintianOverrides: [
      {
        tag: 'embedded-library zlib [usr/lib/svc-sensor/bin/node]',
        why: 'the binary is the one that nodejs.org publishes, with its own zlib',
      },
      {
        tag: 'unstripped-binary-or-object [usr/lib/svc-sensor/bin/node]',
        why: 'its digest is compared with the published one',
      },
      {
        tag: 'binary-from-other-architecture [usr/lib/svc-sensor/sensor/kernel/*.bpf.o]',
        why: 'it is a program for the kernel, the same on both architectures',
      },
    ],
    files: [
      { from: 'svc-sensor', to: '/usr/bin/svc-sensor', mode: 0o755 },
      { from: 'svc-sensor.service', to: '/lib/systemd/system/svc-sensor.service', mode: 0o644 },
      { from: 'sensor.env', to: '/etc/svc-sensor/sensor.env', mode: 0o640, isConfiguration: true },
      { from: 'copyright', to: '/usr/share/doc/svc-sensor/copyright', mode: 0o644 },
    ],
    manual: {
      section: 8,
      settings: async () => Object.values((await import('#sensor/config.ts')).sensorSettings),
    },
  },
];
