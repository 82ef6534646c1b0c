import { addProtocol, type Map as MapLibre, type RequestParameters, removeProtocol } from 'maplibre-gl';
import { callBytes, wait } from '../api.ts';
import { type Scheme, scheme } from './scheme.ts';

/** Of the source, of its layer, and of the addresses of its tiles. */
const NAME = 'tracks';
/** Above, the tiles of this zoom are enlarged: they have all there is. */
const MAX_ZOOM = 13;
/** On the way through the zooms most tiles are wanted for a moment only. */
const SETTLE_MS = 200;
/** Each tile costs a call of the account's limits, of which the page needs others. */
const CALLS_A_MINUTE = 40;
const MINUTE_MS = 60_000;
const REFRESH_MS = 5 * MINUTE_MS;
/** From afar they are lines, and close up the ground of streets. */
const COLORS: Readonly<Record<Scheme, { readonly afar: string; readonly close: string }>> = {
  light: { afar: '#9a9383', close: '#dcd5c7' },
  dark: { afar: '#5d6975', close: '#39434d' },
};

/** The roads that the fleet has driven, below everything else. Returns how to add them to a style, and how to end. */
export function tracksLayer(map: MapLibre): { add(): void; close(): void } {
  const calls: number[] = [];
  addProtocol(NAME, async ({ url }: RequestParameters, { signal }: AbortController) => {
    await wait(SETTLE_MS, signal);
    await freeCall(calls, signal);
    signal.throwIfAborted();
    const reply = await callBytes(url.replace(`${NAME}://`, `/api/v1/tiles/${NAME}/`), signal);
    signal.throwIfAborted();
    // Refused for now, or out of reach: there is nothing to draw until the tiles are asked for again.
    return { data: reply.ok ? reply.data.buffer : new ArrayBuffer(0) };
  });
  const refresh = setInterval(() => {
    if (map.getSource(NAME) !== undefined && !document.hidden) map.refreshTiles(NAME);
  }, REFRESH_MS);
  return {
    add: () => addTo(map),
    close: () => {
      clearInterval(refresh);
      removeProtocol(NAME);
    },
  };
}

/** Waits until a minute has less than its calls. */
async function freeCall(calls: number[], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const nowMs = Date.now();
    while ((calls[0] ?? nowMs) <= nowMs - MINUTE_MS) calls.shift();
    if (calls.length < CALLS_A_MINUTE) {
      calls.push(nowMs);
      return;
    }
    await wait((calls[0] as number) + MINUTE_MS - nowMs, signal);
  }
}

function addTo(map: MapLibre): void {
  if (map.getSource(NAME) !== undefined) return;
  map.addSource(NAME, { type: 'vector', tiles: [`${NAME}://{z}/{x}/{y}.mvt`], maxzoom: MAX_ZOOM });
  const { afar, close } = COLORS[scheme()];
  map.addLayer({
    id: NAME,
    type: 'line',
    source: NAME,
    'source-layer': NAME,
    layout: { 'line-cap': 'round', 'line-join': 'round' },
    paint: {
      'line-color': ['interpolate', ['linear'], ['zoom'], 12, afar, 14.5, close],
      // Lines overlap at their ends, which shows at high zooms unless they are opaque.
      'line-opacity': [
        'interpolate',
        ['linear'],
        ['zoom'],
        12.5,
        ['interpolate', ['linear'], ['get', 'level'], 1, 0.45, 4, 0.9],
        14,
        1,
      ],
      // A cell is two pixels at zoom 13, and twice as many with each zoom: a line that is as wide hides its steps.
      'line-width': ['interpolate', ['exponential', 2], ['zoom'], 8, 0.7, 12, 1, 14, 5, 17, 40, 20, 80],
    },
  });
}
