import type { AreaDefinition, AreaGeometry, AreaView } from '../../areas/area.ts';
import { toVertices } from '../../areas/area.ts';
import type { AreaQuota, AreaSize } from '../../areas/areas.sql.ts';
import { resolveImport } from '../../areas/import/importAreas.ts';
import { IMPORT_LIMITS, type ImportError, type ImportPlan } from '../../areas/import/importPlan.ts';
import type {
  FileFeature,
  Surplus,
  SyncedArea,
  SyncTarget,
  SyncWrites,
} from '../../areas/import/syncAreas.ts';
import { grown, growthOf } from '../../areas/saveArea.ts';
import { WorkTurns } from '../../lib/workTurns.ts';
import { type ApiClient, ApiFailure, type ApiReply } from './apiClient.ts';

/** Areas of one call. */
const LISTED = 200;
const PROGRESS_EVERY = 2_000;
/** The service takes twice as much. */
const BODY_MAX_CHARS = 16 * 1024 * 1024;
/** No requests wait while a command runs, so its turns may be long. */
const TURN_BUDGET_MS = 100;

/** The properties of a feature that an area is made of. */
const OWN_PROPERTIES = [
  'name',
  'title',
  'color',
  'stroke',
  'type',
  'radius',
  'bufferDistance',
  'buffer_distance',
  'external_id',
  'dwell_seconds',
];

interface RemoteArea extends SyncedArea {
  readonly id: number;
}

/** The areas of an account behind a running pod, with a key that reads and writes areas: see SyncTarget. */
export class RemoteTarget implements SyncTarget {
  readonly turns = new WorkTurns<string>(TURN_BUDGET_MS);
  readonly #client: ApiClient;
  /** Those that the account has made, by external id, as they were at the beginning. */
  readonly #areas: ReadonlyMap<string, RemoteArea>;
  readonly #quota: AreaQuota;

  private constructor(client: ApiClient, areas: ReadonlyMap<string, RemoteArea>, quota: AreaQuota) {
    this.#client = client;
    this.#areas = areas;
    this.#quota = quota;
  }

  /** Reads the areas of the account. Rejects with ApiFailure, as all methods do. */
  static async open(client: ApiClient, say: (line: string) => void): Promise<RemoteTarget> {
    const quota = await readQuota(client);
    const named: RemoteArea[] = [];
    for (let offset = 0; ; offset += LISTED) {
      const path = `/areas?limit=${LISTED}&offset=${offset}`;
      const { data } = (await client.call('GET', path, [200])).body as { data: readonly AreaView[] };
      for (const view of data) {
        if (view.external_id !== null)
          named.push({ id: view.id, definition: definitionOf(view), isMisplaced: false });
      }
      if (data.length < LISTED) break;
      if ((offset + LISTED) % PROGRESS_EVERY === 0) say(`${offset + LISTED} areas read`);
    }
    return new RemoteTarget(client, await ownOf(client, named), quota);
  }

  stored(externalIds: readonly string[]): Promise<ReadonlyMap<string, SyncedArea>> {
    const found = externalIds.flatMap((id) => {
      const area = this.#areas.get(id);
      return area === undefined ? [] : [[id, area] as const];
    });
    return Promise.resolve(new Map(found));
  }

  async write(
    features: readonly FileFeature[],
    plan: ImportPlan,
    dryGrowth: AreaSize | null,
  ): Promise<SyncWrites> {
    const sent = plan.items.map(({ index }) => ({
      index,
      json: JSON.stringify(ownPart(features[index]?.feature)),
    }));
    const saved: number[] = [];
    const errors: ImportError[] = [...plan.errors];
    for (const some of inBodies(sent)) {
      const report = await this.#import(
        some.map(({ json }) => json),
        dryGrowth !== null,
      );
      const indexOf = (index: number): number => some[index]?.index ?? index;
      saved.push(...[...report.created, ...report.updated].map(({ index }) => indexOf(index)));
      errors.push(...report.errors.map((error) => ({ ...error, index: indexOf(error.index) })));
    }
    if (dryGrowth !== null) return this.#dryWrites(plan, errors, dryGrowth);
    const idAt = new Map(plan.items.map(({ index, externalId }) => [index, externalId as string]));
    // Of a call that was made twice the second answer says that all was there.
    const isNew = (index: number): boolean => !this.#areas.has(idAt.get(index) as string);
    return {
      created: saved.filter(isNew).map((index) => ({ index })),
      updated: saved.filter((index) => !isNew(index)).map((index) => ({ index })),
      errors,
    };
  }

  /** The service knows nothing of what a dry run would have written before. */
  async #dryWrites(plan: ImportPlan, found: readonly ImportError[], growth: AreaSize): Promise<SyncWrites> {
    const errors = found.filter(({ code }) => code !== 'LIMIT_REACHED');
    const wrong = new Set(errors.map(({ index }) => index));
    const items = plan.items.filter(({ index }) => !wrong.has(index));
    const resolved = resolveImport({ ...plan, items, errors }, this.#areas, grown(this.#quota, growth));
    return this.turns.run('sync', resolved);
  }

  async #import(features: readonly string[], isDryRun: boolean): Promise<ImportAnswer> {
    const body = `{"type":"FeatureCollection","features":[${features.join()}]}`;
    return importAnswer(await this.#client.call('POST', importPath(isDryRun), [200, 201, 422], body));
  }

  surplus(isInFile: (externalId: string) => boolean): Promise<Surplus> {
    const surplus = [...this.#areas].filter(([externalId]) => !isInFile(externalId)).map(([, area]) => area);
    const size = surplus
      .map(({ definition }) => growthOf(null, definition))
      .reduce((sum, each) => grown(sum, each), { areas: 0, vertices: 0 });
    return Promise.resolve({ ids: surplus.map(({ id }) => id), size });
  }

  async *prune(ids: readonly number[]): AsyncGenerator<number, void> {
    for (const id of ids) {
      const { status } = await this.#client.call('DELETE', `/areas/${id}`, [204, 404]);
      yield status === 204 ? 1 : 0;
    }
  }
}

