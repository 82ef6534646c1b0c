import { computed, effect, untracked } from '@preact/signals';
import type { Feature } from 'geojson';
import { AGAIN_MS, call, wait } from '../api.ts';
import { areaDraft } from '../areaDraft.ts';
import type { Area } from '../types.ts';
import { areaBounds, areaFeature } from './areaShapes.ts';
import { chosenArea, drawnAreas } from './mapState.ts';
import type { Overlay } from './overlay.ts';

const PAGE = 200;
/** Each page costs a call of the account's limits. */
const PAGES_MAX = 10;

/** Reads the areas, again after each draft, and draws them, until the returned function is called. */
export function drawAreas(overlay: Overlay): () => void {
  let asked = new AbortController();
  const isDrafted = computed(() => areaDraft.value !== null);
  const drafted = computed(() => areaDraft.value?.id ?? null);
  const stopReading = effect(() => {
    if (isDrafted.value) return;
    asked.abort();
    asked = new AbortController();
    void untracked(() => readAreas(asked.signal));
  });
  const stopDrawing = effect(() => {
    const chosen = chosenArea.value;
    const features = drawnAreas.value.areas
      .filter(({ id }) => id !== drafted.value) // the draft is drawn instead
      .flatMap((area) => featuresOf(area, area.id === chosen));
    overlay.show(features);
  });
  return () => {
    asked.abort();
    stopReading();
    stopDrawing();
  };
}

/** What is refused is read again until it is answered. */
async function readAreas(signal: AbortSignal): Promise<void> {
  const areas: Area[] = [];
  let total = 0;
  for (let page = 0; page < PAGES_MAX; page++) {
    const path = `/api/v1/areas?limit=${PAGE}&offset=${areas.length}`;
    const reply = await call<readonly Area[]>({ method: 'GET', path });
    if (signal.aborted) return;
    if (!reply.ok) {
      drawnAreas.value = { ...drawnAreas.peek(), error: reply.message };
      await wait(AGAIN_MS, signal);
      return signal.aborted ? undefined : readAreas(signal);
    }
    areas.push(...reply.data);
    total = reply.meta.total ?? areas.length;
    drawnAreas.value = { areas: [...areas], total, error: null };
    if (reply.data.length < PAGE) return;
  }
}

/** Its shape, and its name in the middle. */
function featuresOf(area: Area, isChosen: boolean): Feature[] {
  const { id, name, color } = area;
  const shape = areaFeature(area, { id, color, isChosen });
  const bounds = areaBounds(area);
  if (shape === null || bounds === null) return [];
  const [west, south, east, north] = bounds;
  const coordinates = [(west + east) / 2, (south + north) / 2];
  const label: Feature = {
    type: 'Feature',
    properties: { name, color, isChosen },
    geometry: { type: 'Point', coordinates },
  };
  return [shape, label];
}
