import { Redis } from 'ioredis';
import type { TestRedis } from '../redis.ts';

/** What befalls Redis before each command, and what sets it right again. */
export const REDIS_STATES: readonly [
  name: string,
  enter: (redis: TestRedis) => Promise<void>,
  leave: (redis: TestRedis) => Promise<void>,
][] = [
  ['Redis is there', async () => {}, async () => {}],
  ['Redis answers nothing', async (redis) => redis.pause(), async (redis) => redis.resume()],
  ['Redis is gone', (redis) => redis.stop(), (redis) => redis.restart()],
  [
    'Redis was just emptied',
    async (redis) => {
      const client = new Redis(redis.url);
      await client.flushall();
      client.disconnect();
    },
    async () => {},
  ],
];
