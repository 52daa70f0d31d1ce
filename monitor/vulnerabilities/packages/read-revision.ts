/** Which package of a distribution a service shows, where it shows the whole revision. */

export const distributions = ['debian', 'ubuntu', 'redhat'] as const;
export type Distribution = (typeof distributions)[number];

/** A package as a banner shows it: `9.6p1-3ubuntu13.5` of Ubuntu. Banners have no epoch. */
export interface ShownPackage {
  distribution: Distribution;
  version: string;
}

const revision = '[0-9a-z][0-9a-z.+~]*';
/** OpenSSH of Debian and Ubuntu, as nmap writes it: `9.2p1 Debian 2+deb12u3`. */
const greeting = new RegExp(`^([0-9][0-9a-z.]*) (Debian|Ubuntu)[ -](${revision})$`, 'i');
/** MySQL and MariaDB: `8.0.36-0ubuntu0.22.04.1`, `5.5.5-10.11.6-MariaDB-0+deb12u1-log`. */
const database = new RegExp(`^([0-9][0-9.]*)(?:-mariadb)?-(${revision})$`, 'i');
const rpm = /^([0-9][0-9a-z.]*)-([0-9][0-9a-z.+~^_]*[.+]el\d[0-9a-z.+~^_]*)$/i;

/** Null where the version shows no whole revision, or one of another maker: MariaDB's own packages have `+maria~`. */
export function readRevision(text: string | null): ShownPackage | null {
  const version = (text ?? '')
    .trim()
    .replace(/^5\.5\.5-(?=1[01]\.)/, '')
    .replace(/-log$/i, '');
  const [, greeted, name, greetedRevision] = greeting.exec(version) ?? [];
  // Older packages of Ubuntu greet as Debian's.
  if (greeted !== undefined) {
    const isUbuntu = /ubuntu/i.test(`${name} ${greetedRevision}`);
    return make(isUbuntu ? 'ubuntu' : 'debian', greeted, greetedRevision!);
  }
  const [, upstream, shown] = database.exec(version) ?? [];
  if (upstream !== undefined && /ubuntu/i.test(shown!)) return make('ubuntu', upstream, shown!);
  if (upstream !== undefined && /[+~]deb\d+u\d+$/i.test(shown!)) return make('debian', upstream, shown!);
  const [, packed, release] = rpm.exec(version) ?? [];
  return packed === undefined ? null : make('redhat', packed, release!);
}

const make = (distribution: Distribution, upstream: string, shown: string): ShownPackage => ({
  distribution,
  version: `${upstream}-${shown}`,
});
