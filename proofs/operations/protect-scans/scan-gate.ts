/** A lock that clicks wait for before they store requests, so that those of several processes meet there. */
import pg from 'pg';

export const gateKey = 7_318_041;

/**
 * Holds the gate while these clicks go on, until so many of them wait for a lock, the gate or one of each other's; or until all
 * have been answered without.
 */
export async function meetAtGate<T>(
  databaseUrl: string,
  clicks: number,
  click: () => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  let answers: Promise<T>;
  try {
    await client.query('select pg_advisory_lock($1)', [gateKey]);
    let isAnswered = false;
    const answer = () => {
      isAnswered = true;
    };
    answers = click();
    void answers.then(answer, answer);
    let waiting = 0;
    while (waiting < clicks && !isAnswered) {
      const { rows } = await client.query<{ waiting: number }>(
        `select count(*)::int as waiting from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock'`,
      );
      waiting = rows[0]!.waiting;
    }
  } finally {
    // Ends the session, and with it the lock.
    await client.end();
  }
  return answers;
}
