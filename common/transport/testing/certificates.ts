/** A certificate for 127.0.0.1, signed by its own authority. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Creates them in this directory with openssl. */
export function makeCertificates(folder: string): {
  key: string;
  certificate: string;
  /** The authority's certificate. */
  authorityFile: string;
} {
  const file = (name: string) => join(folder, name);
  const openssl = (...words: string[]) => {
    const { status, stderr } = spawnSync('openssl', words, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`openssl ${words[0]}: ${stderr}`);
  };
  const keys = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const authority = ['-keyout', file('ca.key'), '-out', file('ca.pem'), '-subj', '/CN=Test authority'];
  openssl('req', '-x509', ...keys, ...authority, '-days', '2');
  openssl('req', ...keys, '-keyout', file('key.pem'), '-out', file('request.pem'), '-subj', '/CN=127.0.0.1');
  writeFileSync(file('names'), 'subjectAltName=IP:127.0.0.1\n');
  const signed = ['-in', file('request.pem'), '-CA', file('ca.pem'), '-CAkey', file('ca.key')];
  const serial = ['-CAcreateserial', '-extfile', file('names')];
  openssl('x509', '-req', ...signed, ...serial, '-out', file('cert.pem'), '-days', '2');
  return {
    key: readFileSync(file('key.pem'), 'utf8'),
    certificate: readFileSync(file('cert.pem'), 'utf8'),
    authorityFile: file('ca.pem'),
  };
}
