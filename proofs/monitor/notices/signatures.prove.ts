/**
 * Proof by forgery: the signatures and timestamps that a destroy notice may have (F-1 to F-4).
 *
 * The reference is a separate HMAC-SHA256 (`testing/second-hmac.ts`), first checked with the vectors of Project
 * Wycheproof, GitHub and Standard Webhooks. Then every notice, unchanged, tampered, late, or in an unusual form, is
 * sent to the monitor's own endpoint. Parsing is recorded: a refused body must not be read.
 */
import { connect } from 'node:net';
import { createTestClock, type TestClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { isFreshTimestamp, noticePath, signNotice, verifyNotice } from '#contracts/destroy-notice/index.ts';
import { type NoticeRules, registerNotices } from '#monitor/surfaces/notices/index.ts';
import { createHttpServer, type HttpServer, parseStrictJson } from '#service-kit/http/index.ts';
import { documented, foreignForms, readVectors } from './documented-vectors.ts';
import { listForgeries, makeBody } from './forgeries.ts';
import { secondHmac } from './second-hmac.ts';

export const name = 'notice-signatures';

export interface SignatureOptions {
  /** Percentage of the tampered notices and of the clock's seconds that are tried. */
  n: number;
  seed: number;
  report(line: string): void;
}

const nowSeconds = 1_790_000_000;
const secret = 'a-secret-that-both-sides-know-well';

export async function prove(options: SignatureOptions) {
  const result = await forge(options, {});
  for (const offence of result.offences.slice(0, 20)) options.report(offence);
  let caught = 0;
  for (const [plant, change] of Object.entries(plantedBugs)) {
    const found = await forge({ n: Math.min(options.n, 10), seed: options.seed }, change);
    options.report(`planted ${plant}: ${found.offences[0] ?? 'NOT NOTICED'}`);
    if (found.offences.length > 0) caught += 1;
  }
  const { vectors, tampered, moments, forms } = result;
  return {
    claim: `${vectors} documented vectors as labelled by a second HMAC and by ours, re-keyed; of ${tampered} tampered notices, ${moments} moments and ${forms} spellings of time none passes that should not`,
    tried: vectors + tampered + moments + forms,
    failures: result.offences.length,
    plantedBugsCaught: `${caught} of ${Object.keys(plantedBugs).length}`,
  };
}

interface Change {
  rules?: Partial<NoticeRules>;
  /** Reads the body before anything is checked. */
  parsesFirst?: boolean;
}

const plantedBugs: Readonly<Record<string, Change>> = {
  prefix_compare: {
    rules: {
      verify(key, timestamp, signature, body, now) {
        const expected = signNotice(key, timestamp, body);
        return isFreshTimestamp(timestamp, now) && signature.length >= 39 && expected.startsWith(signature);
      },
    },
  },
  body_restringified: {
    rules: {
      verify(key, timestamp, signature, body, now) {
        const again = Buffer.from(JSON.stringify(tryParse(body)) ?? '');
        return (
          verifyNotice(key, timestamp, signature, body, now) ||
          verifyNotice(key, timestamp, signature, again, now)
        );
      },
    },
  },
  parsed_before_verified: { parsesFirst: true },
  one_sided_window: {
    rules: {
      isFresh: (timestamp, now) => /^\d{1,12}$/.test(timestamp) && now - Number(timestamp) <= 300,
      verify: (key, timestamp, signature, body) => signNotice(key, timestamp, body) === signature,
    },
  },
  lenient_number: {
    rules: {
      isFresh: (timestamp, now) => Math.abs(now - Number.parseInt(timestamp, 10)) <= 300,
      verify: (key, timestamp, signature, body) => signNotice(key, timestamp, body) === signature,
    },
  },
};

function tryParse(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body).toString());
  } catch {
    return undefined;
  }
}

export interface ForgeResult {
  vectors: number;
  tampered: number;
  moments: number;
  forms: number;
  offences: string[];
}

export async function forge(
  { n, seed }: Pick<SignatureOptions, 'n' | 'seed'>,
  change: Change,
): Promise<ForgeResult> {
  const rules = { isFresh: isFreshTimestamp, verify: verifyNotice, ...change.rules };
  const result: ForgeResult = { vectors: 0, tampered: 0, moments: 0, forms: 0, offences: [] };
  judgeVectors(rules, result);
  const desk = await openDesk(rules, change.parsesFirst ?? false);
  try {
    await tamper(desk, n, seed, result);
    await tryMoments(desk, n, seed, result);
    await tryForms(desk, result);
  } finally {
    await desk.server.stop();
  }
  return result;
}

