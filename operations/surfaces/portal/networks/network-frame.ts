/** What the pages about networks share: words and tones of states, and the outcome of a change. */
import { CodedError } from '#common/errors/index.ts';
import type { AttachmentState, Network } from '#operations/views/network-store.ts';
import { badge, type Html, type Tone } from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';

const nicStates: Record<AttachmentState, { tone: Tone; text: string }> = {
  attaching: { tone: 'info', text: 'attaching' },
  attached: { tone: 'good', text: 'attached' },
  detaching: { tone: 'warn', text: 'detaching' },
  error: { tone: 'bad', text: 'not connected' },
};

export function nicState(state: AttachmentState): { tone: Tone; text: string } {
  return nicStates[state];
}

export function nicBadge(state: AttachmentState): Html {
  return badge(nicStates[state].tone, nicStates[state].text);
}

const syncTones = { pending: 'info', synced: 'good', error: 'bad' } as const;
const syncTexts = { pending: 'sync under way', synced: 'in sync', error: 'sync failed' } as const;

export function syncBadge(network: Network): Html {
  return badge(syncTones[network.syncState], syncTexts[network.syncState]);
}

/** What a form hears back: the sentence of a refusal, and the field that it is about. */
export interface FormFault {
  message: string;
  /** Null: the form as a whole. */
  field: string | null;
}

/** Runs a change; its refusal, or null. What is gone by now is the usual 404. */
export async function faultOf(change: () => Promise<unknown>): Promise<FormFault | null> {
  try {
    await change();
    return null;
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
    if (/\.(server_)?not_found$/.test(error.code)) throw noSuchPage();
    if (error.code === 'accounts.forbidden') throw error;
    const [first] = (error.details.fields ?? []) as { path: string; message: string }[];
    if (first) return { message: sentence(first.message), field: first.path };
    const field = typeof error.details.field === 'string' ? error.details.field : fieldOf[error.code];
    return { message: error.message, field: field ?? null };
  }
}

/** The same, for a form that says it in one sentence. */
export const refusalOf = async (change: () => Promise<unknown>): Promise<string | null> =>
  (await faultOf(change))?.message ?? null;

const fieldOf: Record<string, string> = {
  'networks.cidr_not_allowed': 'cidr',
  'networks.cidr_overlap': 'cidr',
  'networks.ip_in_use': 'ip',
};

/** A field's fault, which the API words as the end of a sentence, as one of its own. */
export function sentence(words: string): string {
  return `${words[0]!.toUpperCase()}${words.slice(1)}${words.endsWith('.') ? '' : '.'}`;
}

export const networksPath = '/client/networks/';
