/** What is asked for to ignore findings, of one or of several. */
import { schemas } from '#contracts/customer-api/index.ts';
import type { FindingRow, Server } from '#operations/views/index.ts';
import { type Content, field } from '#service-kit/pages/index.ts';

/** How long an ignore may hold, in days; empty: until it is ended. */
export const ignoreDays = ['', '30', '90', '180', '365'] as const;

/** What a refused form held, and what was wrong with it. */
export interface IgnoreInput {
  reason: string;
  days: string;
  isEverywhere: boolean;
  error: string;
}

export function ignoreFields(server: Pick<Server, 'addresses'>, refused: IgnoreInput | undefined): Content {
  return [
    field({
      name: 'reason',
      label: 'Reason',
      hint: 'For example: patched by the distribution, or not reachable from the internet.',
      required: true,
      maxLength: schemas.findingReasonMax,
      value: refused?.reason ?? '',
    }),
    field({
      kind: 'select',
      name: 'days',
      label: 'For how long',
      value: refused?.days ?? '90',
      options: ignoreDays.map((value) => ({
        value,
        label: value === '' ? 'Until it is ended' : value === '365' ? 'A year' : `${value} days`,
      })),
    }),
    server.addresses.length > 1 &&
      field({
        kind: 'checkbox',
        name: 'everywhere',
        label: 'At every address of this server',
        hint: 'Where the same version on the same port has this finding.',
        checked: refused?.isEverywhere ?? true,
      }),
  ];
}

/** A finding as the value of a box: with the version that the reader has seen. */
export const pickOf = ({ address, transport, port, cveId, fingerprint }: FindingRow): string =>
  [address, `${transport}-${port}`, cveId, fingerprint].join(' ');
