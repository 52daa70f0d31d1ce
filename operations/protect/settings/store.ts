/** Every statement on the protection settings of servers. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { defaultSettings, type ProtectSettings, type StoredSettings } from './settings.ts';

/** The settings of a server in this tenant; the defaults where nothing was chosen. */
export async function findSettings(
  db: Queryable,
  of: { serverId: number; tenantId: number },
): Promise<StoredSettings> {
  const { rows } = await sql<StoredSettings>`
    select views_on, views_on_since, attack_mail, attack_mail_since, attack_webhook, attack_webhook_since, port_mail,
      port_mail_since, port_webhook, port_webhook_since, finding_mail, finding_mail_since, finding_webhook,
      finding_webhook_since
    from protect_settings where server_id = ${of.serverId} and tenant_id = ${of.tenantId}`.execute(db);
  return (
    rows[0] ?? {
      ...defaultSettings,
      viewsOnSince: null,
      attackMailSince: null,
      attackWebhookSince: null,
      portMailSince: null,
      portWebhookSince: null,
      findingMailSince: null,
      findingWebhookSince: null,
    }
  );
}

/** Those of these servers whose protection views are off. */
export async function listHidden(
  db: Queryable,
  serverIds: readonly number[],
  tenantIds: readonly number[],
): Promise<number[]> {
  const { rows } = await sql<{ id: number }>`
    select server_id as id from protect_settings
    where server_id = any(${[...serverIds]}::bigint[]) and tenant_id = any(${[...tenantIds]}::bigint[])
      and not views_on`.execute(db);
  return rows.map(({ id }) => id);
}

/** Stores a choice. What goes from off to on is on since now; what stays as it is keeps its time. Without a row the defaults held. */
export async function putSettings(
  tx: Queryable,
  of: { serverId: number; tenantId: number },
  settings: ProtectSettings,
): Promise<void> {
  const { viewsOn, attackMail, attackWebhook, portMail, portWebhook, findingMail, findingWebhook } = settings;
  await sql`
    insert into protect_settings (server_id, tenant_id, views_on, attack_mail, attack_webhook, port_mail, port_mail_since,
      port_webhook, port_webhook_since, finding_mail, finding_mail_since, finding_webhook, finding_webhook_since)
    values (${of.serverId}, ${of.tenantId}, ${viewsOn}, ${attackMail}, ${attackWebhook}, ${portMail},
      case when ${portMail} then svc_now() end, ${portWebhook}, case when ${portWebhook} then svc_now() end,
      ${findingMail}, case when ${findingMail} <> 'off' then svc_now() end, ${findingWebhook},
      case when ${findingWebhook} then svc_now() end)
    on conflict (server_id) do update set
      views_on = excluded.views_on, attack_mail = excluded.attack_mail, attack_webhook = excluded.attack_webhook,
      views_on_since = case when protect_settings.views_on or not excluded.views_on
        then protect_settings.views_on_since else svc_now() end,
      attack_mail_since = case when protect_settings.attack_mail or not excluded.attack_mail
        then protect_settings.attack_mail_since else svc_now() end,
      attack_webhook_since = case when protect_settings.attack_webhook or not excluded.attack_webhook
        then protect_settings.attack_webhook_since else svc_now() end,
      port_mail = excluded.port_mail, port_webhook = excluded.port_webhook,
      port_mail_since = case when protect_settings.port_mail or not excluded.port_mail
        then protect_settings.port_mail_since else svc_now() end,
      port_webhook_since = case when protect_settings.port_webhook or not excluded.port_webhook
        then protect_settings.port_webhook_since else svc_now() end,
      finding_mail = excluded.finding_mail, finding_webhook = excluded.finding_webhook,
      finding_mail_since = case when protect_settings.finding_mail <> 'off' or excluded.finding_mail = 'off'
        then protect_settings.finding_mail_since else svc_now() end,
      finding_webhook_since = case when protect_settings.finding_webhook or not excluded.finding_webhook
        then protect_settings.finding_webhook_since else svc_now() end,
      changed_at = svc_now()`.execute(tx);
}