/** F-1. */
function judgeVectors(rules: NoticeRules, result: ForgeResult): void {
  const stamp = String(nowSeconds);
  const note = (isRight: boolean, what: string) => {
    result.vectors += 1;
    if (!isRight) result.offences.push(what);
  };
  for (const [id, label, key, message, tag] of readVectors()) {
    const bytes = Buffer.from(message === '-' ? '' : message, 'hex');
    const truth = secondHmac(Buffer.from(key, 'hex'), bytes);
    note(
      (truth.slice(0, tag.length) === tag) === (label === 'valid'),
      `vector ${id} is not ${label} to the judge`,
    );
    // In our form: the key's text as the secret, the message as the body, and the tag wrong in the same bits.
    const right = secondHmac(Buffer.from(key), Buffer.concat([Buffer.from(`${stamp}.`), bytes]));
    const given = right
      .slice(0, tag.length)
      .replace(/./g, (digit, at: number) =>
        (
          Number.parseInt(digit, 16) ^
          Number.parseInt(truth[at]!, 16) ^
          Number.parseInt(tag[at]!, 16)
        ).toString(16),
      );
    // A tag of 128 bits is not valid here, even if it is right.
    const isRight = label === 'valid' && tag.length === 64;
    note(
      rules.verify(key, stamp, `sha256=${given}`, bytes, nowSeconds) === isRight,
      `vector ${id} re-keyed is ${isRight ? 'refused' : 'accepted'}`,
    );
  }
  for (const { what, key, message, hex } of documented) {
    note(secondHmac(key, Buffer.from(message)) === hex, `${what}: the judge says otherwise`);
    const body = Buffer.from(message);
    const right = secondHmac(Buffer.from(secret), Buffer.from(`${stamp}.${message}`));
    note(rules.verify(secret, stamp, `sha256=${right}`, body, nowSeconds), `${what} re-keyed is refused`);
    note(!rules.verify(secret, stamp, `sha256=${hex}`, body, nowSeconds), `${what} as it stands is accepted`);
    for (const [form, text] of foreignForms(right))
      note(!rules.verify(secret, stamp, text, body, nowSeconds), `${what} as ${form} is accepted`);
  }
}

interface Desk {
  server: HttpServer;
  clock: TestClock;
  /** Parsed bodies. */
  parsed: number;
  send(body: Uint8Array, headers: Record<string, string>): Promise<{ status: number; answer: string }>;
}

async function openDesk(rules: NoticeRules, parsesFirst: boolean): Promise<Desk> {
  const clock = createTestClock(nowSeconds * 1000);
  const parse = (text: string) => {
    desk.parsed += 1;
    return parseStrictJson(text);
  };
  const verify: NoticeRules['verify'] = (key, stamp, signature, body, now) => {
    if (parsesFirst) {
      try {
        parse(Buffer.from(body).toString());
      } catch {}
    }
    return rules.verify(key, stamp, signature, body, now);
  };
  const server = await createHttpServer({
    host: '127.0.0.1',
    port: 0,
    portSetting: 'none',
    reporter: silentReporter,
    routes: (app) =>
      registerNotices(app, {
        clock,
        parse,
        rules: { isFresh: rules.isFresh, verify },
        connection: { readNoticeSecret: async () => secret, countRefusals: async () => {} },
        inventory: {
          applyNotice: async () => ({
            destroyed_applied: 0,
            devices_archived: 0,
            destroyed_skipped: 0,
            duplicates: 0,
          }),
        },
      }),
  });
  await server.start();
  const desk: Desk = {
    server,
    clock,
    parsed: 0,
    async send(body, headers) {
      const { statusCode, payload } = await server.app.inject({
        method: 'POST',
        url: noticePath,
        headers: { 'content-type': 'application/json', ...headers },
        payload: Buffer.from(body),
      });
      return { status: statusCode, answer: payload };
    },
  };
  return desk;
}

const headersOf = (stamp: string, signature: string) => ({
  'x-operations-timestamp': stamp,
  'x-operations-signature': signature,
});

async function tamper(desk: Desk, n: number, seed: number, result: ForgeResult): Promise<void> {
  const stamp = String(nowSeconds);
  const body = makeBody();
  const signature = signNotice(secret, stamp, body);
  const whole = await desk.send(body, headersOf(stamp, signature));
  if (whole.status !== 200) result.offences.push(`an honest notice is answered with ${whole.status}`);
  // A changed byte outside of whitespace gives another text when re-encoded; this body has no whitespace.
  const compact = Buffer.from('{"cluster_id":7,"virtual_machines":[]}');
  const spaced = Buffer.from('{"cluster_id": 7, "virtual_machines": []}');
  const forgeries = [
    ...thin(listForgeries(body, stamp, signature), n, seed),
    { what: 'the body spaced otherwise', body: spaced, stamp, signature: signNotice(secret, stamp, compact) },
  ];
  const parsedBefore = desk.parsed;
  const answers = new Set<string>();
  for (const forgery of forgeries) {
    const { status, answer } = await desk.send(forgery.body, headersOf(forgery.stamp, forgery.signature));
    result.tampered += 1;
    answers.add(answer);
    if (status !== 401) result.offences.push(`${forgery.what} is answered with ${status}`);
  }
  if (answers.size > 1) result.offences.push(`refusals differ: ${[...answers].slice(0, 2).join(' / ')}`);
  if (desk.parsed !== parsedBefore)
    result.offences.push(`${desk.parsed - parsedBefore} refused bodies were read`);
}

