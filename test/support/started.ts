import { after, before } from 'node:test';

/**
 * What `start` resolves to, for the tests of the file or suite that calls this: it is filled in before them, and given
 * to `stop` after them.
 */
export function started<Thing extends object>(
  start: () => Promise<Thing>,
  stop: (thing: Thing) => Promise<unknown> = async () => undefined,
): Thing {
  const thing = {} as Thing;
  let isStarted = false;
  before(async () => {
    Object.assign(thing, await start());
    isStarted = true;
  });
  after(async () => {
    if (isStarted) await stop(thing);
  });
  return thing;
}
