/** What a surface's search answers to the command palette, as JSON. */
import type { FastifyReply } from 'fastify';
import { safeHref } from './link.ts';

/** One thing that was found. */
export interface PaletteHit {
  /** The heading that it stands under: "Servers", "Addresses". */
  kind: string;
  text: string;
  /** What tells it from others of its name: its owner, its state. */
  detail: string;
  href: string;
}

/** Hits of each kind; more are a matter for the list's own search. */
export const PALETTE_HITS_MAX = 6;

/** Longer texts find nothing more. */
export const PALETTE_TEXT_MAX = 100;

/** Sends the hits in their order. */
export function sendPaletteHits(reply: FastifyReply, hits: readonly PaletteHit[]): FastifyReply {
  const checked = hits.map((hit) => ({ ...hit, href: safeHref(hit.href) }));
  return reply.type('application/json; charset=utf-8').send(JSON.stringify(checked));
}
