/**
 * What only a demo on this machine has: one-click doors, attacks by a button, and a line on first pages that leads to the best one.
 *
 * None of it exists unless the demo world is on and the program listens on loopback; what changes something answers this machine alone.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { CodedError, hasCode } from '#common/errors/index.ts';
import { staysOnMachine } from '#common/transport/index.ts';
import { titleOfClass } from '#contracts/attack-classes.ts';
import { type App, HttpError, hidden, isLoopback } from '#service-kit/http/index.ts';
import {
  banner,
  type Content,
  emptyState,
  field,
  form,
  link,
  pageHeader,
  progress,
  refreshing,
  section,
} from '#service-kit/pages/index.ts';
import { otherSiteFault } from '#service-kit/sessions/index.ts';

export interface Demo {
  /** Null: this demo has no network in which packets could be sent. */
  attack: DemoAttack | null;
}

/** What surfaces of a local demo have; null of any other program. `attack` is a command as a JSON array of words. */
export function demoOf(program: { isDemo: boolean; host: string; attack: string | null }): Demo | null {
  if (!isLocalDemo(program)) return null;
  const { attack } = program;
  return { attack: attack === null ? null : createDemoAttack(JSON.parse(attack) as string[]) };
}

/** Above a first page: where to look first. */
export function demoBanner(text: string, links: readonly { href: string; label: string }[]): Content {
  return banner({
    tone: 'info',
    title: 'This is the demo',
    text,
    actions: links.map(({ href, label }) => link(href, label, { kind: 'button' })),
  });
}

// An attack on a server of the demo, by the command that the demo names: one at a time, of a minute.

interface AttackState {
  target: string;
  attackClass: string;
  startedAtMs: number;
  /** What the command said last, once it has ended; null while it runs. */
  end: { isFault: boolean; text: string } | null;
}

export type DemoAttack = ReturnType<typeof createDemoAttack>;

/** What the demo can send, by the name of the class that sensors report. */
const demoAttackClasses = ['syn_flood', 'amplification', 'icmp_flood'] as const;
const attackSeconds = 60;

/** `words` are the command, to which the target, the class and the seconds are added. */
function createDemoAttack(words: readonly string[]) {
  let state: AttackState | null = null;
  return {
    /** The last attack of this process, or null. */
    state: () => state,
    /** Throws `demo.attack_running` while one goes on. */
    start(target: string, attackClass: (typeof demoAttackClasses)[number]): void {
      if (state !== null && state.end === null)
        throw new CodedError(
          'demo.attack_running',
          `An attack on ${state.target} is running. Wait for its end.`,
        );
      const begun: AttackState = { target, attackClass, startedAtMs: Date.now(), end: null };
      state = begun;
      const options = ['--target', target, '--class', attackClass, '--seconds', String(attackSeconds)];
      const child = spawn(words[0]!, [...words.slice(1), ...options], { stdio: ['ignore', 'pipe', 'pipe'] });
      void lastLineOf(child).then((end) => {
        begun.end = end;
      });
    },
  };
}

/** The last line that the command wrote, when it has ended. */
async function lastLineOf(child: ChildProcess): Promise<NonNullable<AttackState['end']>> {
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-4_000);
    });
  return new Promise((done) => {
    child.once('error', (error) => done({ isFault: true, text: error.message }));
    child.once('close', (code) => {
      const text =
        said
          .trim()
          .split('\n')
          .at(-1)
          ?.replace(/^svc: /, '') || 'it said nothing';
      done({ isFault: code !== 0, text });
    });
  });
}

// The demo's page that attacks a server: a button, the attack's progress, and where it is seen.

interface AttackTarget {
  address: string;
  name: string;
  /** The page that shows the attack best. */
  href: string;
}

interface AttackPage {
  attack: DemoAttack;
  /** As the page is registered, and as links name it. */
  path: string;
  href: string;
  /** Servers that this person may attack. */
  targetsOf(request: FastifyRequest): Promise<readonly AttackTarget[]>;
  /** Null for a person who may only watch. */
  csrfTokenOf(request: FastifyRequest): string | null;
  send(request: FastifyRequest, reply: FastifyReply, content: Content, status: number): FastifyReply;
}

