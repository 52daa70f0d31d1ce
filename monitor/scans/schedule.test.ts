import assert from 'node:assert/strict';
import { test } from 'node:test';
import { latestBoundary, parseSchedule } from './schedule.ts';

const at = (time: string, zone: string, now: string) =>
  new Date(latestBoundary({ time, zone }, Date.parse(now))).toISOString();

test('NET-2.7.4: 22:00 in New York is another moment in summer and in winter', () => {
  assert.equal(at('22:00', 'America/New_York', '2026-07-02T12:00:00Z'), '2026-07-02T02:00:00.000Z');
  assert.equal(at('22:00', 'America/New_York', '2026-01-02T12:00:00Z'), '2026-01-02T03:00:00.000Z');
  assert.equal(at('22:00', 'America/New_York', '2026-01-02T03:00:00Z'), '2026-01-02T03:00:00.000Z');
  assert.equal(at('22:00', 'America/New_York', '2026-01-02T02:59:59Z'), '2026-01-01T03:00:00.000Z');
});

test('NET-2.7.4: a time that the change of clocks leaves out comes later, of one that happens twice the first counts', () => {
  assert.equal(at('02:30', 'America/New_York', '2026-03-08T12:00:00Z'), '2026-03-08T07:30:00.000Z');
  assert.equal(at('01:30', 'America/New_York', '2026-11-01T05:30:00Z'), '2026-11-01T05:30:00.000Z');
  assert.equal(at('01:30', 'America/New_York', '2026-11-01T06:30:00Z'), '2026-11-01T05:30:00.000Z');
  // Half an hour forward; and a day that Samoa left out.
  assert.equal(at('02:15', 'Australia/Lord_Howe', '2026-10-04T12:00:00Z'), '2026-10-03T15:45:00.000Z');
  assert.equal(at('12:00', 'Pacific/Apia', '2011-12-30T12:00:00Z'), '2011-12-29T22:00:00.000Z');
});

/** The local time as the zone's clocks show it, minutes of a day. */
function clockReader(zone: string) {
  const format = new Intl.DateTimeFormat('en-GB', { timeZone: zone, hour: '2-digit', minute: '2-digit' });
  return (ms: number) => {
    const [hours, minutes] = format.format(ms).split(':').map(Number);
    return (hours! % 24) * 60 + minutes!;
  };
}

test('NET-2.7.4: in every zone, around its changes of clocks, the boundary is the newest moment that the clocks show', () => {
  const [from, until] = [Date.UTC(2026, 0, 1), Date.UTC(2027, 0, 1)];
  const quarter = 900_000;
  let moments = 0;
  for (const zone of Intl.supportedValuesOf('timeZone')) {
    const read = clockReader(zone);
    const isChange = (ms: number) => (read(ms + 12 * 3_600_000) - read(ms) - 720 + 1440) % 1440 !== 0;
    const changes: number[] = [];
    for (let ms = from; ms < until; ms += 12 * 3_600_000) if (isChange(ms)) changes.push(ms);
    for (const change of changes.length > 0 ? changes : [from])
      for (const time of ['22:00', '02:30']) {
        const [hours, minutes] = time.split(':').map(Number) as [number, number];
        for (let now = change - 6 * 3_600_000; now <= change + 30 * 3_600_000; now += 18 * 3_600_000) {
          moments += 1;
          const boundary = latestBoundary({ time, zone }, now);
          const isShown = read(boundary) === hours * 60 + minutes;
          // A time that was left out is shown by no clock of that day.
          const day = isShown ? [] : Array.from({ length: 80 }, (_, n) => boundary - n * quarter);
          for (const ms of day)
            assert.notEqual(
              read(Math.floor(ms / quarter) * quarter),
              hours * 60 + minutes,
              `${zone} ${time}`,
            );
          assert.ok(boundary <= now && now - boundary < 26 * 3_600_000, `${zone} ${time} ${now - boundary}`);
          // No later moment shows the time, except its second hour.
          for (
            let later = Math.ceil((boundary + 3 * 3_600_000) / quarter) * quarter;
            later <= now;
            later += quarter
          )
            assert.notEqual(read(later), hours * 60 + minutes, `${zone} ${time}`);
        }
      }
  }
  assert.ok(moments > 1500, `${moments} moments`);
});

test('a schedule needs a time of the day and the name of a zone', () => {
  assert.deepEqual(parseSchedule({ time: ' 06:05 ', zone: 'Asia/Kolkata' }), {
    time: '06:05',
    zone: 'Asia/Kolkata',
  });
  for (const time of ['24:00', '6:05', '', '22:60', '22:00:00', '22.00'])
    assert.throws(() => parseSchedule({ time, zone: 'UTC' }), { code: 'scans.invalid' }, time);
  for (const zone of ['Mars/Olympus', '', '+01:00', "UTC'; --", 'A'.repeat(300)])
    assert.throws(() => parseSchedule({ time: '22:00', zone }), { code: 'scans.invalid' }, zone);
});
