/**
 * Decides on one event and records it, in one step.
 *
 * The log is a sorted set: its members are the events, their scores the microseconds at which they were counted. The time is
 * the store's, so it does not matter how wrong the clocks of the processes are. When that clock was set back, stamps in
 * the future become the present: a key may then be refused for up to a window, and is never allowed more than its limit.
 * The script adds an event under its own name, so a repeated one counts once. It expires with its newest event.
 *
 * Old events are removed last: a full store refuses only the first write of a script, and has to refuse the new event.
 *
 * KEYS: the log. ARGV: now in µs ('' for the store's clock), window in µs, capacity, the event, then earlier events of the
 * same process: event, age in µs, and so on. Returns whether it is allowed (1 or 0), the events within the window, and the
 * age of the oldest in µs.
 */
export const takeScript = `
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end
local window, capacity = tonumber(ARGV[2]), tonumber(ARGV[3])
local function text(number) return string.format('%.0f', number) end
local newest = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
if newest[2] and tonumber(newest[2]) > now then
  for _, event in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. text(now), '+inf')) do
    redis.call('ZADD', KEYS[1], 'XX', text(now), event)
  end
end
for i = 5, #ARGV, 2 do
  redis.call('ZADD', KEYS[1], 'NX', text(now - tonumber(ARGV[i + 1])), ARGV[i])
end
local outside = text(now - window)
local count, allowed = redis.call('ZCOUNT', KEYS[1], '(' .. outside, '+inf'), 0
if count < capacity then
  redis.call('ZADD', KEYS[1], text(now), ARGV[4])
  count, allowed = count + 1, 1
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', outside)
if allowed == 1 or #ARGV > 4 then
  redis.call('PEXPIRE', KEYS[1], text(math.ceil(window / 1000)))
end
local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return { allowed, count, now - tonumber(oldest[2] or now) }
`;