const Body = Type.Object({
  target: Type.String({ maxLength: 45 }),
  class: Type.Enum([...demoAttackClasses]),
});

/** Register it for a local demo only (`isLocalDemo`), behind the hook that admits signed-in people. */
export function registerDemoAttack(app: App, page: AttackPage): void {
  const show = async (request: FastifyRequest, reply: FastifyReply, fault?: string) =>
    page.send(
      request,
      reply,
      contentOf(page, request, await page.targetsOf(request), fault),
      fault ? 409 : 200,
    );
  app.get(page.path, { schema: hidden }, (request, reply) => show(request, reply));
  const schema = { hide: true, body: Body } as const;
  app.post(page.path, { schema }, async (request, reply) => {
    requireLocal(request, 'The demo attacks from this machine only.');
    const target = (await page.targetsOf(request)).find(({ address }) => address === request.body.target);
    if (!target)
      throw new HttpError(404, { code: 'not_found', message: 'No running server has this address.' });
    try {
      page.attack.start(target.address, request.body.class);
    } catch (error) {
      if (!hasCode(error, 'demo.attack_running')) throw error;
      return show(request, reply, (error as Error).message);
    }
    return reply.redirect(page.href, 303);
  });
}

function contentOf(
  page: AttackPage,
  request: FastifyRequest,
  targets: readonly AttackTarget[],
  fault: string | undefined,
): Content {
  const state = page.attack.state();
  const isRunning = state !== null && state.end === null;
  const csrfToken = page.csrfTokenOf(request);
  return [
    pageHeader({
      title: 'Attack a server',
      state: {
        tone: isRunning ? 'bad' : 'info',
        text: 'Real packets from the demo’s own internet. None leaves this machine.',
      },
    }),
    refreshing({ id: 'attack', url: page.href, everySeconds: 5 }, state && stateOf(state, targets)),
    csrfToken !== null &&
      (targets.length === 0
        ? emptyState({ title: 'No running server', text: 'Deploy or start a server, then attack it here.' })
        : form(
            {
              action: page.href,
              csrfToken,
              submit: `Attack for ${attackSeconds} seconds`,
              submitKind: 'danger',
              error: fault,
            },
            [
              field({
                kind: 'select',
                name: 'target',
                label: 'Server',
                value: state?.target,
                options: targets.map(({ address, name }) => ({
                  value: address,
                  label: `${name}, ${address}`,
                })),
              }),
              field({
                kind: 'select',
                name: 'class',
                label: 'Attack',
                value: state?.attackClass,
                options: demoAttackClasses.map((value) => ({ value, label: titleOfClass(value) })),
              }),
            ],
          )),
  ];
}

function stateOf(state: AttackState, targets: readonly AttackTarget[]): Content {
  const { target, attackClass, startedAtMs, end } = state;
  const elapsed = Math.min(attackSeconds, Math.round((Date.now() - startedAtMs) / 1000));
  const href = targets.find(({ address }) => address === target)?.href;
  return section(
    {
      title: `${titleOfClass(attackClass)} on ${target}`,
      actions: href && link(href, 'Watch it', { kind: 'primary' }),
    },
    end === null
      ? progress({
          label: 'Sending packets',
          value: elapsed,
          max: attackSeconds,
          detail: `${elapsed} of ${attackSeconds} s`,
        })
      : `${end.isFault ? 'It failed' : 'It is over'}: ${end.text}.`,
  );
}

// Where routes of the demo answer: in a demo world, on this machine alone.

/** Whether the program has the demo world and listens on this machine alone. */
export function isLocalDemo({ isDemo, host }: { isDemo: boolean; host: string }): boolean {
  return isDemo && (host === 'localhost' || isLoopback(host));
}

/**
 * Throws unless the request comes from this machine, under a name that is always this machine's, and not from a page of another
 * site. `refusal` is for the person who asked.
 */
export function requireLocal(request: FastifyRequest, refusal: string): void {
  const isHere = isLoopback(request.ip) && staysOnMachine(`http://${request.host}`);
  const isChange = !['GET', 'HEAD'].includes(request.method);
  if (!isHere || (isChange && otherSiteFault(request) !== null))
    throw new HttpError(403, { code: 'forbidden', message: refusal });
}
