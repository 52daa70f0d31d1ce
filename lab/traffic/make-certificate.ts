/** One certificate for all TLS servers of a world, made anew at each start. */
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { runTool } from '../world/run-tool.ts';
import { certificateNames } from './internet-plan.ts';
import type { CertificateFiles } from './web-service.ts';

/** Makes certificate and key in `directory`; the key has mode 0600. Valid for ten years, so no world outlives it. */
export async function makeCertificate(directory: string): Promise<CertificateFiles> {
  const files = { certificate: join(directory, 'certificate.pem'), key: join(directory, 'key.pem') };
  const names = certificateNames.map((name) => `DNS:${name}`).join(',');
  const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const content = ['-days', '3650', '-subj', '/CN=svc lab', '-addext', `subjectAltName=${names}`];
  await runTool(['openssl', ...request, ...content, '-keyout', files.key, '-out', files.certificate]);
  chmodSync(files.key, 0o600);
  return files;
}
