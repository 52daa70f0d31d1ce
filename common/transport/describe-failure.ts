/**
 * Why a request got no answer, in words of ours: what another server wrote, such as the names in its certificate, is never stored
 * or shown.
 */
const authority =
  'its certificate is of an unknown authority; to trust an authority of your own, set NODE_EXTRA_CA_CERTS to the file with its certificate';

const reasons: Readonly<Record<string, string>> = {
  SELF_SIGNED_CERT_IN_CHAIN: authority,
  DEPTH_ZERO_SELF_SIGNED_CERT: authority,
  UNABLE_TO_GET_ISSUER_CERT: authority,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: authority,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: authority,
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet; check the clocks of both machines',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is of another host name',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak TLS at this address; for http, change the URL',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'it does not speak TLS at this address; for http, change the URL',
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was closed',
  UND_ERR_SOCKET: 'the connection was closed',
  ENOTFOUND: 'its name does not resolve',
  EAI_AGAIN: 'its name does not resolve now',
  EHOSTUNREACH: 'there is no route to it',
  ENETUNREACH: 'there is no route to it',
  ETIMEDOUT: 'no connection in time',
  UND_ERR_CONNECT_TIMEOUT: 'no connection in time',
};

/** One phrase for an error of `fetch` or of a socket: `its certificate has expired`. */
export function describeTransportFailure(error: unknown): string {
  const { name, code, cause } = (error ?? {}) as { name?: string; code?: unknown; cause?: unknown };
  if (name === 'TimeoutError' || name === 'AbortError') return 'no answer in time';
  if (typeof code === 'string' && reasons[code]) return reasons[code];
  if (error instanceof AggregateError && error.errors.length > 0)
    return describeTransportFailure(error.errors[0]);
  if (cause) return describeTransportFailure(cause);
  if (typeof code !== 'string' || !/^[A-Z_0-9]{3,60}$/.test(code)) return 'the connection failed';
  return /^(CERT|ERR_TLS|ERR_SSL|EPROTO)/.test(code)
    ? `TLS failed (${code})`
    : `the connection failed (${code})`;
}
