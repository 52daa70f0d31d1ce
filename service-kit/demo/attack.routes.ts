/** The demo's page that attacks a server: a button, the attack's progress, and where it is seen. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { hasCode } from '#common/errors/index.ts';
import { titleOfClass } from '#contracts/attack-classes.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import {
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
import { type AttackState, attackSeconds, type DemoAttack, demoAttackClasses } from './attack.ts';
import { requireLocal } from './local-demo.ts';

export interface AttackTarget {
  address: string;
  name: string;
  /** The page that shows the attack best. */
  href: string;
}

export interface AttackPage {
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
  app.get(page.path, { schema: { hide: true } as object }, (request, reply) => show(request, reply));
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
