/** What the endpoints are about: the parts of the reference and the tags of the OpenAPI document. */

interface Resource {
  /** A word of the paths. */
  name: string;
  title: string;
  /** One sentence. */
  summary: string;
  /** Other words of paths that are about it. */
  words?: readonly string[];
}

const resources: readonly Resource[] = [
  { name: 'servers', title: 'Servers', summary: 'Deploy, read, change and destroy servers.' },
  { name: 'actions', title: 'Actions', summary: 'Start, stop and restart servers, and read the results.' },
  {
    name: 'boot',
    title: 'Rescue and ISOs',
    summary: 'Start a server from something else than its disk.',
    words: ['rescue', 'unrescue', 'attach-iso', 'detach-iso'],
  },
  { name: 'snapshots', title: 'Snapshots', summary: 'Copies of the disks of servers.' },
  { name: 'networks', title: 'Private networks', summary: 'Private networks between your servers.' },
  { name: 'addresses', title: 'Addresses', summary: 'Public addresses that outlive servers.' },
  { name: 'reverse-dns', title: 'Reverse DNS', summary: 'Names of the addresses of servers.' },
  { name: 'firewall', title: 'Firewall', summary: 'Firewall rules of a server.' },
  { name: 'bandwidth', title: 'Bandwidth', summary: 'Traffic of each server by month and day.' },
  { name: 'traffic', title: 'Traffic', summary: 'Rates of each server, minute by minute.' },
  { name: 'incidents', title: 'Attacks', summary: 'Attacks on servers, or from them.' },
  { name: 'ports', title: 'Open ports', summary: 'Open ports of each server.' },
  { name: 'port-scans', title: 'Port scans', summary: 'Scans of a server that you request.' },
  {
    name: 'findings',
    title: 'Potential vulnerabilities',
    summary: 'Findings of the versions that scans found.',
  },
  { name: 'ssh-keys', title: 'SSH keys', summary: 'Public keys for new servers.' },
  { name: 'account', title: 'Account', summary: 'Credit, allowances and limits of an account.' },
  { name: 'tenants', title: 'Workspaces', summary: 'Workspaces of an API key.' },
  { name: 'key', title: 'API keys', summary: 'The calling API key, and those that it manages.' },
  { name: 'ledger', title: 'Ledger', summary: 'Every change of the credit of an account.' },
  { name: 'members', title: 'Members', summary: 'People of an organization.' },
  {
    name: 'webhooks',
    title: 'Webhooks',
    summary: 'Endpoints that are told what happens, and their deliveries.',
  },
  { name: 'usage', title: 'Usage', summary: 'Number of requests and their cost.' },
  { name: 'plans', title: 'Plans', summary: 'Sizes of servers and their prices.' },
  { name: 'images', title: 'Images', summary: 'Operating systems of servers.' },
  { name: 'locations', title: 'Locations', summary: 'Where servers are located.' },
  { name: 'prices', title: 'Prices', summary: 'All prices at a glance.' },
];

/** What an endpoint is about: the last word of its path that names a resource, else the first word. */
export function resourceOf(path: string): Resource {
  const words = path.split('/').filter((part) => part !== '' && !part.startsWith('{'));
  for (const word of words.toReversed()) {
    const found = resources.find(
      ({ name, words: others }) => name === word || `${name}s` === word || others?.includes(word),
    );
    if (found) return found;
  }
  const name = words[0] ?? 'other';
  return { name, title: name[0]!.toUpperCase() + name.slice(1), summary: '' };
}
