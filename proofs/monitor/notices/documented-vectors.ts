/** Documented signatures, and the forms of other schemes. */
import { readFileSync } from 'node:fs';

/** Documented by others: GitHub's webhooks, Standard Webhooks. */
export const documented = [
  {
    what: 'GitHub’s documented vector',
    key: Buffer.from("It's a Secret to Everybody"),
    message: 'Hello, World!',
    hex: '757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
  },
  {
    what: 'the Standard Webhooks’ documented vector',
    key: Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64'),
    message: 'msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}',
    hex: Buffer.from('g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=', 'base64').toString('hex'),
  },
];

/** Forms that other schemes accept or must refuse; ours accepts none of them. */
export function foreignForms(hex: string): [string, string][] {
  const base64 = Buffer.from(hex, 'hex').toString('base64');
  return [
    ['no signature', ''],
    ['hexadecimal alone', hex],
    ['capital letters', `sha256=${hex.toUpperCase()}`],
    ['a capital scheme', `SHA256=${hex}`],
    ['sha1', `sha1=${hex.slice(0, 40)}`],
    ['sha512', `sha512=${hex}${hex}`],
    ['base64', `sha256=${base64}`],
    ['v1 with base64', `v1,${base64}`],
    ['v1 with hexadecimal', `v1=${hex}`],
    ['t and v1', `t=1790000000,v1=${hex}`],
    ['two signatures', `sha256=${hex} sha256=${hex}`],
    ['two signatures by comma', `sha256=${hex},sha256=${hex}`],
    ['a good one after a bad one', `sha256=${'0'.repeat(64)},sha256=${hex}`],
    ['a space in front', ` sha256=${hex}`],
    ['a space behind', `sha256=${hex} `],
    ['a line end behind', `sha256=${hex}\n`],
    ['half of it', `sha256=${hex.slice(0, 32)}`],
    ['one digit less', `sha256=${hex.slice(0, 63)}`],
    ['one digit more', `sha256=${hex}0`],
    ['quoted', `"sha256=${hex}"`],
    ['a second equals sign', `sha256==${hex}`],
    ['no scheme but its sign', `=${hex}`],
    ['0x', `sha256=0x${hex.slice(2)}`],
  ];
}

/** Vectors of Project Wycheproof: number, label, key, message, tag. */
export function readVectors(): [string, string, string, string, string][] {
  const text = readFileSync(new URL('hmac-sha256-vectors.txt', import.meta.url), 'utf8');
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return lines.map((line) => line.split(' ') as [string, string, string, string, string]);
}
