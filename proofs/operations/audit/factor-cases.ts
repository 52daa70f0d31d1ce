import { Secret, TOTP } from 'otpauth';
import type { Cases } from './case.ts';
import type { Stage } from './stage.ts';

/** Gives a person an authenticator app. */
export async function addApp({ world }: Stage, personId: number, email: string): Promise<void> {
  await world.factors.removeTotp(personId);
  const { secret } = (await world.factors.beginTotp(personId, email))!;
  const confirmed = await world.factors.confirmTotp(personId, codeOf(secret, world));
  if (confirmed === null) throw new Error('the code of a new app was refused');
}

const codeOf = (secret: string, { clock }: Stage['world']) =>
  new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: clock.nowMs() });

/** The routes of one's own second factors, of a customer or of staff. */
export function factorCases(base: '/client/account' | '/console/account'): Cases {
  const isStaff = base.startsWith('/console');
  const who = (stage: Stage) => (isStaff ? stage.staff : stage.owner);
  const post = (stage: Stage, path: string, fields: Record<string, string> = {}) =>
    (isStaff ? stage.operated : stage.owned).post(`${base}/${path}`, fields);
  const withApp = async (stage: Stage) => addApp(stage, who(stage).id, who(stage).email);
  return {
    [`POST ${base}/app/confirm`]: [
      'second_factor.add_app',
      async (stage) => {
        const { id, email } = who(stage);
        await stage.world.factors.removeTotp(id);
        const { secret } = (await stage.world.factors.beginTotp(id, email))!;
        return post(stage, 'app/confirm', { code: codeOf(secret, stage.world) });
      },
    ],
    [`POST ${base}/recovery`]: [
      'second_factor.renew_recovery_codes',
      async (stage) => {
        await withApp(stage);
        const answer = await post(stage, 'recovery');
        await stage.world.factors.removeTotp(who(stage).id);
        return answer;
      },
    ],
    [`POST ${base}/app/remove`]: [
      'second_factor.remove_app',
      async (stage) => {
        await withApp(stage);
        return post(stage, 'app/remove');
      },
    ],
  };
}