/** F-3: every second around the window, with a monitor clock that is right, or wrong by up to ten seconds. */
async function tryMoments(desk: Desk, n: number, seed: number, result: ForgeResult): Promise<void> {
  const body = Buffer.from('{"cluster_id":7,"virtual_machines":[]}');
  const moments: { offset: number; skew: number }[] = [];
  for (let skew = -10; skew <= 10; skew += 1) {
    for (let offset = -305; offset <= 305; offset += 1) moments.push({ offset, skew });
  }
  const edges = moments.filter(({ offset, skew }) => Math.abs(Math.abs(offset - skew) - 300) <= 1);
  for (const { offset, skew } of n >= 100 ? moments : [...edges, ...thin(moments, n, seed)]) {
    desk.clock.stepWall((nowSeconds + skew) * 1000 - desk.clock.nowMs());
    const stamp = String(nowSeconds + offset);
    const { status } = await desk.send(body, headersOf(stamp, signNotice(secret, stamp, body)));
    result.moments += 1;
    const isFresh = Math.abs(offset - skew) <= 300;
    if ((status === 200) !== isFresh)
      result.offences.push(`${offset} s off, by a clock ${skew} s wrong, is answered with ${status}`);
  }
  desk.clock.stepWall(nowSeconds * 1000 - desk.clock.nowMs());
  for (const offset of [-301, 301, -100_000, 100_000]) {
    result.moments += 1;
    if (!(await isRefusedUnread(desk, nowSeconds + offset)))
      result.offences.push(`${offset} s off is not refused before the body has come`);
  }
}

/** Sends the header of a request without its body. Returns true when it is refused. */
async function isRefusedUnread(desk: Desk, stamp: number): Promise<boolean> {
  const url = new URL(desk.server.url);
  const socket = connect(Number(url.port), url.hostname);
  const lines = [
    `POST ${noticePath} HTTP/1.1`,
    'host: localhost',
    'content-type: application/json',
    'content-length: 1000',
    `x-operations-timestamp: ${stamp}`,
    `x-operations-signature: sha256=${'0'.repeat(64)}`,
  ];
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  const answer = await new Promise<string>((done) => {
    const timer = setTimeout(() => done(''), 60_000);
    socket.once('data', (data) => {
      clearTimeout(timer);
      done(data.toString());
    });
    socket.once('error', () => done(''));
  });
  socket.destroy();
  return answer.startsWith('HTTP/1.1 401 ');
}

/** F-4: other spellings of a valid time, each signed correctly as written. */
async function tryForms(desk: Desk, result: ForgeResult): Promise<void> {
  const now = String(nowSeconds);
  const body = Buffer.from('{"cluster_id":7,"virtual_machines":[]}');
  const forms = [
    ...['', '.', '-', '+', '0', '-0', '00', 'NaN', 'Infinity', 'null', 'now', '1e9', '1.79e9', '179e7'],
    ...[
      `${now}.0`,
      `.${now}`,
      `${now}.`,
      `+${now}`,
      `-${now}`,
      `0${now}`,
      `${now}e0`,
      `${now}abc`,
      `${now}n`,
    ],
    ...[
      `${now}000`,
      `${now} 1`,
      `${now},${now}`,
      `${now.slice(0, 4)}_${now.slice(4)}`,
      `"${now}"`,
      `${now}%20`,
    ],
    ...[`0x${nowSeconds.toString(16)}`, `0b${nowSeconds.toString(2)}`, `0o${nowSeconds.toString(8)}`],
    ...['99999999999999999999', new Date(nowSeconds * 1000).toISOString(), `${now}.${body}`],
  ];
  for (const form of forms) {
    const { status } = await desk.send(body, headersOf(form, signNotice(secret, form, body)));
    result.forms += 1;
    if (status !== 401) result.offences.push(`the timestamp "${form}" is answered with ${status}`);
  }
  // Node can not send digits of other scripts in a header, so the rule itself is called.
  for (const zero of [0x660, 0x966, 0xff10]) {
    const text = now.replace(/\d/g, (digit) => String.fromCodePoint(zero + Number(digit)));
    result.forms += 1;
    if (isFreshTimestamp(text, nowSeconds)) result.offences.push(`digits from U+${zero.toString(16)} pass`);
  }
}

/** Every hundredth times `n`, with an offset from the seed. */
function thin<T>(items: readonly T[], n: number, seed: number): T[] {
  if (n >= 100) return [...items];
  return items.filter((_, i) => (i * 7919 + seed * 104_729) % 100 < n);
}