interface ImportAnswer {
  readonly created: readonly { readonly index: number }[];
  readonly updated: readonly { readonly index: number; readonly id?: number; readonly external_id: string }[];
  readonly errors: readonly ImportError[];
}

const importPath = (isDryRun: boolean): string => `/areas/import?dry_run=${isDryRun}`;

/** Where nothing was valid, the report is beside the error. */
function importAnswer({ status, body }: ApiReply): ImportAnswer {
  const { data } = body as { data?: ImportAnswer };
  if (data === undefined) throw new ApiFailure(`the import was refused with ${status}`);
  return data;
}

async function readQuota(client: ApiClient): Promise<AreaQuota> {
  const { body } = await client.call('GET', '/usage', [200]);
  const { data } = body as { data?: Record<'areas' | 'vertices', { used: number; limit: number }> };
  if (data?.areas === undefined) throw new ApiFailure('the address answers, but not as this service does');
  const { areas, vertices } = data;
  return {
    areas: areas.used,
    vertices: vertices.used,
    maxAreas: areas.limit,
    maxVertices: vertices.limit,
  };
}

/**
 * Those that the account of the key has made: it also sees what others have shared, whose external ids are theirs. A dry
 * run of an import under the same external ids names the areas that it would change.
 */
async function ownOf(client: ApiClient, areas: readonly RemoteArea[]): Promise<Map<string, RemoteArea>> {
  const own = new Map<string, RemoteArea>();
  const externalIds = [...new Set(areas.map(({ definition }) => definition.externalId as string))];
  const byId = new Map(areas.map((area) => [area.id, area]));
  for (let at = 0; at < externalIds.length; at += IMPORT_LIMITS.features) {
    const features = externalIds.slice(at, at + IMPORT_LIMITS.features).map(placeholder);
    const body = JSON.stringify({ type: 'FeatureCollection', features });
    const { updated } = importAnswer(await client.call('POST', importPath(true), [200], body));
    for (const { id, external_id: externalId } of updated) {
      const area = byId.get(id ?? 0);
      if (area !== undefined) own.set(externalId, area);
    }
  }
  // In the order of ids, as they were read.
  return new Map([...own].sort(([, a], [, b]) => a.id - b.id));
}

/** What any area can be changed to. */
function placeholder(externalId: string): object {
  const properties = { name: 'placeholder', type: 'circle', radius: 100, external_id: externalId };
  return { type: 'Feature', geometry: { type: 'Point', coordinates: [0, 0] }, properties };
}

/** A feature without what no area is made of, which may be large. */
function ownPart(feature: unknown): object {
  const { type, geometry, properties } = feature as {
    type: unknown;
    geometry: unknown;
    properties?: unknown;
  };
  const all = (properties ?? {}) as Record<string, unknown>;
  const own = Object.fromEntries(OWN_PROPERTIES.flatMap((name) => (name in all ? [[name, all[name]]] : [])));
  return { type, geometry, properties: own };
}

/** As many at a time as one body may hold. */
function* inBodies<Part extends { readonly json: string }>(parts: readonly Part[]): Generator<Part[]> {
  let some: Part[] = [];
  let chars = 0;
  for (const part of parts) {
    if (some.length > 0 && chars + part.json.length > BODY_MAX_CHARS) {
      yield some;
      some = [];
      chars = 0;
    }
    some.push(part);
    chars += part.json.length;
  }
  if (some.length > 0) yield some;
}

/** The inverse of areaView. */
function definitionOf(view: AreaView): AreaDefinition {
  const { name, color, external_id: externalId, dwell_seconds: dwellSeconds } = view;
  return { name, color, geometry: geometryOf(view), externalId, dwellSeconds };
}

function geometryOf({ type, center, radius_m: radiusM, buffer_m: bufferM, points }: AreaView): AreaGeometry {
  if (type === 'polygon') return { type, points: toVertices(points) };
  if (type === 'polyline') return { type, points: toVertices(points), bufferM: bufferM ?? 0 };
  return { type, center: center ?? { lat: 0, lng: 0 }, radiusM: radiusM ?? 0 };
}
