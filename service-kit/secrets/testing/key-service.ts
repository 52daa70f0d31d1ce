/** A key management service as a process of its own: `key-service.ts KEY wrap|unwrap`, or a fault instead of an answer. */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { text } from 'node:stream/consumers';

const [name = '', verb] = process.argv.slice(2);
const input = (await text(process.stdin)).trim();
const key = createHash('sha256').update(name).digest();
if (name === 'away') {
  process.stderr.write('the service does not answer\n');
  process.exit(7);
}
if (name === 'talkative') {
  process.stdout.write('two\nlines\n');
} else if (verb === 'wrap') {
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  const body = Buffer.concat([nonce, cipher.update(Buffer.from(input, 'base64')), cipher.final()]);
  process.stdout.write(`vault:v1:${Buffer.concat([body, cipher.getAuthTag()]).toString('base64')}\n`);
} else {
  const body = Buffer.from(input.slice('vault:v1:'.length), 'base64');
  const decipher = createDecipheriv('aes-256-gcm', key, body.subarray(0, 12));
  decipher.setAuthTag(body.subarray(-16));
  const plain = Buffer.concat([decipher.update(body.subarray(12, -16)), decipher.final()]);
  process.stdout.write(`${plain.toString('base64')}\n`);
}
