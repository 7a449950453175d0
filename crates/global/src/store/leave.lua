-- A router is no more and spends nothing: the others need not keep its part back. Its leases end by themselves.
-- KEYS: what is known of the whole, the routers. ARGV: the router.
if redis.call('HDEL', KEYS[2], ARGV[1]) == 1 then
  local expected = tonumber(redis.call('HGET', KEYS[1], 'expected') or '0')
  if expected > 0 then redis.call('HSET', KEYS[1], 'expected', expected - 1) end
end
