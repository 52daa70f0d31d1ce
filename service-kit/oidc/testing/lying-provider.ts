/** An OpenID provider that answers as a test says: rightly, or with anything that must be refused. */
import { createHash, generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What a person of the provider is, and how its answer differs from a right one. */
export interface Answering {
  claims: Record<string, unknown>;
  /** Of the ID token's header; `none` is not signed. */
  alg?: 'ES256' | 'none';
  /** Another key than the published one signs. */
  isForged?: boolean;
  /** Query values of the way back. */
  back?: Record<string, string>;
}

const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const makeKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });

export async function startLyingProvider() {
  const codes = new Map<string, { challenge: string; redirectUri: string; token: string; info: object }>();
  let published = makeKey();
  const stranger = makeKey();
  let kid = randomUUID();
  let isDown = false;
  const server = createServer((request, response) => {
    const send = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (isDown) return void send(503, { error: 'temporarily_unavailable' });
    const path = new URL(request.url!, issuer).pathname;
    if (path === '/.well-known/openid-configuration')
      return void send(200, {
        ...{ issuer, authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token` },
        ...{ jwks_uri: `${issuer}/keys`, response_types_supported: ['code'] },
        ...{ userinfo_endpoint: `${issuer}/me`, subject_types_supported: ['public'] },
        id_token_signing_alg_values_supported: ['ES256', 'none'],
      });
    if (path === '/keys')
      return void send(200, {
        keys: [{ ...published.publicKey.export({ format: 'jwk' }), kid, use: 'sig' }],
      });
    if (path === '/me') {
      const code = request.headers.authorization?.split(' ')[1] ?? '';
      return void send(200, infos.get(code) ?? {});
    }
    let body = '';
    request.on('data', (part) => {
      body += part;
    });
    request.on('end', () => {
      const given = new URLSearchParams(body);
      const code = codes.get(given.get('code') ?? '');
      codes.delete(given.get('code') ?? '');
      const challenge = createHash('sha256')
        .update(given.get('code_verifier') ?? '')
        .digest('base64url');
      if (!code || code.challenge !== challenge || code.redirectUri !== given.get('redirect_uri'))
        return void send(400, { error: 'invalid_grant' });
      const access = randomUUID();
      infos.set(access, code.info);
      send(200, { access_token: access, token_type: 'Bearer', id_token: code.token });
    });
  });
  const infos = new Map<string, object>();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const tokenOf = (payload: object, alg: 'ES256' | 'none', key: KeyObject) => {
    const text = `${base64({ alg, ...(alg === 'none' ? {} : { kid }) })}.${base64(payload)}`;
    return `${text}.${alg === 'none' ? '' : sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
  };
  return {
    issuer,
    /** The way back of a browser that was sent to `href`, where this person signed in. */
    answer(href: string, { claims, alg = 'ES256', isForged = false, back = {} }: Answering): string {
      const asked = new URL(href).searchParams;
      const now = Math.floor(Date.now() / 1000);
      const usual = {
        ...{ iss: issuer, aud: asked.get('client_id'), nonce: asked.get('nonce') },
        ...{ iat: now, exp: now + 300, auth_time: now },
      };
      const key = isForged ? stranger.privateKey : published.privateKey;
      const { groups, ...own } = claims;
      const code = randomUUID();
      codes.set(code, {
        challenge: asked.get('code_challenge') ?? '',
        redirectUri: asked.get('redirect_uri') ?? '',
        token: tokenOf({ ...usual, ...own }, alg, key),
        // Groups are at the userinfo endpoint, as some providers have them.
        info: { sub: claims.sub, groups },
      });
      const query = new URLSearchParams({ code, state: asked.get('state') ?? '', ...back });
      return `${new URL(asked.get('redirect_uri')!).pathname}?${query}`;
    },
    /** From now on another key signs, and only it is published. */
    rotate() {
      published = makeKey();
      kid = randomUUID();
    },
    setDown(down: boolean) {
      isDown = down;
    },
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
