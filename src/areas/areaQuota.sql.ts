import type { FieldError } from '../lib/fieldError.ts';
import { invariant } from '../lib/invariant.ts';
import type { Sql, Tx } from '../postgres/sql.ts';
import type { AreaDefinition } from './area.ts';
import { AREA_ERRORS } from './areaFields.ts';

interface RawQuota {
  areas: number;
  vertices: number;
  max_areas: number;
  max_area_vertices: number;
}

/**
 * What an account has and may have. Locked until the transaction ends, so nobody else can add to it before that.
 *
 * Must be called after the locks of areas and before any write that the triggers count, even a deletion or a smaller
 * shape. Otherwise such a write could need this lock while a creation under the same external id holds it and waits for
 * the write.
 */
export async function lockAreaQuota(tx: Tx, accountId: number): Promise<AreaQuota> {
  const [row] = await lock(tx, accountId);
  if (row !== undefined) return quotaOf(row);
  await tx`insert into area_usage (account_id) values (${accountId}) on conflict do nothing`;
  const [made] = await lock(tx, accountId);
  invariant(made, 'an account that writes is there');
  return quotaOf(made);
}

function lock(tx: Tx, accountId: number) {
  return tx<RawQuota[]>`
    select u.areas, u.vertices, p.max_areas, p.max_area_vertices
    from area_usage u join account a on a.id = u.account_id join plan p on p.name = a.plan
    where u.account_id = ${accountId} for update of u`;
}

/** Like `lockAreaQuota`, without the lock. */
export async function selectAreaQuota(sql: Sql, accountId: number): Promise<AreaQuota> {
  const [row] = await sql<RawQuota[]>`
    select coalesce(u.areas, 0) as areas, coalesce(u.vertices, 0) as vertices, p.max_areas, p.max_area_vertices
    from account a join plan p on p.name = a.plan left join area_usage u on u.account_id = a.id
    where a.id = ${accountId}`;
  invariant(row, 'an account that asks is there');
  return quotaOf(row);
}

const quotaOf = (row: RawQuota): AreaQuota => ({
  areas: row.areas,
  vertices: row.vertices,
  maxAreas: row.max_areas,
  maxVertices: row.max_area_vertices,
});

/** What an account has and may have, counted over the areas that it made, shared ones too. */
export interface AreaQuota extends AreaSize {
  readonly maxAreas: number;
  readonly maxVertices: number;
}

export interface AreaSize {
  readonly areas: number;
  /** Vertices of polygons and tracks; circles and places have none. */
  readonly vertices: number;
}

/** What a new area takes (`before` is null), or what changing one takes. */
export function growthOf(before: AreaDefinition | null, after: AreaDefinition): AreaSize {
  const vertices = verticesOf(after) - (before === null ? 0 : verticesOf(before));
  return { areas: before === null ? 1 : 0, vertices };
}

/**
 * Why a growth does not fit; null when it does. A change that needs no more always fits, also where the plan now allows
 * less than there is.
 */
export function quotaErrorOf(quota: AreaQuota, growth: AreaSize): FieldError | null {
  if (growth.areas > 0 && quota.areas + growth.areas > quota.maxAreas) return AREA_ERRORS.tooManyAreas;
  if (growth.vertices > 0 && quota.vertices + growth.vertices > quota.maxVertices)
    return AREA_ERRORS.tooManyVertices;
  return null;
}

/** The quota after a growth. */
export function grown(quota: AreaQuota, growth: AreaSize): AreaQuota {
  return { ...quota, areas: quota.areas + growth.areas, vertices: quota.vertices + growth.vertices };
}

function verticesOf({ geometry }: AreaDefinition): number {
  return 'points' in geometry ? geometry.points.length / 2 : 0;
}
