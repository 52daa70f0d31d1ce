/** Asks a server under a host name of the caller's choice, as a browser does whose name service was changed. */
import { request } from 'node:http';

export interface AskOptions {
  method?: string;
  headers?: Readonly<Record<string, string>>;
}

export function askAs(
  host: string,
  url: string,
  { method = 'GET', headers = {} }: AskOptions = {},
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { method, headers: { ...headers, host }, agent: false }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      answer.on('end', () => resolve({ status: answer.statusCode!, text }));
    });
    asked.on('error', reject).end();
  });
}
