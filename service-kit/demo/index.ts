/**
 * What only a demo on this machine has: one-click doors, attacks by a button, and a line on first pages that leads to the best one.
 *
 * None of it exists unless the demo world is on and the program listens on loopback; what changes something answers this machine alone.
 */
import { banner, type Content, link } from '#service-kit/pages/index.ts';
import { createDemoAttack, type DemoAttack } from './attack.ts';
import { isLocalDemo } from './local-demo.ts';

export { registerDemoAttack } from './attack.routes.ts';
export { isLocalDemo, requireLocal } from './local-demo.ts';
export type { DemoAttack };

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
