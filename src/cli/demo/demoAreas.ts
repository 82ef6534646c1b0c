import { fail, ok, type Result } from '../../lib/result.ts';

/** Places of the demo, of three kinds. Named by external ids, so that every run finds those of the one before. */
const AREAS = [
  {
    externalId: 'demo-colosseum',
    body: { name: 'Colosseum', type: 'circle', center: { lat: 41.8902, lng: 12.4922 }, radius_m: 400 },
  },
  {
    externalId: 'demo-old-town',
    body: {
      name: 'Old town',
      type: 'polygon',
      color: '#d97706',
      dwell_seconds: 30,
      points: [
        { lat: 41.9109, lng: 12.4763 },
        { lat: 41.9029, lng: 12.4843 },
        { lat: 41.8955, lng: 12.4824 },
        { lat: 41.8898, lng: 12.4766 },
        { lat: 41.8968, lng: 12.4687 },
        { lat: 41.9017, lng: 12.4665 },
      ],
    },
  },
  {
    externalId: 'demo-corso',
    body: {
      name: 'Via del Corso',
      type: 'polyline',
      color: '#16a34a',
      buffer_m: 40,
      points: [
        { lat: 41.9107, lng: 12.4764 },
        { lat: 41.9005, lng: 12.4802 },
        { lat: 41.8966, lng: 12.4822 },
      ],
    },
  },
];

/** Puts the areas there and returns the id of the first, which the Colosseum is in. */
export async function saveDemoAreas(api: string, key: string): Promise<Result<number, string>> {
  const ids: number[] = [];
  for (const { externalId, body } of AREAS) {
    const response = await fetch(`${api}/api/v3/areas/by-external-id/${externalId}`, {
      method: 'PUT',
      headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) return fail(`the area ${body.name} cannot be saved: ${response.status} ${text}`);
    ids.push((JSON.parse(text) as { data: { id: number } }).data.id);
  }
  return ok(ids[0] as number);
}
