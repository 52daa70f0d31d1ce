/** The guide for callers of other providers: their calls, and those of this API that do the same. */
import { html, link, prose, table } from '#service-kit/pages/index.ts';
import type { Operation } from './document.ts';
import type { Guide } from './guides.ts';

interface Switch {
  task: string;
  hetzner: string;
  digitalOcean: string;
  /** Id of the call here. */
  id: string;
}

const row = (task: string, hetzner: string, digitalOcean: string, id: string): Switch => ({
  task,
  hetzner,
  digitalOcean,
  id,
});

/** Paths below `https://api.hetzner.cloud/v1` and `https://api.digitalocean.com/v2`. */
export const switches: readonly Switch[] = [
  row('Sizes', 'GET /server_types', 'GET /sizes', 'listPlans'),
  row('Prices', 'GET /pricing', 'GET /sizes', 'readPrices'),
  row('Operating systems', 'GET /images', 'GET /images', 'listImages'),
  row('Locations', 'GET /locations', 'GET /regions', 'listLocations'),
  row('Add an SSH key', 'POST /ssh_keys', 'POST /account/keys', 'createSshKey'),
  row('Deploy', 'POST /servers', 'POST /droplets', 'createServer'),
  row('List', 'GET /servers', 'GET /droplets', 'listServers'),
  row('Power', 'POST /servers/{id}/actions/reboot', 'POST /droplets/{id}/actions', 'actOnServer'),
  row('Wait for an action', 'GET /actions/{id}', 'GET /actions/{id}', 'readAction'),
  row('Firewall', 'POST /firewalls/{id}/actions/set_rules', 'PUT /firewalls/{id}', 'replaceServerFirewall'),
  row('Private network', 'POST /networks', 'POST /vpcs', 'createNetwork'),
  row('Keep an address', 'POST /floating_ips', 'POST /reserved_ips', 'reserveAddress'),
  row('Reverse DNS', 'POST /servers/{id}/actions/change_dns_ptr', 'none', 'setReverseDns'),
  row('Destroy', 'DELETE /servers/{id}', 'DELETE /droplets/{id}', 'destroyServer'),
  row('Credit', 'none', 'GET /customers/my/balance', 'readAccount'),
  row('Billing history', 'none', 'GET /customers/my/billing_history', 'listLedger'),
];

/** Rows whose call the document does not have are left out. */
export function switchGuide(operations: readonly Operation[], base: string): Guide {
  const calls = new Map(operations.map((operation) => [operation.id, operation]));
  return {
    id: 'switch',
    title: 'Switch from Hetzner Cloud or DigitalOcean',
    content: [
      html`<p>${prose('Send the key as there: `Authorization: Bearer …`. What differs: money is decimal text, a firewall belongs to one server, and a repeated `POST` under the same `Idempotency-Key` is executed once. Instead of asking again and again, wait: `Prefer: wait=30`. The actions `poweroff`, `power_off` and `power_cycle` are understood.')}</p>`,
      table<Switch>({
        caption: 'Calls of other providers',
        card: { line: ['hetzner', 'ocean'] },
        refreshSeconds: 0,
        rows: switches.filter(({ id }) => calls.has(id)),
        columns: [
          { key: 'task', header: 'Task', cell: ({ task }) => task },
          { key: 'hetzner', header: 'Hetzner Cloud', kind: 'code', cell: ({ hetzner }) => hetzner },
          { key: 'ocean', header: 'DigitalOcean', kind: 'code', cell: ({ digitalOcean }) => digitalOcean },
          {
            key: 'here',
            header: 'Here',
            kind: 'code',
            cell({ id }) {
              const { method, path, resource } = calls.get(id)!;
              return link(`${base}${resource}/#${id}`, `${method} ${path}`);
            },
          },
        ],
        empty: { title: 'No calls', text: 'There are none.' },
      }),
    ],
  };
}
