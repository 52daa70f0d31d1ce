/** Starts the store of `s3-process.ts`. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export async function startS3Server() {
  const [bucket, accessKeyId, secretAccessKey] = ['evidence', 'AKIDEXAMPLE', 'wJalrXUtnFEMI+secret'];
  const path = fileURLToPath(new URL('./s3-process.ts', import.meta.url));
  const child = spawn(process.execPath, [path, bucket, accessKeyId, secretAccessKey], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => ((await lines.next()).value as string) ?? '';
  const port = Number(await next());
  let status = 0;
  /** All answers have this status from now on; 0: as they should be. Returns the keys of all objects. */
  const answerWith = async (wanted: number) => {
    status = wanted;
    child.stdin.write(`${wanted}\n`);
    return (await next()).split(' ').filter((key) => key !== '');
  };
  return {
    settings: {
      endpoint: `http://127.0.0.1:${port}`,
      ...{ bucket, region: 'us-east-1', accessKeyId, secretAccessKey },
    } satisfies {
      endpoint: string;
      bucket: string;
      region: string;
      accessKeyId: string;
      secretAccessKey: string;
    },
    answerWith,
    keys: () => answerWith(status),
    async [Symbol.asyncDispose]() {
      const exited = once(child, 'exit');
      child.stdin.end();
      await exited;
    },
  };
}
