/** A person at a browser, without one: signed in, sending forms with their token, following nothing by itself. */
import { password, type World } from './create-world.ts';

/** Signs in; `home` is a page of the surface with a form on it. */
export async function visit(
  world: Pick<World, 'url' | 'signIn'>,
  email: string,
  home: string,
  given = password,
) {
  const cookie = await world.signIn(email, given);
  const headers = { accept: 'text/html', cookie };
  const get = (path: string) => fetch(`${world.url}${path}`, { headers, redirect: 'manual' });
  const page = async (path: string) => (await get(path)).text();
  const token = /name="csrf_token" value="([^"]+)"/.exec(await page(home))![1]!;
  const post = (path: string, fields: Record<string, string | readonly string[]>) =>
    fetch(`${world.url}${path}`, {
      method: 'POST',
      headers,
      body: new URLSearchParams(
        Object.entries({ csrf_token: token, ...fields }).flatMap(([name, value]) =>
          [value].flat().map((each): [string, string] => [name, each]),
        ),
      ),
      redirect: 'manual',
    });
  return { get, page, post };
}
