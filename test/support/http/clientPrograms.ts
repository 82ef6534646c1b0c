/** A program as an integrator would write it with a generated client. BASE and KEY are in the environment. */
export interface ClientProgram {
  /** The generator, and the runtime if it is a package. */
  readonly name: string;
  /** Beside the generated code: `./types.ts`, `./hey-api/index.ts`, `./orval.ts`. */
  readonly text: string;
}

const ENVIRONMENT =
  'const { BASE, KEY } = (globalThis as unknown as { process: { env: Record<string, string> } }).process.env;';

/** One feature with a property of an area and one of the caller's own, and one that makes no area. */
function collection(externalId: string): string {
  return `{
  type: 'FeatureCollection',
  features: [
    {
      type: 'Feature',
      id: 7,
      geometry: { type: 'Point', coordinates: [12.4964, 41.9028] },
      properties: { name: 'Depot', radius: 250, external_id: '${externalId}', cost_centre: 4711 },
    },
    { type: 'Feature', geometry: { type: 'Point', coordinates: [12.5, 95] }, properties: null },
  ],
}`;
}

/** Each imports areas, lists them and causes an error, and prints what it got. */
export const CLIENT_PROGRAMS: readonly ClientProgram[] = [
  {
    name: 'openapi-typescript and openapi-fetch',
    text: `
import createClient from 'openapi-fetch';
import type { components, paths } from './types.ts';
${ENVIRONMENT}
const client = createClient<paths>({ baseUrl: BASE ?? '', headers: { 'X-API-Key': KEY } });

const body: components['schemas']['ImportInput'] = ${collection('openapi-fetch')};
const imported = await client.POST('/api/v3/areas/import', { body });
if (imported.error !== undefined) throw new Error(imported.error.error.message);
const { created, errors } = imported.data.data;

const listed = await client.GET('/api/v3/areas', { params: { query: { external_id: 'openapi-fetch' } } });
if (listed.error !== undefined) throw new Error(listed.error.error.code);
const areas = Array.isArray(listed.data.data) ? listed.data.data : [];

const missing = await client.GET('/api/v3/devices/{imei}', { params: { path: { imei: '350000000000099' } } });
const code: string | undefined = missing.error?.error.code;

console.log(JSON.stringify([created.length, errors[0]?.code, areas[0]?.radius_m, listed.data.meta.total, code]));
`,
  },
  {
    name: '@hey-api/openapi-ts',
    text: `
import { getDevice, importAreas, listAreas } from './hey-api/index.ts';
import { client } from './hey-api/client.gen.ts';
${ENVIRONMENT}
client.setConfig({ baseUrl: BASE ?? '', auth: () => KEY });

const imported = await importAreas({ body: ${collection('hey-api')} });
if (imported.data === undefined) throw new Error(JSON.stringify(imported.error));
const { created, errors } = imported.data.data;

const listed = await listAreas({ query: { external_id: 'hey-api' }, throwOnError: true });
const areas = Array.isArray(listed.data.data) ? listed.data.data : [];

const missing = await getDevice({ path: { imei: '350000000000099' } });
const code: string | undefined = missing.error?.error.code;

console.log(JSON.stringify([created.length, errors[0]?.code, areas[0]?.radius_m, listed.data.meta.total, code]));
`,
  },
  {
    name: 'orval',
    text: `
import { getDevice, importAreas, listAreas } from './orval.ts';
${ENVIRONMENT}
const options = { headers: { 'X-API-Key': KEY ?? '' } };

const imported = await importAreas(${collection('orval')}, {}, options);
if (imported.status !== 201) throw new Error(JSON.stringify(imported.data));
const { created, errors } = imported.data.data;

const listed = await listAreas({ external_id: 'orval' }, options);
if (listed.status !== 200) throw new Error(listed.data.error.code);
const areas = Array.isArray(listed.data.data) ? listed.data.data : [];

const missing = await getDevice('350000000000099', {}, options);
const code: string | undefined = missing.status === 404 ? missing.data.error.code : undefined;

console.log(JSON.stringify([created.length, errors[0]?.code, areas[0]?.radius_m, listed.data.meta.total, code]));
`,
  },
];
