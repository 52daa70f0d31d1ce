/**
 * How packages of distributions and hosting panels show in what a service says of itself, each with its source. Data only: add
 * a line, and raise `assessmentRules`.
 */

export interface PackageMark {
  /** Who makes such packages. */
  of: string;
  /** In the version or the further text of a service. */
  pattern: RegExp;
  source: string;
}

/** Lines of nmap's probes that give these names for greetings of real packages. */
const nmap = 'https://github.com/nmap/nmap/blob/master/nmap-service-probes';
const debianVersion = 'https://www.debian.org/doc/debian-policy/ch-controlfields.html#version';
const distTag = 'https://docs.fedoraproject.org/en-US/packaging-guidelines/DistTag/';
const httpdSpec = 'https://src.fedoraproject.org/rpms/httpd/blob/rawhide/f/httpd.spec';

export const packageMarks: readonly PackageMark[] = [
  {
    of: 'Debian',
    pattern: /debian|[-+~.]deb\d/i,
    source: 'https://sources.debian.org/src/openssh/1:10.0p1-7/debian/patches/package-versioning.patch/',
  },
  {
    of: 'a release of Debian',
    pattern: /[-+~.]\d*(etch|lenny|squeeze|wheezy|jessie|stretch|buster|bullseye|bookworm|trixie|bpo\d)/i,
    source: 'https://www.debian.org/releases/',
  },
  { of: 'Ubuntu', pattern: /ubuntu/i, source: nmap },
  {
    of: 'a release of Ubuntu',
    pattern: /[-+~.]\d*(lucid|precise|trusty|xenial|bionic|focal|jammy|noble)/i,
    source: 'https://wiki.ubuntu.com/Releases',
  },
  { of: 'Raspberry Pi OS', pattern: /raspbian/i, source: nmap },
  { of: 'a repackaged original of Debian', pattern: /[+~.-]dfsg/i, source: debianVersion },
  { of: 'deb.sury.org', pattern: /\bsury/i, source: 'https://deb.sury.org/' },
  { of: 'PostgreSQL for Debian', pattern: /pgdg/i, source: 'https://wiki.postgresql.org/wiki/Apt' },
  {
    of: 'MariaDB for Debian and Ubuntu',
    pattern: /maria~|[-~]ubu\d{4}/i,
    source: 'https://mariadb.com/kb/en/installing-mariadb-deb-files/',
  },
  { of: 'Red Hat', pattern: /red ?hat|rhel|[-.]el\d/i, source: distTag },
  { of: 'CentOS', pattern: /centos/i, source: httpdSpec },
  { of: 'Fedora', pattern: /fedora|\.fc\d/i, source: distTag },
  { of: 'AlmaLinux', pattern: /alma ?linux/i, source: httpdSpec },
  { of: 'Rocky Linux', pattern: /\brocky\b/i, source: httpdSpec },
  { of: 'Oracle Linux', pattern: /oracle linux/i, source: httpdSpec },
  {
    of: 'Amazon Linux',
    pattern: /\(amazon|amazon linux|[-.]amzn/i,
    source: 'https://docs.aws.amazon.com/linux/al2023/ug/package-management.html',
  },
  {
    of: 'CloudLinux',
    pattern: /cloud ?linux|-cll-lve/i,
    source: 'https://docs.cloudlinux.com/cloudlinuxos/cloudlinux_os_components/',
  },
  {
    of: 'openEuler',
    pattern: /\b(open)?euler|\.oe\d|\.oe[12]\d{3}/i,
    source: 'https://gitee.com/src-openeuler/httpd',
  },
  { of: 'Anolis and Alibaba Cloud Linux', pattern: /anolis|alibaba|\.(an|al)[78]\b/i, source: httpdSpec },
  { of: 'OpenCloudOS and TencentOS', pattern: /opencloudos|tencentos|\.(oc|tl)\d/i, source: httpdSpec },
  { of: 'Virtuozzo', pattern: /virtuozzo|vzlinux/i, source: httpdSpec },
  { of: 'cPanel', pattern: /\bcpanel\b/i, source: 'https://github.com/CpanelInc/ea-apache24' },
  { of: 'Plesk', pattern: /\bplesk\b/i, source: 'https://docs.plesk.com/' },
  { of: 'SUSE', pattern: /suse/i, source: nmap },
  { of: 'Mandriva, Mageia', pattern: /mandriva|mandrake|mageia|\.mga\d/i, source: nmap },
  { of: 'ALT Linux', pattern: /\balt ?linux|\balt\d/i, source: 'https://packages.altlinux.org/' },
  { of: 'Gentoo', pattern: /gentoo/i, source: nmap },
  { of: 'Arch Linux', pattern: /arch ?linux/i, source: nmap },
  { of: 'Alpine', pattern: /alpine/i, source: nmap },
  {
    of: 'FreeBSD',
    pattern: /freebsd/i,
    source: 'https://cgit.freebsd.org/src/tree/crypto/openssh/version.h',
  },
  { of: 'NetBSD', pattern: /netbsd/i, source: nmap },
  { of: 'DragonFly BSD', pattern: /dragonfly/i, source: nmap },
];

/**
 * Versions of which distributions have packages that a scan shows without any mark, by the key of the product. nmap reads the
 * version of ProFTPD and leaves out the `(Debian)` behind it; Red Hat 7 has MariaDB 5.5.35 to 5.5.68 under the name of the original.
 */
export const unmarkedPackages: Readonly<Record<string, { versions: RegExp; source: string }>> = {
  proftpd: {
    versions: /^1\.3\.(0|1|3[ag]|4a|5|5[abe]|5rc3)$/i,
    source: 'https://tracker.debian.org/pkg/proftpd-dfsg/news/',
  },
  mariadb: {
    versions: /^5\.5\.(3[5-9]|[45]\d|6[0-8])-mariadb(-log)?$/i,
    source: 'https://git.centos.org/rpms/mariadb/commits/c7',
  },
};

/** Vendors of operating systems in CPE names, which a scan gives where an answer names the distribution. */
export const packagingVendors: ReadonlySet<string> = new Set([
  ...['almalinux', 'alpinelinux', 'amazon', 'archlinux', 'canonical', 'centos', 'debian', 'fedoraproject'],
  ...['freebsd', 'gentoo', 'mageia', 'mandriva', 'netbsd', 'novell', 'openeuler', 'opensuse', 'oracle'],
  ...['raspbian', 'redhat', 'rocky', 'suse'],
]);

/**
 * What Apache's own sources write as the platform, the first parenthesis behind the version: packages put their name there.
 * Source: `os/unix/os.h`, `os/win32/os.h`, `os/netware/os.h`, `os/os2/os.h` and `os/bs2000/os.h` of
 * https://github.com/apache/httpd.
 */
export const originalPlatforms: ReadonlySet<string> = new Set([
  ...['unix', 'win32', 'win64', 'netware', 'os/2', 'os2', 'bs2000', 'cygwin'],
]);
