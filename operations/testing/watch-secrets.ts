/**
 * Follows every root password and every token of a test run, and says where one stood that must not: in an answer, in a
 * log line, or in the database beside the order's own row (API-2.1.a, API-2.1.c, API-2.3.b).
 *
 * A password may stand in the answer that its order gave, a token in one answer of a page that makes tokens. It knows
 * the secrets by what was made, not by what a field is called, so a leak under any name is found.
 */
import type pg from 'pg';
import { createReporter } from '#common/reporter/index.ts';
import type { AdminProjects } from '#operations/admin-projects/index.ts';
import type { ApiKeys } from '#operations/api-keys/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { readTables } from '#service-kit/testing/find-in-rows.ts';

const passwordLength = 20;
const secretLength = 43;
const tokenPattern = /svc(?:adm|sen)?_[a-z0-9]{16}_[A-Za-z0-9_-]{43}/g;
const makingPasswords =
  /^POST (\/api\/v[12]\/servers(\/\d+\/actions\/(rebuild|rescue|reset-password))?|\/client\/servers\/(new|\d+\/(rebuild|rescue|reset-password)))\/?$/;
const makingTokens =
  /^POST (\/api\/v2\/keys\/?|\/client\/developer\/?|\/client\/developer\/rotate|\/console\/projects\/[^/]+\/tokens\/?)$/;

export function createSecretWatch() {
  const tokens = new Set<string>();
  /** Words that could hold a secret, and where they were first said. */
  const said = new Map<string, string>();
  const leaks = new Set<string>();
  const shownTokens = new Set<string>();
  let bytes = 0;

  const note = (where: string, text: string) => {
    bytes += text.length;
    for (const word of wordsOf(text)) if (!said.has(word)) said.set(word, where);
  };
  const noteAnswer = (route: string, text: string) => {
    const mayShowToken = makingTokens.test(route);
    for (const token of new Set(text.match(tokenPattern))) {
      tokens.add(token);
      if (!mayShowToken || shownTokens.has(token)) leaks.add(`a token in an answer to ${route}`);
      shownTokens.add(token);
    }
    const rest = text.replaceAll(tokenPattern, '');
    note(`an answer to ${route}`, makingPasswords.test(route) ? withoutOwnPassword(rest) : rest);
  };
  return {
    /** Writes nowhere; what would be written is looked at. */
    reporter: createReporter({
      program: 'test',
      format: 'json',
      level: 'debug',
      write: (line) => note('the log', line),
    }),
    watchKeys: (usual: ApiKeys): ApiKeys => ({
      ...usual,
      async issueKey(actor, input) {
        const issued = await usual.issueKey(actor, input);
        tokens.add(issued.token);
        return issued;
      },
      async rotateKey(actor, keyId) {
        const issued = await usual.rotateKey(actor, keyId);
        tokens.add(issued.token);
        return issued;
      },
    }),
    watchTokens: (usual: AdminProjects): AdminProjects => ({
      ...usual,
      async issueToken(...given) {
        const issued = await usual.issueToken(...given);
        tokens.add(issued.token);
        return issued;
      },
    }),
    /** To be called before routes are registered. */
    watchApp(app: App) {
      app.addHook('onSend', async (request, reply, payload) => {
        const route = `${request.method} ${request.url.split('?')[0]}`;
        if (typeof payload === 'string') noteAnswer(route, payload);
        note(`a header of ${route}`, Object.values(reply.getHeaders()).join('\n'));
        return payload;
      });
    },
    /** Text that left the program on another way, such as a webhook. */
    watchText: note,
    /** Where secrets stood that must not; how many were looked for, in how much. */
    async findLeaks(pool: pg.Pool): Promise<{ leaks: string[]; secrets: number; bytes: number }> {
      const { rows } = await pool.query<{ root_password: string }>(
        `select root_password from server_orders where root_password is not null
        union all select root_password from server_actions where root_password is not null`,
      );
      const passwords = new Set(
        rows.map((row) => row.root_password).filter((one) => one.length === passwordLength),
      );
      const secrets = new Set([...tokens].map((token) => token.slice(-secretLength)));
      // The password may stand on its order, and on the action that sets it.
      const withoutIt = "(to_jsonb(t) - 'root_password')";
      const shown = { server_orders: withoutIt, server_actions: withoutIt };
      for (const { name, text } of await readTables(pool, shown)) note(`the table ${name}`, text);
      for (const [word, where] of said) {
        if (holds(word, passwords, passwordLength)) leaks.add(`a root password in ${where}`);
        if (holds(word, secrets, secretLength)) leaks.add(`a token's secret in ${where}`);
      }
      return { leaks: [...leaks], secrets: passwords.size + secrets.size, bytes };
    },
  };
}

/** The one password that an answer to an order may hold: its own. */
function withoutOwnPassword(text: string): string {
  const shown = /"root_password":"([^"]+)"|<code>([^<]{20})<\/code>/.exec(text);
  return shown === null ? text : text.replaceAll(shown[1] ?? shown[2]!, '');
}

function wordsOf(text: string): string[] {
  return text.match(/[A-Za-z0-9_-]{20,}/g) ?? [];
}

function holds(word: string, secrets: ReadonlySet<string>, length: number): boolean {
  for (let from = 0; from + length <= word.length; from += 1)
    if (secrets.has(word.slice(from, from + length))) return true;
  return false;
}
