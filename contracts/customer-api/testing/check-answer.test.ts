/** Plants each kind of drift between what the API answers and what its document says, and sees it found. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAnswerChecker, type ObservedAnswer } from './check-answer.ts';

const requestId = 'req_01JD3Z6Q4T0V9N8K2M5B7C1XWE';
const json = { 'content-type': 'application/json; charset=utf-8', 'x-request-id': requestId };
const workspaces = {
  tenants: [
    {
      id: 12,
      name: 'Acme',
      slug: 'acme',
      status: 'active',
      is_default: true,
      billing_account_id: 12,
      currency: 'USD',
      server_count: 1,
      network_count: 0,
      api_access: { allowed: true, code: null, reason: null },
      created_at: '2025-11-03T09:00:00Z',
    },
  ],
  pagination: { limit: 1, total: 1, has_more: false, next_cursor: null },
};
type Workspaces = typeof workspaces;

/** The answer of `GET /api/v2/tenants`, with its body changed in one way. */
function listed(change: (body: Workspaces) => unknown = () => {}): ObservedAnswer {
  const body = structuredClone(workspaces);
  change(body);
  return {
    method: 'GET',
    path: '/api/v2/tenants',
    status: 200,
    headers: { ...json, etag: '"abc"', 'x-api-quota-used': '17' },
    text: JSON.stringify(body),
  };
}

function refused(status: number, error: object): ObservedAnswer {
  const whole = { message: 'No.', request_id: requestId, retryable: false, doc_url: '/docs/api/', ...error };
  return {
    method: 'GET',
    path: '/api/v2/tenants',
    status,
    headers: json,
    text: JSON.stringify({ error: whole }),
  };
}

const { check } = createAnswerChecker();

test('an answer as documented passes', () => {
  check(listed());
  check(refused(403, { code: 'forbidden', reason: 'account_suspended' }));
  check({ ...listed(), method: 'HEAD', text: '' });
  check({ ...listed(), status: 304, text: '' });
  check({ ...refused(404, { code: 'not_found' }), path: '/api/v2/nothing-here' });
});

const drifts: [string, ObservedAnswer, RegExp][] = [
  [
    'a member that is not documented',
    listed((body) => Object.assign(body.tenants[0]!, { iban: 'DE' })),
    /iban/,
  ],
  ['a missing member', listed((body) => Reflect.deleteProperty(body.tenants[0]!, 'slug')), /slug/],
  [
    'a moment that is none',
    listed((body) => Object.assign(body.tenants[0]!, { created_at: 'yesterday' })),
    /date-time/,
  ],
  ['a word outside its list', listed((body) => Object.assign(body.tenants[0]!, { status: 'new' })), /status/],
  ['null where it is not documented', listed((body) => Object.assign(body, { pagination: null })), /object/],
  ['another status', { ...listed(), status: 206 }, /206, a status that/],
  ['an undocumented header', { ...listed(), headers: { ...listed().headers, 'x-node': 'n3' } }, /x-node/],
  [
    'a header of another type',
    { ...listed(), headers: { ...listed().headers, 'x-api-quota-used': 'x' } },
    /quota/,
  ],
  ['a missing required header', { ...listed(), headers: json }, /without its header etag/],
  ['no request id', { ...listed(), headers: { ...listed().headers, 'x-request-id': '1' } }, /X-Request-Id/],
  ['quota headers on a 401', { ...refused(401, {}), headers: { ...json, 'x-api-quota-used': '1' } }, /quota/],
  ['an undocumented reason', refused(403, { code: 'forbidden', reason: 'network_in_use' }), /network_in_use/],
  ['an undocumented code', refused(403, { code: 'nope', reason: 'account_closed' }), /code/],
  ['an HTML error', { ...refused(503, {}), headers: { ...json, 'content-type': 'text/html' } }, /text\/html/],
  ['a body on a 304', { ...listed(), status: 304 }, /with a body/],
  ['an answer on no documented path', { ...listed(), path: '/api/v2/nothing-here' }, /no such path/],
  ['an answer to no documented method', { ...listed(), method: 'DELETE' }, /no such method/],
];

for (const [drift, answer, says] of drifts) {
  test(`planted drift is found: ${drift}`, () => assert.throws(() => check(answer), says));
}
