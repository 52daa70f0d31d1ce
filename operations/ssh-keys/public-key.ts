/** A public key as OpenSSH writes it: a line of `authorized_keys`. */
import { createHash } from 'node:crypto';

export interface PublicKey {
  /** Kind, body and comment, with one space between them. */
  text: string;
  /** `SHA256:` and unpadded base64, as `ssh-keygen -l` writes it. */
  fingerprint: string;
}

/** One line: options may stand before the kind of the key, a comment behind its body. */
const linePattern =
  /^([^\p{Cc}\s][^\p{Cc}]* )?(?<kind>ssh-(rsa|ed25519)|ecdsa-sha2-nistp(256|384|521)|sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com) +(?<body>AAAA[A-Za-z0-9+/]*={0,3})(?<comment> [^\p{Cc}]*)?$/u;

/**
 * The key of a line, with or without the new line of its file; null for a private key, half of a public one and anything
 * else. Its body is strings, each behind its length in four bytes, of which the first is the kind again (RFC 4253, 6.6);
 * a body that was cut does not end where a string ends.
 */
export function parsePublicKey(line: string): PublicKey | null {
  const { kind = '', body = '', comment = '' } = linePattern.exec(line.trim())?.groups ?? {};
  const bytes = Buffer.from(body, 'base64');
  const strings: Buffer[] = [];
  let at = 0;
  while (at + 4 <= bytes.length) {
    const end = at + 4 + bytes.readUInt32BE(at);
    strings.push(bytes.subarray(at + 4, end));
    at = end;
  }
  const wanted = kind.startsWith('sk-ecdsa') ? 4 : kind === 'ssh-ed25519' ? 2 : 3;
  const isWhole = at === bytes.length && strings.length === wanted && strings[0]!.toString() === kind;
  if (!isWhole || (kind.includes('ed25519') && strings[1]!.length !== 32)) return null;
  const fingerprint = createHash('sha256').update(bytes).digest('base64').replace(/=+$/, '');
  return { text: `${kind} ${body} ${comment.trim()}`.trim(), fingerprint: `SHA256:${fingerprint}` };
}
