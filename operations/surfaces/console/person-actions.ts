import { actionButton, askButton, type Content } from '#service-kit/pages/index.ts';
import { passwordLinkButton, removeFactorsButton } from '#service-kit/web/index.ts';

export interface PersonActionsOptions {
  /** The path below which `link`, `factors` and `active` take the forms. */
  base: string;
  csrfToken: string;
  person: { id: number; name: string; isActive: boolean };
  /** What deactivating them does. */
  deactivation: string;
}

/** What an operator can do about the access of one person: our own people and members of customers alike. */
export function personActions({ base, csrfToken, person, deactivation }: PersonActionsOptions): Content {
  const fields = { person: person.id };
  return [
    person.isActive && passwordLinkButton({ action: `${base}/link`, csrfToken, fields }),
    removeFactorsButton({
      id: `factors-${person.id}`,
      who: person.name,
      action: `${base}/factors`,
      csrfToken,
      fields,
    }),
    person.isActive
      ? askButton(
          {
            id: `deactivate-${person.id}`,
            label: 'Deactivate',
            title: `Deactivate ${person.name}?`,
            action: `${base}/active`,
            csrfToken,
            fields: { ...fields, active: 'no' },
          },
          deactivation,
        )
      : actionButton({
          action: `${base}/active`,
          csrfToken,
          label: 'Activate',
          fields: { ...fields, active: 'yes' },
        }),
  ];
}
