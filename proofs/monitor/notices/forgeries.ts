/** Notices that were changed in transit: every bit, every digit, and other spellings of the same values. */
import { foreignForms } from './documented-vectors.ts';

/** 512 bytes. */
export function makeBody(): Buffer {
  const head = '{"cluster_id":7,"destroyed_at":"2026-11-21T12:00:00Z","virtual_machines":[';
  const machine = (id: number) => `{"id":${id},"mac_addresses":["52:54:00:00:00:${10 + (id % 80)}"]}`;
  const list = [...Array(7)].map((_, i) => machine(1001 + i)).join(',');
  return Buffer.from(`${head}${list}${' '.repeat(512 - head.length - list.length - 2)}]}`);
}

export interface Forgery {
  what: string;
  body: Buffer;
  stamp: string;
  signature: string;
}

/** F-2: every bit of the body, every digit of signature and timestamp, and other spellings of the same values. */
export function listForgeries(body: Buffer, stamp: string, signature: string): Forgery[] {
  const list: Forgery[] = [];
  const add = (what: string, change: Partial<Forgery>) =>
    list.push({ what, body, stamp, signature, ...change });
  for (let bit = 0; bit < body.length * 8; bit += 1) {
    const other = Buffer.from(body);
    other[bit >> 3]! ^= 1 << (bit & 7);
    add(`bit ${bit} of the body flipped`, { body: other });
  }
  for (let i = 'sha256='.length; i < signature.length; i += 1) {
    for (const digit of '0123456789abcdef') {
      if (digit !== signature[i])
        add(`digit ${i} of the signature as ${digit}`, {
          signature: signature.slice(0, i) + digit + signature.slice(i + 1),
        });
    }
  }
  for (let i = 0; i < stamp.length; i += 1) {
    for (const digit of '0123456789') {
      if (digit !== stamp[i])
        add(`digit ${i} of the timestamp as ${digit}`, {
          stamp: stamp.slice(0, i) + digit + stamp.slice(i + 1),
        });
    }
  }
  for (let i = 0; i < body.length; i += 1) {
    add(`byte ${i} of the body left out`, {
      body: Buffer.concat([body.subarray(0, i), body.subarray(i + 1)]),
    });
    add(`the body cut at ${i}`, { body: body.subarray(0, i) });
  }
  const parsed = JSON.parse(body.toString()) as object;
  const texts: Record<string, string> = {
    'a line end behind': `${body}\n`,
    'a space behind': `${body} `,
    'a byte order mark in front': `\ufeff${body}`,
    'written anew': JSON.stringify(parsed),
    'written anew with indents': JSON.stringify(parsed, null, 2),
    'in UTF-16': '',
    'with its timestamp in front': `${stamp}.${body}`,
    'turned around': [...body.toString()].reverse().join(''),
  };
  for (const [what, text] of Object.entries(texts))
    add(`the body ${what}`, {
      body: what === 'in UTF-16' ? Buffer.from(body.toString(), 'utf16le') : Buffer.from(text),
    });
  for (const [form, text] of foreignForms(signature.slice(7))) {
    // A header can not contain a line end, and Node trims spaces at its ends, so these are the same on the wire.
    if (!/^\s|\s$/.test(text)) add(`the signature as ${form}`, { signature: text });
  }
  return list;
}
