/**
 * `oidc-provider` as a process of its own, for tests. Prints its issuer, then reads one line of JSON from its input: the
 * redirect URIs of the client `svc`, and the groups of each login; any password is right.
 */
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
// @ts-expect-error: it comes without types
import { Provider } from 'oidc-provider';

let handle: RequestListener = (_request, response) => void response.writeHead(503).end();
const server = createServer((request, response) => handle(request, response));
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
console.log(issuer);

const [line] = (await once(createInterface(process.stdin), 'line')) as [string];
const { redirectUris, secret, groups } = JSON.parse(line) as {
  redirectUris: string[];
  secret: string;
  groups: Record<string, string[]>;
};
handle = new Provider(issuer, {
  clients: [{ client_id: 'svc', client_secret: secret, redirect_uris: redirectUris }],
  claims: {
    openid: ['sub'],
    profile: ['name', 'groups'],
    email: ['email', 'email_verified'],
    acr: null,
    auth_time: null,
  },
  pkce: { required: () => true },
  findAccount: (_context: unknown, sub: string) => ({
    accountId: sub,
    claims: () => ({ sub, name: sub, email: `${sub}@staff.test`, email_verified: true, groups: groups[sub] }),
  }),
}).callback();
