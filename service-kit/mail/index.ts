/**
 * Mail to people: one-time links and notices about their account.
 *
 * A mail is handed to the mail server at once and never queued in the database, because a queued mail would keep a
 * one-time link in readable form. A mail that fails is reported to the person who asked for it, or logged without its
 * text; the person asks again. Without a mail server nothing is sent, and each operation says what it does instead.
 */

export { listCaughtMail } from './catch-mail.ts';
export { registerCaughtMail } from './caught-mail.page.ts';
export { createPost, type Delivery, type Mail, ownUrl, type Post } from './post.ts';
export { type SmtpSettings, sendBySmtp } from './send-by-smtp.ts';
