/**
 * Scripts that Redis runs atomically. A site has three keys: a stream of windows in the order of arrival, an index of
 * stream ids by start time, and the stream id of each identity, to detect repetitions.
 *
 * A full store refuses the script before it changes anything; trimming is never refused.
 */

const common = `
local function nowMs(text)
  if text ~= '' then return tonumber(text) end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
local function streamId(place)
  local ms, sequence = string.match(place, '(%d+)-(%d+)')
  return string.format('%.0f-%.0f', tonumber(ms), tonumber(sequence))
end
local function forget(places)
  for _, place in ipairs(places) do
    local id = streamId(place)
    local found = redis.call('XRANGE', KEYS[1], id, id)
    if found[1] then redis.call('HDEL', KEYS[3], found[1][2][2]) end
    redis.call('XDEL', KEYS[1], id)
    redis.call('ZREM', KEYS[2], place)
  end
  return #places
end
local function trim(now, history, max)
  local aged = forget(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - history))
  local surplus = redis.call('ZCARD', KEYS[2]) - max
  if surplus > 0 then forget(redis.call('ZRANGE', KEYS[2], 0, surplus - 1)) end
  return aged
end
`;

/** ARGV: now or '', history in ms, most windows, ms ahead; then identity, start, host rows, head, hosts of each window. */
export const addScript = `${common}
local now, history = nowMs(ARGV[1]), tonumber(ARGV[2])
local stored, duplicates, old = 0, 0, 0
for i = 5, #ARGV, 5 do
  local started = tonumber(ARGV[i + 1])
  if now - started >= history or now - started < -tonumber(ARGV[4]) then
    old = old + 1
  elseif redis.call('HEXISTS', KEYS[3], ARGV[i]) == 1 then
    duplicates = duplicates + 1
  else
    local id = redis.call('XADD', KEYS[1], '*', 'identity', ARGV[i], 'rows', ARGV[i + 2], 'head', ARGV[i + 3], 'hosts', ARGV[i + 4])
    local ms, sequence = string.match(id, '(%d+)-(%d+)')
    local place = string.format('%016.0f-%010.0f', tonumber(ms), tonumber(sequence))
    redis.call('HSET', KEYS[3], ARGV[i], place)
    redis.call('ZADD', KEYS[2], started, place)
    stored = stored + 1
  end
end
trim(now, history, tonumber(ARGV[3]))
local newest = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
if newest[2] then
  for _, key in ipairs(KEYS) do redis.call('PEXPIREAT', key, string.format('%.0f', tonumber(newest[2]) + history)) end
end
return { stored, duplicates, old }
`;

/** ARGV: now or '', history in ms, most windows. Also runs in a full store, because it only deletes. */
export const trimScript = `${common}
return trim(nowMs(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]))
`;

/**
 * ARGV: now or '', history in ms, since in ms, most windows, most host rows, '1' for windows without hosts, most bytes, bytes
 * of a window, bytes of a host row.
 */
export const listScript = `${common}
local after, since = nowMs(ARGV[1]) - tonumber(ARGV[2]), tonumber(ARGV[3])
local from = since > after and string.format('%.0f', since) or '(' .. string.format('%.0f', after)
local matching = redis.call('ZCOUNT', KEYS[2], from, '+inf')
local places = redis.call('ZREVRANGEBYSCORE', KEYS[2], '+inf', from, 'LIMIT', 0, ARGV[4])
local found, rows, bytes = {}, 0, 0
for _, place in ipairs(places) do
  local id = streamId(place)
  local entry = redis.call('XRANGE', KEYS[1], id, id)[1]
  if entry then
    rows = rows + tonumber(entry[2][4])
    bytes = bytes + tonumber(ARGV[8]) + tonumber(ARGV[9]) * tonumber(entry[2][4])
    if (rows > tonumber(ARGV[5]) or bytes > tonumber(ARGV[7])) and #found > 0 then break end
    found[#found + 1] = entry[2][6]
    if ARGV[6] ~= '1' then found[#found + 1] = entry[2][8] end
  end
end
return { matching, found }
`;
