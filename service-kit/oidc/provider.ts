/**
 * The OpenID provider, by `openid-client`: where a browser is sent, and what the answer that it brings back proves.
 *
 * The provider's description and keys are fetched for each sign-in: staff sign in seldom, and a key that was replaced or
 * withdrawn a moment ago counts.
 */
import { createHmac } from 'node:crypto';
import * as client from 'openid-client';
import type { OidcSettings } from './settings.ts';

/** Why the provider's answer signs no person in. */
export type ProviderFault =
  /** It can't be reached, or answers with errors of its own. */
  | 'provider_down'
  /** The person or the provider refused. */
  | 'declined'
  /** Not what was asked for, expired, or not signed by the provider. */
  | 'not_genuine'
  /** The person proved who they are too long ago, or without a second factor where one is asked for. */
  | 'not_confirmed';

/** What the provider says of a person. */
export interface ProvedIdentity {
  subject: string;
  /** An empty text where it names none. */
  email: string;
  name: string;
  groups: readonly string[];
  authenticatedAtMs: number;
  hasSecondFactor: boolean;
}

/** What binds the answer to the browser that asked. */
export interface Binding {
  redirectUri: string;
  /** The browser's secret, of which only a digest is kept. */
  secret: string;
  state: string;
  /** The person must prove who they are now, and not by a session at the provider. */
  isConfirming: boolean;
}

const timeoutSeconds = 10;
/** A proof of a sensitive change may be this old, when it arrives here. */
const confirmSeconds = 300;
/** The provider is asked to let no session of its own sign a person in for longer than one of ours lasts. */
const signInSeconds = 14 * 86_400;
/** Older than this a proof confirms nothing (`sessions`). */
const confirmedSeconds = 900;
const clockSkewSeconds = 30;
/** Methods that prove more than a password (RFC 8176). */
const secondFactorMethods = ['mfa', 'otp', 'hwk', 'swk', 'sc', 'fpt', 'face'];

const derive = (secret: string, what: string, state: string) =>
  createHmac('sha256', secret).update(`${what}:${state}`).digest('base64url');
async function discover({ issuer, clientId, clientSecret }: OidcSettings): Promise<client.Configuration> {
  const authenticate: client.ClientAuth = (server, ...rest) => {
    const isPost = server.token_endpoint_auth_methods_supported?.includes('client_secret_basic') === false;
    const method = isPost ? client.ClientSecretPost(clientSecret) : client.ClientSecretBasic(clientSecret);
    return method(server, ...rest);
  };
  return client.discovery(new URL(issuer), clientId, undefined, authenticate, {
    timeout: timeoutSeconds,
    // The settings allow http on this machine, or where an operator says so.
    execute: [
      client.enableNonRepudiationChecks,
      ...(issuer.startsWith('http:') ? [client.allowInsecureRequests] : []),
    ],
  });
}

/** Where the browser goes. */
export async function providerUrl(
  settings: OidcSettings,
  binding: Binding,
): Promise<{ href: string } | { fault: ProviderFault }> {
  try {
    const { secret, state, redirectUri, isConfirming } = binding;
    const config = await discover(settings);
    const url = client.buildAuthorizationUrl(config, {
      ...{ redirect_uri: redirectUri, scope: settings.scope, state, nonce: derive(secret, 'nonce', state) },
      code_challenge: await client.calculatePKCECodeChallenge(derive(secret, 'verifier', state)),
      ...{ code_challenge_method: 'S256', max_age: String(isConfirming ? confirmSeconds : signInSeconds) },
      ...(isConfirming && { prompt: 'login' }),
      ...(settings.secondFactorAcr.length > 0 && { acr_values: settings.secondFactorAcr.join(' ') }),
    });
    return { href: url.href };
  } catch (error) {
    return { fault: faultOf(error) };
  }
}

/** What the answer proves. `query`: of the request by which the browser came back. */
export async function readAnswer(
  settings: OidcSettings,
  binding: Binding,
  query: string,
): Promise<ProvedIdentity | { fault: ProviderFault }> {
  const { secret, state, redirectUri, isConfirming } = binding;
  try {
    const config = await discover(settings);
    const tokens = await client.authorizationCodeGrant(config, new URL(`${redirectUri}?${query}`), {
      ...{ expectedState: state, expectedNonce: derive(secret, 'nonce', state), idTokenExpected: true },
      ...{ pkceCodeVerifier: derive(secret, 'verifier', state) },
    });
    const idToken = tokens.claims()!;
    const isNamed = idToken[settings.groupsClaim] !== undefined && typeof idToken.email === 'string';
    const more =
      isNamed || config.serverMetadata().userinfo_endpoint === undefined
        ? {}
        : await client.fetchUserInfo(config, tokens.access_token, idToken.sub);
    const claims: Readonly<Record<string, unknown>> = { ...more, ...idToken };
    const hasAcr = settings.secondFactorAcr.includes(textOf(idToken.acr));
    const hasMethod = listOf(idToken.amr).some((method) => secondFactorMethods.includes(method));
    const hasSecondFactor = settings.secondFactorAcr.length > 0 ? hasAcr : hasMethod;
    // Some providers name no time, or zero: they sign people in, and confirm nothing.
    const nowSeconds = Date.now() / 1000;
    const provedAt = typeof idToken.auth_time === 'number' ? idToken.auth_time : 0;
    if (isConfirming && provedAt < nowSeconds - confirmSeconds - clockSkewSeconds)
      return { fault: 'not_confirmed' };
    if (isConfirming && settings.secondFactorAcr.length > 0 && !hasAcr) return { fault: 'not_confirmed' };
    return {
      ...{ subject: idToken.sub, email: textOf(claims.email), name: textOf(claims.name), hasSecondFactor },
      groups: listOf(claims[settings.groupsClaim]),
      // The session's life begins now, because the provider is asked about it each hour.
      authenticatedAtMs: Math.max(provedAt, nowSeconds - confirmedSeconds) * 1000,
    };
  } catch (error) {
    return { fault: faultOf(error) };
  }
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : '');
const listOf = (value: unknown) =>
  [value].flat().filter((each): each is string => typeof each === 'string' && each !== '');

function faultOf(error: unknown): ProviderFault {
  if (error instanceof client.AuthorizationResponseError)
    return error.error === 'server_error' || error.error === 'temporarily_unavailable'
      ? 'provider_down'
      : 'declined';
  if (error instanceof client.ResponseBodyError)
    return error.status >= 500 || error.status === 429 ? 'provider_down' : 'not_genuine';
  const { code, cause } = error as { code?: string; cause?: unknown };
  if (error instanceof TypeError && cause !== undefined) return 'provider_down';
  if (code === 'OAUTH_TIMEOUT' || code === 'OAUTH_RESPONSE_IS_NOT_JSON') return 'provider_down';
  if (code === 'OAUTH_RESPONSE_IS_NOT_CONFORM') return 'provider_down';
  return 'not_genuine';
}
