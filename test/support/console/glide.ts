import { waitFor } from '../waitFor.ts';

/** In degrees of latitude. */
const WAY = 0.01;
const AT_END = WAY / 100;

/**
 * Sends a vehicle north until it is seen on its way, and then at its end. A slow machine may draw no frame of a way, so
 * it is sent on when it is there. Returns where it is then, and how many ways it went.
 */
export async function glide(
  latitude: () => Promise<number>,
  send: (latitude: number) => Promise<unknown>,
): Promise<{ lat: number; ways: number }> {
  let lat = await latitude();
  let ways = 0;
  let isSeen = false;
  await waitFor(async () => {
    const from = lat;
    lat = from + WAY;
    ways += 1;
    await send(lat);
    await waitFor(
      async () => {
        const now = await latitude();
        isSeen ||= now > from + WAY / 10 && now < lat - WAY / 10;
        return Math.abs(now - lat) < AT_END;
      },
      () => `the vehicle does not come to ${lat}`,
    );
    return isSeen;
  }, 'the vehicle jumps from place to place');
  return { lat, ways };
}
